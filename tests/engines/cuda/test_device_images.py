"""Device code that another build folder compiled is taken only if it was made of the same sources."""

import os
import pathlib
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ.get("TESTED_SOURCE", pathlib.Path(__file__).parents[3]))

# Stands in for the compiler: writes what the scripts read, an image and the list of files it was made of.
COMPILER = """#!/bin/sh
cat "$2" "$3" >"$1"
printf '%s : %s \\\\\\n %s /usr/include/stdio.h\\n' "$1" "$2" "$3" >"$1.d"
"""


@pytest.fixture
def project(tmp_path):
    """A project of one kernel and its header, compiled into ready/."""
    (tmp_path / "cmake").mkdir()
    for script in ("compile_device_code", "take_device_code"):
        shutil.copy(SOURCE / "cmake" / script, tmp_path / "cmake")
    for folder in ("src", "ready", "taking"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src/kernel.cu").write_text("kernel\n")
    (tmp_path / "src/header.cuh").write_text("header\n")
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    subprocess.run([tmp_path / "cmake/compile_device_code", "kernel.fatbin", compiler, "kernel.fatbin",
                    "../src/kernel.cu", "../src/header.cuh"], cwd=tmp_path / "ready", check=True)
    return tmp_path


def take_image(project):
    return subprocess.run([project / "cmake/take_device_code", project / "ready/kernel.fatbin",
                           project / "taking/kernel.fatbin"], capture_output=True, text=True)


def test_an_image_of_these_sources_is_taken(project):
    assert take_image(project).returncode == 0
    assert (project / "taking/kernel.fatbin").read_text() == "kernel\nheader\n"
    needed = (project / "taking/kernel.fatbin.d").read_text().replace("\\\n", " ").split()
    assert needed == [f"{project}/taking/kernel.fatbin:", f"{project}/src/header.cuh", f"{project}/src/kernel.cu"]


@pytest.mark.parametrize("changed", ["src/kernel.cu", "src/header.cuh"])
def test_an_image_of_other_sources_is_refused(project, changed):
    (project / changed).write_text("changed\n")
    refused = take_image(project)
    assert refused.returncode != 0
    assert "is of other sources" in refused.stderr
    assert not (project / "taking/kernel.fatbin").exists()


def test_a_missing_image_is_refused(project):
    (project / "ready/kernel.fatbin.sha256").unlink()
    assert take_image(project).returncode != 0
