"""Symbols that libkintsugi_blas.so exports, and libraries that it needs."""

import os
import re
import subprocess

from conftest import CALLS, LIBRARY, SANITIZED, SOURCE

RUNTIME = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def dynamic(tag, library=LIBRARY):
    lines = run("readelf", "--dynamic", "--wide", library).splitlines()
    return [re.search(r"\[(.*)\]", line)[1] for line in lines if f"({tag})" in line]


def major():
    return re.search(r"#define KINTSUGI_VERSION_MAJOR (\d+)", (SOURCE / "include/kintsugi/kintsugi.h").read_text())[1]


def test_it_exports_the_table():
    exported = [line.split()[-1] for line in run("nm", "--dynamic", "--defined-only", LIBRARY).splitlines()]
    assert sorted(exported) == sorted(run(CALLS, "names").split() + ["isamax_", "isamax_64_", "pilaenv_", *(f"kintsugi_site_{name}" for name in ("begin", "end", "loop_end", "multiply"))])


def test_the_table_has_the_usual_names():
    names = set(run(CALLS, "names").split())
    assert {"sgemm_", "dgemm_", "cgemm_", "zgemm_", "cblas_sgemm", "cblas_dgemm", "cblas_cgemm", "cblas_zgemm", "dgemm_64_",
            "dgemm64_", "cblas_dgemm64_", "scipy_cblas_dgemm64_", "cgemm3m_", "zgemm3m_", "cblas_zgemm3m"} <= names
    assert {"dgemmt_", "cblas_sgemmt", "zgemmtr_64_", "cblas_dgemm_batch", "sgemm_batch_strided_", "dsyrk_", "cblas_zherk",
            "scipy_cblas_dsyrk64_", "cher2k_", "dsyr2k_", "dsymm_", "cblas_zhemm_64", "dtrmm_", "cblas_dtrsm", "ztrsm64_"} <= names
    assert not {"sherk_", "dhemm_", "cblas_dher2k"} & names, "real matrices have no Hermitian routines"


def test_soname_has_the_major_version():
    assert dynamic("SONAME") == [f"libkintsugi_blas.so.{major()}"]


def test_it_needs_libkintsugi_and_no_blas():
    other = {name for name in dynamic("NEEDED") if not name.startswith("ld-linux")} - RUNTIME
    if SANITIZED:
        other = {name for name in other if not re.fullmatch(r"lib(asan|ubsan|tsan)\.so\.\d+", name)}
    assert other == {f"libkintsugi.so.{major()}"}


def test_the_audit_library_needs_libc_alone():
    """The dynamic linker loads a second copy of every library that an audit library needs."""
    audit = os.path.join(os.path.dirname(LIBRARY), "libkintsugi_blas_audit.so")
    exported = [line.split()[-1] for line in run("nm", "--dynamic", "--defined-only", audit).splitlines()]
    assert sorted(exported) == ["la_objopen", "la_symbind64", "la_version"]
    assert dynamic("NEEDED", audit) == ["libc.so.6"]


def test_error_handlers_are_looked_up_by_name():
    """They are undefined symbols, so that a program's own handlers are called."""
    undefined = {line.split()[-1] for line in run("nm", "--dynamic", "--undefined-only", LIBRARY).splitlines()}
    assert {"xerbla_", "cblas_xerbla"} <= undefined


def test_no_call_makes_or_reads_json_of_plans():
    """A description takes 50 to 500 µs, which each first call of a problem would wait."""
    needed = {line.split()[-1].partition("@")[0] for line in run("nm", "--dynamic", "--undefined-only", LIBRARY).splitlines()}
    assert not {"kintsugi_plan_describe", "kintsugi_report"} & needed and "kintsugi_plan_summarize" in needed


def test_blas_calls_is_linked_to_no_other_blas():
    assert "blas.so.3" not in run("readelf", "--dynamic", CALLS) and os.path.exists(CALLS)
