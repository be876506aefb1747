"""Symbols that libkintsugi.so exports, its SONAME and NEEDED, and loading it where there is no BLAS."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

LIBRARY = pathlib.Path(os.environ["TESTED_LIBRARY"])
SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
SANITIZED = os.environ.get("TESTED_SANITIZED") == "1"

# Libraries that it may need: the C and C++ run-time of the compiler, but no BLAS and no CUDA.
RUNTIME = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libdl.so.2",
           "libpthread.so.0"}
SANITIZERS = re.compile(r"lib(asan|ubsan)\.so\.\d+")
LOADER = re.compile(r"ld-linux[-\w]*\.so\.\d+")


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def listed():
    return (SOURCE / "tests/abi/symbols.txt").read_text().split()


def declared():
    header = (SOURCE / "include/kintsugi/kintsugi.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return set(re.findall(r"^KINTSUGI_API[^;(]*?\b(\w+)\s*\(", header, flags=re.MULTILINE))


def exported():
    """{symbol: version node} of the defined dynamic symbols, without the version nodes themselves."""
    symbols = {}
    for line in run("nm", "--dynamic", "--defined-only", str(LIBRARY)).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":
            name, _, version = name.partition("@@")
            symbols[name] = version
    return symbols


def dynamic(tag):
    lines = run("readelf", "--dynamic", "--wide", str(LIBRARY)).splitlines()
    return [re.search(r"\[(.*)\]", line)[1] for line in lines if f"({tag})" in line]


def test_the_list_is_sorted_and_has_no_duplicates():
    assert listed() == sorted(set(listed()))


def test_the_list_is_what_the_header_declares():
    assert set(listed()) == declared()


def test_the_list_is_what_the_library_exports():
    assert set(exported()) == set(listed())


def test_every_symbol_has_the_version_of_the_abi():
    assert set(exported().values()) == {"KINTSUGI_0"}


def test_soname_has_the_major_version():
    major = re.search(r"#define KINTSUGI_VERSION_MAJOR (\d+)",
                      (SOURCE / "include/kintsugi/kintsugi.h").read_text())[1]
    assert dynamic("SONAME") == [f"libkintsugi.so.{major}"]


def test_only_the_run_time_is_needed():
    other = [name for name in dynamic("NEEDED") if name not in RUNTIME and not LOADER.fullmatch(name)]
    if SANITIZED:
        other = [name for name in other if not SANITIZERS.fullmatch(name)]
    assert other == []


def test_no_path_of_the_build_in_the_library():
    assert dynamic("RPATH") == [] and dynamic("RUNPATH") == []


# ---------------------------------------------------------------- loading

# Runs in a process of its own: multiplies on the reference engine, then on the cpu engine.
LOAD = r"""
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
library.kintsugi_last_error.restype = ctypes.c_char_p
i64, pointer, f32 = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
library.kintsugi_sgemm.argtypes = [pointer, ctypes.c_int, ctypes.c_int, ctypes.c_int, i64, i64, i64, f32, pointer,
                                   i64, pointer, i64, f32, pointer, i64]
library.kintsugi_set.argtypes = [pointer, ctypes.c_char_p, ctypes.c_char_p]
maps = open("/proc/self/maps").read()

handle = pointer()
assert library.kintsugi_create(ctypes.byref(handle)) == 0
needed = ctypes.c_size_t()
assert library.kintsugi_describe_engines(None, 0, ctypes.byref(needed)) == 0
buffer = ctypes.create_string_buffer(needed.value + 1)
assert library.kintsugi_describe_engines(buffer, len(buffer), None) == 0

def product(engine):
    assert library.kintsugi_set(handle, b"engine", engine) == 0, library.kintsugi_last_error()
    assert library.kintsugi_set(handle, b"scheme", b"fp16x3") == 0, library.kintsugi_last_error()
    a, b, c = (f32 * 6)(1, 2, 3, 4, 5, 6), (f32 * 6)(6, 5, 4, 3, 2, 1), (f32 * 4)(-1, -1, -1, -1)
    status = library.kintsugi_sgemm(handle, 0, 0, 0, 2, 2, 3, 1, a, 2, b, 3, 0, c, 2)
    return {"status": status, "c": list(c), "error": library.kintsugi_last_error().decode()}

print(json.dumps({"blas_after_load": "blas" in maps, "engines": json.loads(buffer.value),
                  "reference": product(b"reference"), "cpu": product(b"cpu")}))
"""

# An auditor of the dynamic linker that hides every library with BLAS or oneDNN in its name.
AUDITOR = r"""
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
unsigned la_version(unsigned version) { (void)version; return LAV_CURRENT; }
char* la_objsearch(const char* name, uintptr_t* cookie, unsigned flag) {
  (void)cookie; (void)flag;
  const char* base = strrchr(name, '/');
  base = base != NULL ? base + 1 : name;
  return strstr(base, "blas") || strstr(base, "blis") || strstr(base, "dnnl") ? NULL : (char*)name;
}
"""
PRODUCT = [41.0, 56.0, 14.0, 20.0]  # column-major [1 3 5; 2 4 6] * [6 3; 5 2; 4 1]


def load(**environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KINTSUGI_")}
    output = run(sys.executable, "-c", LOAD, str(LIBRARY), env=clean | environment)
    return json.loads(output)


@pytest.fixture
def auditor(tmp_path):
    source, library = tmp_path / "auditor.c", tmp_path / "auditor.so"
    source.write_text(AUDITOR)
    run(os.environ.get("TESTED_CC", "cc"), "-shared", "-fPIC", "-o", str(library), str(source))
    return str(library)


@pytest.mark.skipif(SANITIZED, reason="the sanitizers' run-time must be loaded first")
class TestLoading:
    def test_loading_the_library_loads_no_blas(self):
        assert load()["blas_after_load"] is False

    def test_works_where_no_blas_can_be_found(self, auditor):
        result = load(LD_AUDIT=auditor)
        assert result["reference"]["status"] == 0, result["reference"]["error"]
        assert result["reference"]["c"] == PRODUCT

    def test_the_auditor_hides_blas(self, auditor):
        """Else the test above could pass although a BLAS can be found."""
        probe = "import ctypes; ctypes.CDLL('libopenblas.so.0')"
        hidden = subprocess.run([sys.executable, "-c", probe], env=os.environ | {"LD_AUDIT": auditor},
                                capture_output=True, text=True)
        assert hidden.returncode != 0 and "cannot open shared object file" in hidden.stderr

    def test_an_engine_without_its_library_is_refused_with_a_reason(self, auditor):
        """Never falls back silently: multiplies right without a BLAS, or fails with status 3, its name in the message, and C
        untouched."""
        cpu = load(LD_AUDIT=auditor)["cpu"]
        if cpu["status"] == 0:
            assert cpu["c"] == PRODUCT
        else:
            assert cpu["status"] == 3 and "cpu" in cpu["error"] and cpu["c"] == [-1.0] * 4
