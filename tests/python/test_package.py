"""The Python package: its wheel is built around the tested library, installed in a clean environment, and used there."""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
HERE = pathlib.Path(__file__).resolve().parent

pytestmark = pytest.mark.skipif(os.environ.get("TESTED_SANITIZED") == "1",
                                reason="a Python without the sanitizers cannot load a sanitized library")


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, since setuptools leaves files beside its sources; without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    for part in ("python", "include"):
        run("cp", "-r", SOURCE / part, folder / part)
    run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder / "dist",
        folder / "python", env={**os.environ, "LIBKINTSUGI": os.environ["TESTED_LIBRARY"]})
    return next((folder / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Python of an environment that sees numpy and pytest of the machine, and the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder)
    run(folder / "bin/python", "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    return folder / "bin/python"


def test_the_wheel_has_the_library_and_is_the_platforms(wheel):
    assert re.fullmatch(r"kintsugi-[0-9.]+-py3-none-linux_\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    assert {"kintsugi/__init__.py", "kintsugi/py.typed", "kintsugi/libkintsugi.so"} <= set(names)


@pytest.mark.parametrize("cases", ["matmul_cases.py", "tensor_cases.py", "lazy_cases.py", "error_cases.py", "view_cases.py",
                                   "prepared_cases.py"])
def test_cases(python, tmp_path, cases):
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / cases, cwd=tmp_path)


def examples():
    text = (SOURCE / "docs/PYTHON.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_there_are_examples():
    assert len(examples()) >= 4


def test_examples_of_the_documentation(python, tmp_path):
    """One after the other in one program, as they are read."""
    program = tmp_path / "examples.py"
    program.write_text("\n".join(examples()))
    run(python, program, cwd=tmp_path)


def test_a_library_that_is_missing_is_named(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "kintsugi/libkintsugi.so").unlink()
    result = subprocess.run([sys.executable, "-c", "import kintsugi"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode != 0 and "libkintsugi.so" in result.stderr and "install one with pip" in result.stderr
