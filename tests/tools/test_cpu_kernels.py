"""KINTSUGI_CPU_INT8, KINTSUGI_CPU_INT52: the kernels that are asked for are those that run, or the engine says why not."""

import re

import numpy
import pytest

# The faster kernel families, fastest first, and a scheme that each of them computes.
FORMATS = {
    "int8": (
        {
            "amx": {"avx512f", "avx512bw", "amx_tile", "amx_int8"},
            "avx512": {"avx512f", "avx512bw", "avx512_vnni"},
            "generic": set(),
        },
        "int8x6",
        "fp32",
    ),
    "int52": ({"avx512": {"avx512f", "avx512ifma"}, "generic": set()}, "int52", "fp64"),
}
CHOICES = [(name, kernels) for name, (families, _, _) in FORMATS.items() for kernels in ("auto", *families)]


def variable(name):
    return f"KINTSUGI_CPU_{name.upper()}"


def executable(name):
    """The families that this CPU can execute, quickest first."""
    with open("/proc/cpuinfo") as file:
        flags = re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE)
    present = set(flags[1].split() if flags else [])
    return [family for family, wanted in FORMATS[name][0].items() if wanted <= present]


@pytest.mark.parametrize("name,kernels", CHOICES)
def test_the_kernels_that_are_asked_for_run(program, name, kernels):
    environment = {variable(name): kernels}
    engines = program.ok("engines", "--json", environment=environment).json()["engines"]
    (engine,) = [engine for engine in engines if engine["name"] == "cpu"]
    families = executable(name)
    if kernels not in ("auto", *families):
        assert f'"{kernels}"' in engine["reason"] and ", ".join(["auto", *families]) in engine["reason"]
        return
    if not engine["available"]:
        pytest.skip(engine["reason"])
    assert f"; {name} kernels {families[0] if kernels == 'auto' else kernels}" in engine["details"]
    _, scheme, dtype = FORMATS[name]
    program.ok("generate", "uniform", "150x70", "--type", dtype, "-o", "A.npy")
    arguments = ["gemm", "A.npy", "A.npy", "--transb", "T", "--scheme", scheme]
    program.ok(*arguments, "--engine", "cpu", "-o", "C.npy", environment=environment)
    program.ok(*arguments, "--engine", "reference", "-o", "R.npy")
    assert numpy.array_equal(program.load("C.npy"), program.load("R.npy"))


@pytest.mark.parametrize("name", FORMATS)
def test_unknown_kernels_are_an_error(program, name):
    program.ok("generate", "uniform", "8x8", "-o", "A.npy")
    message = program.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", environment={variable(name): "abacus"})
    assert "abacus" in message and "auto, generic, avx512" in message
