"""The Python package: its wheel is built around the tested library, installed in a clean environment, and used there."""

import ctypes.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
HERE = pathlib.Path(__file__).resolve().parent

pytestmark = [
    pytest.mark.skipif(os.environ.get("TESTED_SANITIZED") == "1",
                       reason="a Python without the sanitizers cannot load a sanitized library"),
    pytest.mark.skipif(not {"TESTED_PROGRAM", "TESTED_PYTHON_CORE", "TESTED_BLAS", "TESTED_CUBLAS"} <= set(os.environ),
                       reason="built without the program, the drop-ins or Python.h"),
]

COMPILED = {"kintsugi", "_core.abi3.so", "libkintsugi.so.0", "libkintsugi_blas.so.0", "libkintsugi_blas_audit.so",
            "libkintsugi_cublas.so.0", "libkintsugi_cublas_audit.so", "cublas_path/12/libcublas.so.12",
            "cublas_path/12/libcublasLt.so.12", "cublas_path/13/libcublas.so.13", "cublas_path/13/libcublasLt.so.13"}
if "TESTED_LIBRARY" in os.environ and pathlib.Path(os.environ["TESTED_LIBRARY"]).with_name("libkintsugi_jax.so").is_file():
    COMPILED.add("libkintsugi_jax.so")


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


