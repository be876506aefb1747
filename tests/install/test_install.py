"""The installed tree, moved after installation: headers, find_package(kintsugi), pkg-config, program."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
BUILD = pathlib.Path(os.environ["TESTED_BUILD"])
CC = os.environ.get("TESTED_CC", "cc")
CXX = os.environ.get("TESTED_CXX", "c++")
PEDANTIC = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]

pytestmark = pytest.mark.skipif(os.environ.get("TESTED_SANITIZED") == "1",
                                reason="consumers without the sanitizers cannot load a sanitized library")


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Installed in one place and then moved to another: nothing in the tree may name the first."""
    folder = tmp_path_factory.mktemp("install")
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    shutil.move(folder / "first", folder / "moved here")
    return folder / "moved here"


@pytest.fixture(scope="module")
def library_folder(prefix):
    return next(prefix.rglob("libkintsugi.so")).parent


def test_what_is_installed(prefix, library_folder):
    headers = prefix / "include/kintsugi"
    assert sorted(str(file.relative_to(headers)) for file in headers.rglob("*") if file.is_file()) == [
        "cublas.h", "cxx/handle.hpp", "cxx/plan.hpp", "cxx/problem.hpp", "cxx/types.hpp", "kintsugi.h", "kintsugi.hpp"]
    assert [file.name for file in (prefix / "include").iterdir()] == ["kintsugi"]
    assert (library_folder / "libkintsugi.so").is_symlink()
    assert not list(prefix.rglob("*.a")), "the modules are not for others"
    assert (library_folder / "cmake/kintsugi/kintsugiConfig.cmake").is_file()
    assert sorted(file.name for file in (library_folder / "pkgconfig").iterdir()) == ["kintsugi-cxx.pc", "kintsugi.pc"]


@pytest.mark.parametrize("drop_in, function", [("blas", "cblas_dgemm64_"), ("cublas", "cublasDgemm_v2_64")])
def test_drop_ins_find_the_library_beside_them(library_folder, drop_in, function):
    """Python opens it by its path; a preload takes no path with a space."""
    (file,) = library_folder.glob(f"libkintsugi_{drop_in}.so.[0-9]*.*.*")
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)[sys.argv[2]] is not None)"
    assert run(sys.executable, "-c", code, file, function).strip() == "True"


def test_run_says_what_a_preload_does_not_take(prefix):
    result = subprocess.run([str(prefix / "bin/kintsugi"), "run", "--blas", "--", "true"], capture_output=True, text=True)
    assert result.returncode == 2 and "takes no space and no colon in LD_PRELOAD" in result.stderr


def test_no_text_names_the_build_or_the_first_prefix(prefix):
    for file in prefix.rglob("*"):
        if file.suffix in (".cmake", ".pc", ".h", ".hpp"):
            text = file.read_text()
            for path in (str(SOURCE), str(BUILD), str(prefix.parent / "first")):
                assert path not in text, f"{file} names {path}"


@pytest.mark.parametrize("header, compiler, options", [
    ("kintsugi.h", CC, ["-x", "c", "-std=c11"]),
    ("kintsugi.h", CXX, ["-x", "c++", "-std=c++11"]),
    ("kintsugi.h", CXX, ["-x", "c++", "-std=c++20"]),
    ("kintsugi.hpp", CXX, ["-x", "c++", "-std=c++20", "-Wconversion"]),
    *((f"cxx/{part}.hpp", CXX, ["-x", "c++", "-std=c++20"]) for part in ("handle", "plan", "problem", "types")),
])
def test_headers_stand_alone(prefix, tmp_path, header, compiler, options):
    source = tmp_path / "alone"
    source.write_text(f'#include "kintsugi/{header}"\n#include "kintsugi/{header}"\n'
                      "kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;\n"
                      "kintsugi_options options = KINTSUGI_OPTIONS_INIT;\n"
                      "kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;\n")
    run(compiler, *options, *PEDANTIC, f"-I{prefix / 'include'}", "-fsyntax-only", source)


def test_examples_as_an_outside_cmake_project(prefix, tmp_path):
    outside = tmp_path / "examples"
    (installed,) = prefix.rglob("examples")
    shutil.copytree(installed, outside, ignore=shutil.ignore_patterns("data"))
    configure = ["cmake", "-S", outside, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                 f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}"]
    run(*configure)
    run("cmake", "--build", tmp_path / "build")
    output = run("ctest", "--test-dir", tmp_path / "build", "--output-on-failure")
    assert "100% tests passed, 0 tests failed out of 3" in output


def project(folder, languages, request, source, code):
    """A project of its own with one program `user` that links kintsugi::kintsugi."""
    folder.mkdir()
    (folder / source).write_text(code)
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES {languages})\n{request}\n"
        f"add_executable(user {source})\ntarget_link_libraries(user PRIVATE kintsugi::kintsugi)\n")
    return folder


PRINT_VERSION = '#include <kintsugi/kintsugi.h>\n#include <stdio.h>\nint main(void) { puts(kintsugi_version()); }\n'


