"""KINTSUGI_CPU_INT8: the kernels that are asked for are those that run, or the engine says why they cannot."""

import re

import numpy
import pytest


def cpu_engine(program, kernels):
    environment = {"KINTSUGI_CPU_INT8": kernels}
    engines = program.ok("engines", "--json", environment=environment).json()["engines"]
    (engine,) = [engine for engine in engines if engine["name"] == "cpu"]
    return engine


def can_execute(kernels):
    if kernels in ("auto", "generic"):
        return True
    with open("/proc/cpuinfo") as file:
        flags = re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE)
    return {"avx512f", "avx512bw", "avx512_vnni"} <= set(flags[1].split() if flags else [])


@pytest.mark.parametrize("kernels", ["auto", "generic", "avx512"])
def test_the_kernels_that_are_asked_for_run(program, kernels):
    engine = cpu_engine(program, kernels)
    if not can_execute(kernels):
        assert f'"{kernels}"' in engine["reason"] and "auto, generic" in engine["reason"]
        return
    if not engine["available"]:
        pytest.skip(engine["reason"])
    quickest = "avx512" if can_execute("avx512") else "generic"
    assert engine["details"].endswith(f"int8 kernels {quickest if kernels == 'auto' else kernels}")
    program.ok("generate", "uniform", "150x70", "-o", "A.npy")
    arguments = ["gemm", "A.npy", "A.npy", "--transb", "T", "--scheme", "int8x6"]
    program.ok(*arguments, "--engine", "cpu", "-o", "C.npy", environment={"KINTSUGI_CPU_INT8": kernels})
    program.ok(*arguments, "--engine", "reference", "-o", "R.npy")
    assert numpy.array_equal(program.load("C.npy"), program.load("R.npy"))


def test_unknown_kernels_are_an_error(program):
    program.ok("generate", "uniform", "8x8", "-o", "A.npy")
    message = program.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", environment={"KINTSUGI_CPU_INT8": "abacus"})
    assert "abacus" in message and "auto, generic, avx512" in message
