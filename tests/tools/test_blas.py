"""KINTSUGI_CPU_BLAS: one that is named is the one that runs or an error; a missing default is a warning."""

import json

import pytest

MANY_TIMES_SLOWER = "many times slower"


@pytest.fixture
def operands(program):
    program.ok("generate", "uniform", "8x8", "-o", "A.npy")
    return program


@pytest.fixture
def no_blas(program):
    """An environment in which the loader finds a libopenblas.so.0 that it cannot open."""
    folder = program.folder / "no-blas"
    folder.mkdir()
    (folder / "libopenblas.so.0").touch()
    return {"LD_LIBRARY_PATH": str(folder)}


def gemm(*flags):
    return ["gemm", "A.npy", "A.npy", "-o", "C.npy", *flags]


@pytest.mark.parametrize("flags", [[], ["--engine", "cpu"], ["--scheme", "fp16x3"], ["--policy", "native"]])
def test_a_named_one_that_cannot_be_opened_is_an_error(operands, flags):
    message = operands.bad(*gemm(*flags), environment={"KINTSUGI_CPU_BLAS": "nope.so"})
    assert 'KINTSUGI_CPU_BLAS = "nope.so" cannot be opened' in message
    assert "No such file or directory" in message and "accepted: the name or path of an OpenBLAS" in message
    assert not (operands.folder / "C.npy").exists()


def test_one_that_is_no_openblas_is_an_error(operands):
    assert "libm.so.6 is not an OpenBLAS" in operands.bad(*gemm(), environment={"KINTSUGI_CPU_BLAS": "libm.so.6"})


def test_kernels_that_are_named_and_do_not_run_are_an_error(operands):
    assert "Abacus" in operands.bad(*gemm(), environment={"KINTSUGI_CPU_BLAS_KERNEL": "Abacus"})


def test_an_engine_that_is_named_needs_no_blas(operands):
    operands.ok(*gemm("--engine", "reference"), environment={"KINTSUGI_CPU_BLAS": "nope.so"})


def test_a_missing_default_is_a_warning_of_the_plan(operands, no_blas):
    (row,) = operands.ok(*gemm("--explain", "--json"), environment=no_blas).json()["rows"]
    assert row["engine"] == "reference"
    (warning,) = row["plan"]["warnings"]
    assert "engine cpu cannot run here" in warning and MANY_TIMES_SLOWER in warning and "scipy-openblas32" in warning
    text = operands.ok(*gemm("--explain"), environment=no_blas).stdout
    assert "Warning: engine cpu cannot run here" in text


def test_a_missing_default_is_a_finding_of_doctor(operands, no_blas):
    findings = operands.ok("doctor", "--json", environment=no_blas).json()["findings"]
    (finding,) = [finding for finding in findings if MANY_TIMES_SLOWER in json.dumps(finding)]
    assert (finding["name"], finding["status"]) == ("engine cpu", "missing")


def test_nothing_is_warned_of_where_an_engine_is_named(operands, no_blas):
    (row,) = operands.ok(*gemm("--explain", "--json", "--engine", "reference"), environment=no_blas).json()["rows"]
    assert row["plan"]["warnings"] == []
    assert MANY_TIMES_SLOWER in operands.bad(*gemm("--engine", "cpu"), environment=no_blas)


def test_a_blas_that_is_there_is_no_warning(operands):
    (row,) = operands.ok(*gemm("--explain", "--json")).json()["rows"]
    if row["engine"] != "cpu":
        pytest.skip("no OpenBLAS here")
    assert row["plan"]["warnings"] == []