def test_a_project_in_c_alone(prefix, tmp_path):
    folder = project(tmp_path / "c", "C", "find_package(kintsugi REQUIRED)", "user.c", PRINT_VERSION)
    run("cmake", "-S", folder, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/user").strip() == installed_version(prefix)


STANDARD = ('#include <kintsugi/kintsugi.h>\nstatic_assert(__cplusplus == 201703L, "C++17 stays C++17");\n'
            'int main() { return kintsugi_version() == nullptr; }\n')
WRAPPER = ('#include <kintsugi/kintsugi.hpp>\nstatic_assert(__cplusplus >= 202002L, "the wrapper asks for C++20");\n'
           'int main() { return kintsugi::version().empty(); }\n')


@pytest.mark.parametrize("target, code", [("kintsugi::kintsugi", STANDARD), ("kintsugi::cxx", WRAPPER)])
def test_a_project_in_cxx17(prefix, tmp_path, target, code):
    """The C header leaves the project's standard alone; the C++ wrapper raises it."""
    request = "set(CMAKE_CXX_STANDARD 17)\nset(CMAKE_CXX_STANDARD_REQUIRED ON)\nfind_package(kintsugi REQUIRED)"
    folder = project(tmp_path / "cxx", "CXX", request, "user.cpp", code)
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("PRIVATE kintsugi::kintsugi", f"PRIVATE {target}"))
    run("cmake", "-S", folder, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={CXX}")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build/user")


def test_the_wrapper_says_which_standard_it_needs(prefix, tmp_path):
    source = tmp_path / "old.cpp"
    source.write_text("#include <kintsugi/kintsugi.hpp>\n")
    result = subprocess.run([CXX, "-std=c++17", f"-I{prefix / 'include'}", "-fsyntax-only", str(source)],
                            capture_output=True, text=True)
    assert result.returncode != 0 and "kintsugi.hpp needs C++20: -std=c++20" in result.stderr
    assert result.stderr.count(" error: ") == 1, "nothing of the header follows"


def installed_version(prefix):
    text = (prefix / "include/kintsugi/kintsugi.h").read_text()
    return ".".join(text.split(f"KINTSUGI_VERSION_{part} ")[1].split()[0] for part in ("MAJOR", "MINOR", "PATCH"))


def test_a_version_that_is_not_here_is_refused(prefix, tmp_path):
    folder = project(tmp_path / "c", "C CXX", "find_package(kintsugi 99.0 REQUIRED)", "user.c", PRINT_VERSION)
    result = subprocess.run(["cmake", "-S", str(folder), "-B", str(tmp_path / "build"),
                             f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
    assert result.returncode != 0 and "99.0" in result.stderr


@pytest.mark.parametrize("compiler, package, source", [
    ([CC, "-std=c11"], "kintsugi", "c/sgemm.c"),
    ([CC], "kintsugi", "c/sgemm.c"),  # no option of C++'s, of which a C compiler warns
    ([CXX, "-std=gnu++17"], "kintsugi-cxx", "cpp/gemm.cpp"),  # names the standard that the header needs
])
def test_examples_with_pkg_config_alone(prefix, library_folder, tmp_path, compiler, package, source):
    environment = os.environ | {"PKG_CONFIG_PATH": str(library_folder / "pkgconfig")}
    # The prefix has a space in it, which pkg-config escapes for a shell: let a shell read it.
    flags = run("pkg-config", "--cflags", "--libs", package, env=environment).strip()
    run("sh", "-c", f'exec "$@" {flags} -lm', "sh", *compiler, *PEDANTIC, "-O1", SOURCE / "examples" / source, "-o",
        tmp_path / "example")
    output = run(tmp_path / "example", env=os.environ | {"LD_LIBRARY_PATH": str(library_folder)})
    assert "right" in output and "WRONG" not in output
    assert run("pkg-config", "--modversion", "kintsugi", env=environment).strip() == installed_version(prefix)


@pytest.mark.skipif("TESTED_PROGRAM" not in os.environ, reason="built without the program")
def test_the_installed_program_finds_its_library(prefix):
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    schemes = json.loads(run(prefix / "bin/kintsugi", "schemes", "--json", env=clean))
    assert "fp16x3" in json.dumps(schemes)
    mapped = run("ldd", prefix / "bin/kintsugi", env=clean)
    assert str(prefix) in mapped and str(BUILD) not in mapped


def test_the_compiler_pass_is_found_beside_its_wrapper(prefix, tmp_path):
    if not os.environ.get("TESTED_CLANG"):
        pytest.skip("configured without the compiler pass: LLVM 14's development files or clang-14 are missing")
    (tmp_path / "call.c").write_text("void dgemm_(void); void call(void) { dgemm_(); }")
    run(prefix / "bin/kintsugi-clang", "-c", "call.c", "-o", "call.o", cwd=tmp_path)
    assert "call.c:call:dgemm_#1" in run(prefix / "bin/kintsugi", "sites", "call.o", cwd=tmp_path)