def build_wheel(folder, library, **options):
    """Makes a wheel from a copy of the sources in `folder`, since setuptools leaves files beside its sources; without a
    network. Returns the finished process. The library is named as pip's caller sees it."""
    for part in ("python", "include", "LICENSE"):
        run("cp", "-r", SOURCE / part, folder / part)
    return subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", "dist",
                           "python/"], cwd=folder, capture_output=True, text=True, env={**os.environ, "LIBKINTSUGI": library},
                          **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Made from a copy of the build folder's files, which is gone afterwards."""
    folder = tmp_path_factory.mktemp("wheel")
    build = pathlib.Path(os.environ["TESTED_LIBRARY"]).parent
    for name in COMPILED | {"libkintsugi.so"}:
        (folder / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / name, folder / "build" / name)
    result = build_wheel(folder, "build/libkintsugi.so")
    assert result.returncode == 0, result.stdout + result.stderr
    shutil.rmtree(folder / "build")
    return next((folder / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Python of an environment that sees numpy and pytest of the machine, and the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder)
    run(folder / "bin/python", "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    return folder / "bin/python"


def test_the_wheel_has_all_that_is_compiled_and_is_the_platforms(wheel):
    assert re.fullmatch(r"kintsugi-[0-9.]+-cp39-abi3-linux_\w+\.whl", wheel.name)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"kintsugi/__init__.py", "kintsugi/numpy/linalg.py", "kintsugi/_core.pyi", "kintsugi/py.typed"} <= names
    assert {name for name in names if name.startswith("kintsugi/") and not name.endswith((".py", ".pyi", ".typed"))} == {
        f"kintsugi/{name}" for name in COMPILED}


# What Debian and manylinux have on every machine, the compiler's run-time, and our own libraries.
SYSTEM = re.compile(r"libkintsugi\w*\.so\.0|lib(stdc\+\+|m|gcc_s|c|gomp|dl|pthread)\.so\.\d+|ld-linux-.*|libcublas(Lt)?_real\.so\.\d+")


def test_the_wheels_files_need_and_search_nothing_else(wheel, tmp_path):
    """An empty part of a run path would be the folder that a program is started in."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    for name in COMPILED:
        dynamic = run("readelf", "-d", tmp_path / "kintsugi" / name)
        assert all(SYSTEM.fullmatch(needed) for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)), f"{name}\n{dynamic}"
        paths = [path for found in re.findall(r"\(R\w*PATH\).*\[(.*)\]", dynamic) for path in found.split(":")]
        assert all(path.startswith("$ORIGIN") for path in paths), f"{name}: {paths}"


def kintsugi(python, *words, **options):
    return subprocess.run([str(python.with_name("kintsugi")), *map(str, words)], capture_output=True, text=True, **options)


def test_the_command_is_the_program(python, tmp_path):
    """With all commands, its status and its streams."""
    assert kintsugi(python, "--help").stdout == run(os.environ["TESTED_PROGRAM"], "--help")
    assert run(python, "-m", "kintsugi", "schemes", "--json", cwd=tmp_path) == kintsugi(python, "schemes", "--json").stdout
    wrong = kintsugi(python, "gem")
    assert (wrong.returncode, wrong.stdout) == (2, "") and "did you mean gemm?" in wrong.stderr
    for side, shape in (("a", "5x3"), ("b", "3x4")):
        assert kintsugi(python, "generate", "uniform", shape, "--side", side, "-o", f"{side}.npy", cwd=tmp_path).returncode == 0
    product = kintsugi(python, "gemm", "a.npy", "b.npy", "-o", "c.npy", "--accuracy", "exact", "--check", cwd=tmp_path)
    assert product.returncode == 0, product.stderr


def test_the_wheel_runs_programs_with_the_drop_ins(python, tmp_path):
    """Over the fake driver and the fake cuBLAS, where a preload and where the audit library is needed, and for BLAS."""
    fakes = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests/fakes"
    program = [sys.executable, SOURCE / "tests/drop_in/cublas_program.py", "--product", "sgemm", "8", "8", "8"]
    variables = {**os.environ, "LD_LIBRARY_PATH": str(fakes), "KINTSUGI_POLICY": "native", "KINTSUGI_EXPLAIN": "1",
                 "FAKE_CUDA_MULTIPLY": "1"}
    for flags, words, loaded in (([], [], f"{fakes}/libcuda.so.1:{fakes}/libcublas.so.13"), (["--audit"], ["--handle"], "")):
        result = kintsugi(python, "run", *flags, "--", *program, *words, cwd=tmp_path, env={**variables, "LD_PRELOAD": loaded})
        assert result.returncode == 0, result.stderr
        assert "cublasSgemm_v2" in result.stderr and "policy native forwards every call" in result.stderr
        assert json.loads(result.stdout)["results"] == [8]
    code = "import numpy; a = numpy.ones((300, 300)); assert (a @ a == 300).all()"
    result = kintsugi(python, "run", "--blas", "--", python, "-c", code, cwd=tmp_path,
                      env={**os.environ, "KINTSUGI_EXPLAIN": "1", "KINTSUGI_POLICY": "emulate"})
    assert result.returncode == 0 and "dgemm" in result.stderr, result.stderr


@pytest.mark.parametrize("missing, needs", [("_core.abi3.so", "python3-dev"), ("libkintsugi_blas.so.0", "kintsugi_package"),
                                            ("kintsugi", "kintsugi_package")])
def test_a_wheel_without_a_compiled_file_is_an_error(tmp_path, missing, needs):
    for name in (COMPILED | {"libkintsugi.so"}) - {missing}:
        (tmp_path / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "build" / name).touch()
    result = build_wheel(tmp_path, "build/libkintsugi.so")
    message = result.stdout + result.stderr
    assert result.returncode != 0 and f"build has no {missing}. This builds all that a wheel carries: cmake" in message
    assert needs in message and not list(tmp_path.glob("dist/*"))


def test_the_command_says_what_is_missing(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "kintsugi/kintsugi").unlink()
    result = subprocess.run([sys.executable, "-m", "kintsugi", "schemes"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 1 and "kintsugi/kintsugi cannot be run: No such file or directory" in result.stderr


def test_the_wheel_has_the_licenses(wheel):
    archive = zipfile.ZipFile(wheel)
    for name in ("LICENSE", "LICENSES-OF-PARTS.txt"):
        (license,) = [file for file in archive.namelist() if file.endswith("/" + name)]
        assert archive.read(license) == (SOURCE / "python" / name).read_bytes()
    assert "GCC RUNTIME LIBRARY EXCEPTION" in archive.read(license).decode()


def test_a_library_that_is_not_there_is_named(tmp_path):
    """With the folders in which it was looked for."""
    result = build_wheel(tmp_path, "build/absent.so")
    message = f"LIBKINTSUGI = 'build/absent.so' is no file seen from {tmp_path}"
    assert result.returncode != 0 and message in result.stdout + result.stderr


@pytest.mark.parametrize("cases", ["matmul_cases.py", "double_double_cases.py", "tensor_cases.py", "lazy_cases.py",
                                   "error_cases.py", "view_cases.py", "prepared_cases.py", "log_cases.py",
                                   "plan_cases.py", "plain_cases.py", "device_cases.py", "class_cases.py",
                                   "accuracy_cases.py", "numpy_cases.py", "exact_cases.py", "solve_cases.py"])
def test_cases(python, tmp_path, cases):
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / cases, cwd=tmp_path)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_cases_with_a_library(python, tmp_path, library):
    if subprocess.run([python, "-c", f"import {library}"], capture_output=True).returncode != 0:
        pytest.skip(f"no {library}")
    if library == "jax" and "libkintsugi_jax.so" not in COMPILED:
        pytest.skip("built without jaxlib's headers")
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / f"{library}_cases.py", cwd=tmp_path)


def test_cases_with_the_fake_driver(python, tmp_path):
    fakes = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests/fakes"
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / "driver_cases.py", cwd=tmp_path,
        env={**os.environ, "LD_LIBRARY_PATH": str(fakes), "FAKE_CUDA_MULTIPLY": "1"})


TYPED = """
import numpy as np
import kintsugi
import kintsugi.numpy as knp

a = np.ones((3, 3))
kintsugi.matmul(a, a, accuracy="exact", policy="emulate", threads=2)
kintsugi.matmul(a, a, accuracy=1e-5)
with kintsugi.accuracy("reproducible"):
    knp.einsum("ij,jk", a, a, accuracy=1e-3, workspace_limit="1G")
    knp.linalg.multi_dot([a, a], accuracy="exact")
solution = kintsugi.solve(a, a, tail=True)
total: float = kintsugi.sum(a) + kintsugi.norm2(a, axis=(0, 1), keepdims=True) + kintsugi.dot([1, 2], [3, 4])
plan: kintsugi.Plan = kintsugi.plan((3, 3), (3, 3), dtype=np.float64, accuracy="fp64")
"""

# Lines that are each an error of types, and the argument that the error names.
WRONGLY_TYPED = {'kintsugi.matmul(a, a, accuracy="exct")': '"accuracy"', 'kintsugi.matmul(a, a, policy="emulated")': '"policy"',
                 'kintsugi.accuracy("exct")': '"accuracy"', 'kintsugi.prepare(a, side="c")': '"side"',
                 'knp.einsum("ij->i", a, accuracy="exct")': '"accuracy"', 'knp.dot(a, a, acuracy="exact")': "acuracy",
                 "kintsugi.sum(a, axis=1.5)": '"axis"', 'kintsugi.plan(a, a, threads="2")': '"threads"'}


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """A function that checks a program strictly, and returns mypy's words."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("types")

    def check(python, program):
        (folder / "program.py").write_text(program)
        result = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py"], cwd=folder,
                                capture_output=True, text=True)
        return result.stdout + result.stderr

    return check


