"""Puts the compiled files into the wheel: the library, the compiled part of the package, the program and the drop-ins.
LIBKINTSUGI names the library in a build folder that has all of them, relative to the folder in which pip was called; without
LIBKINTSUGI, CMake builds them."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent
COMPILED = "_core.abi3.so"
OPTIONAL = ["libkintsugi_jax.so"]  # where jaxlib's headers were found
TARGET = "kintsugi_package"  # CMake's name for all that a wheel carries


def version():
    header = (SOURCE / "include/kintsugi/kintsugi.h").read_text()
    return ".".join(re.findall(r"#define KINTSUGI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def built_library(folder):
    """Builds all that the wheel carries. Returns the library's path. Device code is built for all GPUs, since a wheel is used
    on other machines."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DKINTSUGI_TESTS=OFF", f"-DKINTSUGI_PYTHON={sys.executable}",
               "-DKINTSUGI_DEVICE_CODE=on"]
    options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    subprocess.run(["cmake", "-S", str(SOURCE), "-B", str(folder), *options], check=True)
    subprocess.run(["cmake", "--build", str(folder), "--parallel", "--target", TARGET], check=True)
    return folder / "libkintsugi.so"


def callers_folders():
    """Yields the folders to which a relative path may refer, the likeliest first. This process runs in the package's
    folder; its parent process, pip, runs in the folder where the user called it."""
    try:
        yield pathlib.Path(os.readlink(f"/proc/{os.getppid()}/cwd"))
    except OSError:  # no /proc here
        pass
    if "PWD" in os.environ:
        yield pathlib.Path(os.environ["PWD"])
    yield pathlib.Path.cwd()


def given_library(text):
    """Returns the path of the library that LIBKINTSUGI names; ends the process if there is no such file."""
    folders = [folder.resolve() for folder in callers_folders()]
    for folder in folders:
        if (folder / text).is_file():
            return folder / text
    looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    raise SystemExit(f"LIBKINTSUGI = {text!r} is no file" + ("" if os.path.isabs(text) else f" seen from {looked}"))


def compiled_files():
    """Names of the wheel's compiled files in a build folder. Libraries have their SONAMEs, by which they find each other."""
    major = version().split(".")[0]
    drop_ins = ("libkintsugi_blas", "libkintsugi_cublas")
    return ["kintsugi", COMPILED, f"libkintsugi.so.{major}", *(f"{name}.so.{major}" for name in drop_ins),
            *(f"{name}_audit.so" for name in drop_ins),
            *(f"cublas_path/{number}/{name}.so.{number}" for number in (12, 13) for name in ("libcublas", "libcublasLt"))]


def require_files(folder, names):
    """Ends the process if some are missing, with the command that builds them."""
    missing = [name for name in names if not (folder / name).is_file()]
    if not missing:
        return
    python = f"; {COMPILED} needs Python.h (Debian: python3-dev)" if COMPILED in missing else ""
    build = f"cmake -S {SOURCE} -B {folder} && cmake --build {folder} --target {TARGET}"
    raise SystemExit(f"kintsugi: {folder} has no {', '.join(missing)}. This builds all that a wheel carries: {build}{python}")


class BuildWithLibrary(build_py):
    def run(self):
        package = pathlib.Path(self.build_lib) / "kintsugi"
        shutil.rmtree(package, ignore_errors=True)  # an earlier version's files would be packed, too
        super().run()
        given = os.environ.get("LIBKINTSUGI")
        library = given_library(given) if given else built_library(pathlib.Path(self.build_lib).resolve().parent / "cmake")
        require_files(library.parent, compiled_files())
        optional = [name for name in OPTIONAL if (library.parent / name).is_file()]
        for name in [*compiled_files(), *optional]:
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library.parent / name, package / name)


class PlatformWheel(bdist_wheel):
    """One wheel for every CPython from 3.9 on, by the stable ABI."""

    def get_tag(self):
        return "cp39", "abi3", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True  # makes the wheel's tag name the platform


setup(version=version(), cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}, distclass=WithLibrary)
