"""KINTSUGI_CPU_INT8, KINTSUGI_CPU_INT52: the kernels that are asked for are those that run, or the engine says why not."""

import re

import numpy
import pytest

# What the quicker kernels execute, and a scheme that they serve.
FORMATS = {
    "int8": ({"avx512f", "avx512bw", "avx512_vnni"}, "int8x6", "fp32"),
    "int52": ({"avx512f", "avx512ifma"}, "int52", "fp64"),
}


def variable(name):
    return f"KINTSUGI_CPU_{name.upper()}"


def can_execute(name, kernels):
    if kernels in ("auto", "generic"):
        return True
    with open("/proc/cpuinfo") as file:
        flags = re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE)
    return FORMATS[name][0] <= set(flags[1].split() if flags else [])


@pytest.mark.parametrize("kernels", ["auto", "generic", "avx512"])
@pytest.mark.parametrize("name", FORMATS)
def test_the_kernels_that_are_asked_for_run(program, name, kernels):
    environment = {variable(name): kernels}
    engines = program.ok("engines", "--json", environment=environment).json()["engines"]
    (engine,) = [engine for engine in engines if engine["name"] == "cpu"]
    if not can_execute(name, kernels):
        assert f'"{kernels}"' in engine["reason"] and "auto, generic" in engine["reason"]
        return
    if not engine["available"]:
        pytest.skip(engine["reason"])
    quickest = "avx512" if can_execute(name, "avx512") else "generic"
    assert f"; {name} kernels {quickest if kernels == 'auto' else kernels}" in engine["details"]
    _, scheme, dtype = FORMATS[name]
    program.ok("generate", "uniform", "150x70", "--dtype", dtype, "-o", "A.npy")
    arguments = ["gemm", "A.npy", "A.npy", "--transb", "T", "--scheme", scheme]
    program.ok(*arguments, "--engine", "cpu", "-o", "C.npy", environment=environment)
    program.ok(*arguments, "--engine", "reference", "-o", "R.npy")
    assert numpy.array_equal(program.load("C.npy"), program.load("R.npy"))


@pytest.mark.parametrize("name", FORMATS)
def test_unknown_kernels_are_an_error(program, name):
    program.ok("generate", "uniform", "8x8", "-o", "A.npy")
    message = program.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", environment={variable(name): "abacus"})
    assert "abacus" in message and "auto, generic, avx512" in message