def test_types_of_programs(python, mypy):
    assert "Success" in mypy(python, TYPED), mypy(python, TYPED)
    words = mypy(python, TYPED + "\n".join(WRONGLY_TYPED))
    first = TYPED.count("\n") + 1
    found = {int(number): line for number, line in re.findall(r"program.py:(\d+): error: (.*)", words)}
    assert set(found) == set(range(first, first + len(WRONGLY_TYPED))), words
    for number, (line, name) in enumerate(WRONGLY_TYPED.items(), first):
        assert name in found[number], (line, found[number])


def test_types_of_the_package(mypy, tmp_path):
    pytest.importorskip("numpy", "2.2", reason="earlier types of numpy have generic classes without defaults")
    result = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "kintsugi"], cwd=SOURCE / "python",
                            capture_output=True, text=True)
    assert "Success" in result.stdout, result.stdout + result.stderr


def examples():
    pages = [(SOURCE / page).read_text() for page in ("README.md", "docs/PYTHON.md")]
    return [example for page in pages for example in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)]


def test_there_are_examples():
    assert len(examples()) >= 5


def test_examples_of_the_documentation(python, tmp_path):
    """One after the other in one program, as they are read."""
    program = tmp_path / "examples.py"
    program.write_text("\n".join(examples()))
    run(python, program, cwd=tmp_path)


