"""Names that libkintsugi_cublas.so exports, against all products that cuBLAS 12 and 13 export, and libraries that it needs."""

import json
import os
import pathlib
import re

import pytest
from conftest import CUBLAS, CUBLAS_CALLS, SANITIZED, SOURCE
from test_symbols import RUNTIME, dynamic, major, run

EXPORTS = json.loads((SOURCE / "tests/data/cublas/exports.json").read_text())
LIBRARIES = ("libcublas", "libcublasLt")
# Exported beside products: functions that say which GPUs cublasXt takes, and the drop-in's own.
OTHERS = {"cublasXtDestroy", "cublasXtDeviceSelect", "kintsugi_cublas_report", "kintsugi_cublas_site_begin", "kintsugi_cublas_site_end"}


def exported(library):
    return {line.split()[-1].split("@")[0] for line in run("nm", "--dynamic", "--defined-only", library).splitlines()}


def hooked():
    return set(run(CUBLAS_CALLS, "names").split())


def products():
    return {name for version in ("12", "13") for library in LIBRARIES for name in EXPORTS[version][library]}


def test_it_exports_the_table():
    assert exported(CUBLAS) == hooked() | OTHERS


@pytest.mark.parametrize("version", ["12", "13"])
def test_every_hooked_name_is_cublas_own(version):
    assert hooked() <= {name for library in LIBRARIES for name in EXPORTS[version][library]}


def test_every_product_is_hooked_or_passed_for_a_reason():
    reasons = {name: [item["why"] for item in EXPORTS["passed"] if re.fullmatch(item["names"], name)] for name in products()}
    unexplained = {name: why for name, why in reasons.items() if len(why) != (0 if name in hooked() else 1)}
    assert not unexplained, "each name must be hooked or match one pattern of \"passed\" in tests/data/cublas/exports.json"


def test_every_reason_has_names():
    unused = [item["names"] for item in EXPORTS["passed"]
              if not any(re.fullmatch(item["names"], name) for name in products())]
    assert not unused


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_list_is_that_of_the_toolkit(library):
    file = pathlib.Path(f"/usr/local/cuda/lib64/{library}.so.13")
    if not file.is_file():
        pytest.skip("there is no CUDA 13 toolkit")
    found = {name for name in exported(file) if re.search(EXPORTS["pattern"], name, re.IGNORECASE)}
    assert found == set(EXPORTS["13"][library])


@pytest.mark.parametrize("table, header, pattern, prefix", [
    ("data_types", "library_types.h", r"(CUDA_[RC]_\w+) *= *(\d+)", ""), ("compute_types", "cublas_api.h", r"(CUBLAS_COMPUTE_\w+) = (\d+)", ""),
    ("epilogues", "cublasLt.h", r"(CUBLASLT_EPILOGUE_\w+) = \(?([\w |]+)", "CUBLASLT_EPILOGUE_"),
    ("orders", "cublasLt.h", r"(CUBLASLT_ORDER_\w+) = (\d+)", "CUBLASLT_ORDER_")])
def test_names_in_reasons_are_those_of_the_toolkit(table, header, pattern, prefix):
    path = pathlib.Path("/usr/local/cuda/include") / header
    if not path.is_file():
        pytest.skip("there is no CUDA toolkit")
    values = {}
    for name, value in re.findall(pattern, path.read_text()):
        values[name] = eval(value, {}, values)
    text = (SOURCE / "drop_in/cublas/call.cpp").read_text()
    listed = re.findall(r'\{(\d+), "(\w+)"\}', text[text.index(f"{table}[] = {{"):].split("};")[0])
    assert listed and all(values[prefix + name] == int(number) for number, name in listed)


def test_soname_has_the_major_version():
    assert dynamic("SONAME", CUBLAS) == [f"libkintsugi_cublas.so.{major()}"]


def test_it_needs_libkintsugi_and_no_library_of_cuda():
    other = {name for name in dynamic("NEEDED", CUBLAS) if not name.startswith("ld-linux")} - RUNTIME
    if SANITIZED:
        other = {name for name in other if not re.fullmatch(r"lib(asan|ubsan|tsan)\.so\.\d+", name)}
    assert other == {f"libkintsugi.so.{major()}"}


def test_the_audit_library_needs_libc_alone():
    audit = os.path.join(os.path.dirname(CUBLAS), "libkintsugi_cublas_audit.so")
    assert exported(audit) == {"la_objopen", "la_symbind64", "la_version"}
    assert dynamic("NEEDED", audit) == ["libc.so.6"]
