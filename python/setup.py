"""Puts libkintsugi.so into the wheel. LIBKINTSUGI names the file, relative to the folder in which pip was called; without
LIBKINTSUGI, CMake builds the library. The compiled part of the package (_core.abi3.so) and the drop-in for cuBLAS, which
`kintsugi run` preloads, are taken from the library's folder if they are there."""

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
DROP_IN = ("libkintsugi_cublas.so", "libkintsugi_cublas_audit.so")


def version():
    header = (SOURCE / "include/kintsugi/kintsugi.h").read_text()
    return ".".join(re.findall(r"#define KINTSUGI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def built_library(folder):
    """Builds the library and the compiled part, without program and tests. Returns the library's path. Device code is built
    for all GPUs, since a wheel is used on other machines."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DKINTSUGI_TESTS=OFF", "-DKINTSUGI_TOOLS=OFF",
               f"-DKINTSUGI_PYTHON={sys.executable}", "-DKINTSUGI_DEVICE_CODE=on"]
    options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    subprocess.run(["cmake", "-S", str(SOURCE), "-B", str(folder), *options], check=True)
    subprocess.run(["cmake", "--build", str(folder), "--parallel"], check=True)
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


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        given = os.environ.get("LIBKINTSUGI")
        library = given_library(given) if given else built_library(pathlib.Path(self.build_lib).resolve().parent / "cmake")
        package = pathlib.Path(self.build_lib) / "kintsugi"
        shutil.copyfile(library, package / "libkintsugi.so")
        compiled = library.with_name(COMPILED)
        if compiled.is_file():
            shutil.copyfile(compiled, package / COMPILED)
        else:
            print(f"kintsugi: no {COMPILED} beside {library}: calls will go through ctypes", file=sys.stderr)
        for name in DROP_IN:
            if library.with_name(name).is_file():
                shutil.copyfile(library.with_name(name), package / name)
            else:
                print(f"kintsugi: no {name} beside {library}: kintsugi run will not find it", file=sys.stderr)


class PlatformWheel(bdist_wheel):
    """One wheel for every Python 3 of the machine. The compiled part is for the stable ABI of CPython 3.9. Other Pythons do
    not load it and use ctypes. Therefore the wheel's tag names no ABI."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True  # makes the wheel's tag name the platform


setup(version=version(), cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}, distclass=WithLibrary)