@pytest.mark.parametrize("program", sorted(path.name for path in (SOURCE / "examples/python").glob("*.py")))
def test_programs_of_examples(python, tmp_path, program):
    """They judge their own results, print them and draw a picture."""
    needed = {"train_faster.py": "matplotlib, torch", "solve_ill_conditioned.py": "matplotlib, scipy"}.get(program, "matplotlib")
    if subprocess.run([python, "-c", f"import {needed}"], capture_output=True).returncode != 0:
        pytest.skip(f"no {needed}")
    assert run(python, SOURCE / "examples/python" / program, cwd=tmp_path)
    assert "<svg" in (tmp_path / program).with_suffix(".svg").read_text()


def test_a_library_that_is_missing_is_named(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "kintsugi/libkintsugi.so.0").unlink()
    result = subprocess.run([sys.executable, "-c", "import kintsugi"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode != 0 and "libkintsugi.so" in result.stderr and "install one with pip" in result.stderr


@pytest.mark.parametrize("core", [None, b"of another machine"])
def test_without_the_compiled_part_an_import_says_how_to_build_it(wheel, tmp_path, core):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    compiled = tmp_path / "kintsugi/_core.abi3.so"
    compiled.unlink()
    if core is not None:
        compiled.write_bytes(core)
    result = subprocess.run([sys.executable, "-c", "import kintsugi"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode != 0 and "ImportError: kintsugi: " in result.stderr
    for words in ("_core.abi3.so", "CPython 3.9 or newer", "pip install python/", "kintsugi_package", "Python.h"):
        assert words in result.stderr


def test_the_compiled_part_exports_its_init_function_alone():
    core = os.environ["TESTED_PYTHON_CORE"]
    exported = run("nm", "-D", "--defined-only", "--format=just-symbols", core).split()
    assert exported == ["PyInit__core"]
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", core))
    assert set(needed) <= {"libkintsugi.so.0", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}


# Names of scipy-openblas32 before the functions of another OpenBLAS, which REAL_BLAS names.
SHIM = r"""
#include <dlfcn.h>
#include <stdlib.h>
static void* real(const char* name) { return dlsym(dlopen(getenv("REAL_BLAS"), RTLD_NOW), name); }
typedef void* P;
#define GEMM(name) \
  void scipy_##name(P a, P b, P c, P d, P e, P f, P g, P h, P i, P j, P k, P l, P m) { \
    ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P))real(#name))(a, b, c, d, e, f, g, h, i, j, k, l, m); \
  }
GEMM(sgemm_) GEMM(dgemm_) GEMM(cgemm_) GEMM(zgemm_)
void scipy_openblas_set_num_threads(int n) { ((void (*)(int))real("openblas_set_num_threads"))(n); }
int scipy_openblas_get_num_threads(void) { return ((int (*)(void))real("openblas_get_num_threads"))(); }
char* scipy_openblas_get_config(void) { return ((char* (*)(void))real("openblas_get_config"))(); }
char* scipy_openblas_get_corename(void) { return ((char* (*)(void))real("openblas_get_corename"))(); }
"""

# The library alone, since numpy may have an OpenBLAS loaded: a product, and what the engine cpu is.
PRODUCT = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
one, size, zero = ctypes.c_float(1), ctypes.c_int64(2), ctypes.c_float(0)
a, b, c = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)(5, 6, 7, 8), (ctypes.c_float * 4)()
unit = ctypes.c_int64(2)
status = library.kintsugi_sgemm(None, 1, 0, 0, size, size, size, one, a, unit, b, unit, zero, c, unit)
text = ctypes.create_string_buffer(1 << 20)
assert library.kintsugi_describe_engines(text, ctypes.c_size_t(len(text)), None) == 0
cpu = [engine for engine in json.loads(text.value)["engines"] if engine["name"] == "cpu"][0]
json.dump({"status": status, "c": list(c), "cpu": cpu}, sys.stdout)
"""

# The file of a library that the loader finds by its name.
FILE_OF = """
import ctypes, sys
class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]
library, info = ctypes.CDLL(sys.argv[1]), Info()
ctypes.CDLL(None).dladdr(ctypes.cast(library.sgemm_, ctypes.c_void_p), ctypes.byref(info))
print(info.file.decode(), end="")
"""


@pytest.fixture
def site(wheel, tmp_path):
    """A folder with the package, and the result of PRODUCT where the loader finds no libopenblas.so.0 that it can open."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "no-blas").mkdir()
    (tmp_path / "no-blas/libopenblas.so.0").touch()

    def product(**environment):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "no-blas"), **environment}
        return json.loads(run(sys.executable, "-c", PRODUCT, tmp_path / "site/kintsugi/libkintsugi.so.0", env=environment))

    return tmp_path / "site", product


def test_the_wheel_requires_a_blas_and_opens_it(wheel, site):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    assert "Requires-Dist: scipy-openblas32" in archive.read(metadata).decode()
    folder, product = site
    without = product()
    assert without["status"] == 0 and without["c"] == [19, 22, 43, 50]
    assert not without["cpu"]["available"] and "pip install scipy-openblas32" in without["cpu"]["reason"]
    blas = ctypes.util.find_library("openblas")
    if blas is None:
        pytest.skip("no OpenBLAS to stand in for that package's")
    shim = folder / "scipy_openblas32/lib/libscipy_openblas.so"
    shim.parent.mkdir(parents=True)
    (folder / "shim.c").write_text(SHIM)
    run(os.environ["TESTED_CC"], "-shared", "-fPIC", "-o", shim, folder / "shim.c", "-ldl")
    found = product(REAL_BLAS=run(sys.executable, "-c", FILE_OF, blas))
    assert found["status"] == 0 and found["c"] == [19, 22, 43, 50]
    assert found["cpu"]["available"] and "scipy_openblas32/lib/libscipy_openblas.so" in found["cpu"]["details"]


CMAKE = """#!/bin/sh
printf '%s\\n' "$*" >>"$CMAKE_LOG"
if [ "$1" = --build ]; then mkdir -p "$2" && (cd "$2" && mkdir -p cublas_path/12 cublas_path/13 && touch $COMPILED); fi
"""


@pytest.mark.parametrize("given,last", [("", "-DKINTSUGI_DEVICE_CODE=on"), ("-DKINTSUGI_DEVICE_CODE=off -DA=b", "-DA=b")])
def test_a_wheel_has_device_code_unless_told_otherwise(tmp_path, given, last):
    """The options that CMake gets; a stand-in for it builds nothing."""
    for part in ("python", "include"):
        run("cp", "-r", SOURCE / part, tmp_path / part)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cmake").write_text(CMAKE)
    (tmp_path / "bin/cmake").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "LIBKINTSUGI"}
    environment |= {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "CMAKE_LOG": str(tmp_path / "log"), "CMAKE_ARGS": given,
                    "COMPILED": " ".join(COMPILED)}
    run(sys.executable, "setup.py", "-q", "build_py", "--build-lib", tmp_path / "lib", cwd=tmp_path / "python", env=environment)
    configured, built = (tmp_path / "log").read_text().splitlines()
    assert "-DKINTSUGI_DEVICE_CODE=on" in configured.split() and configured.split()[-1] == last
    assert built.startswith("--build ") and "kintsugi_package" in built
    assert all((tmp_path / "lib/kintsugi" / name).exists() for name in COMPILED)
