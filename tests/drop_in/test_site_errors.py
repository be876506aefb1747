"""Errors of call sites: calls compared with exact ones on the same operands (MixPert, Eq. 10), and which calls are measured."""

import json
import os
import random
import shutil
import subprocess
from fractions import Fraction

import numpy
import pytest
from conftest import CALLS, CUBLAS_CALLS, LIBRARY
from test_cublas_programs import read_report as read_cublas_report
from test_sites import ROUTINES, random_call, write_sites

PYTHON = os.environ.get("TESTED_PYTHON", shutil.which("python3", path="/usr/bin"))


def fractions(array):
    """Elements as pairs of fractions, real and imaginary."""
    return [[(Fraction(float(x.real)), Fraction(float(x.imag))) for x in row] for row in array]


def exact_result(call, pool):
    """A B + C, or A B if beta = 0, of a call with alpha = 1. Each real or imaginary part is rounded once."""
    kind = numpy.dtype(call["type"])

    def matrix(offset, rows, columns, ld):
        first = numpy.frombuffer(pool.tobytes()[offset:], dtype=kind, count=ld * (columns - 1) + rows)
        return numpy.lib.stride_tricks.as_strided(first, (rows, columns), (kind.itemsize, ld * kind.itemsize))
    m, n, k = call["m"], call["n"], call["k"]
    is_syrk = call["routine"] == "syrk"
    a = matrix(call["a"], n if is_syrk else m, k, call["lda"])
    b = a.T if is_syrk else matrix(call["b"], k, n, call["ldb"])
    a, b, c = fractions(a), fractions(b), fractions(matrix(call["c"], m, n, call["ldc"]))
    result = numpy.zeros((m, n), dtype=kind)
    for i in range(m):
        for j in range(n):
            re, im = c[i][j] if call["beta"] else (Fraction(0), Fraction(0))
            for l in range(k):
                (x, y), (u, v) = a[i][l], b[l][j]
                re, im = re + x * u - y * v, im + x * v + y * u
            result[i, j] = float(re) if kind.kind == "f" else complex(float(re), float(im))
    return result


def written(call, pool):
    kind = numpy.dtype(call["type"])
    first = numpy.frombuffer(pool.tobytes()[call["c"]:], dtype=kind, count=call["ldc"] * (call["n"] - 1) + call["m"])
    return numpy.lib.stride_tricks.as_strided(first, (call["m"], call["n"]), (kind.itemsize, call["ldc"] * kind.itemsize))


def squares(call, computed, exact):
    """Sums of squares of the difference and of the exact result; of the written triangle where there is one."""
    part = {"gemm": lambda c: c, "syrk": numpy.triu if call["uplo"] == "U" else numpy.tril}[call["routine"]]
    wide = numpy.clongdouble if computed.dtype.kind == "c" else numpy.longdouble
    difference, exact = part(computed.astype(wide) - exact.astype(wide)), part(exact.astype(wide))
    return numpy.array([(abs(difference)**2).sum(), (abs(exact)**2).sum()])


EACH = ROUTINES.replace("for call in", "for number, call in enumerate(").replace("calls.json\")):", "calls.json\"))):\n    numpy.save(f\"{number}.npy\", pool)")


@pytest.mark.parametrize("seed, rule", [(1, None), (2, None), (3, {"accuracy": "1e-3", "policy": "emulate"}), (4, {"accuracy": "exact", "policy": "emulate"})])
def test_errors_are_those_of_fractions(preloaded, seed, rule):
    """ctypes calls every function from one place of libffi, so that all calls are of one site."""
    generator = random.Random(seed)
    calls = [random_call(generator) for _ in range(12)]
    numpy.random.default_rng(seed).integers(0, 60, 1 << 15, dtype=numpy.uint8).tofile(preloaded.folder / "pool.bin")
    (preloaded.folder / "calls.json").write_text(json.dumps(calls))
    (preloaded.folder / "run.py").write_text(EACH)
    words = [PYTHON, "run.py", LIBRARY]
    (name,) = [site["site"] for site in preloaded.report(*words, sites=write_sites(preloaded, {}))["sites"] if "ffi" in site["module"]]
    sites = write_sites(preloaded, {name: rule} if rule else {}, error_samples=100)
    (error,) = [site["error"] for site in preloaded.report(*words, sites=sites)["sites"] if site["site"] == name]
    pools = [numpy.load(preloaded.folder / f"{number}.npy") for number in range(len(calls))] + [numpy.load(preloaded.folder / "last.npy")]
    expected = numpy.array([squares(call, written(call, after), exact_result(call, before))
                            for call, before, after in zip(calls, pools, pools[1:])])
    total = expected.sum(axis=0)
    assert error["calls"] == len(calls)
    assert error["relative"] == pytest.approx(float(numpy.sqrt(total[0] / total[1])), rel=1e-6)
    assert error["largest"] == pytest.approx(float(numpy.sqrt(expected[:, 0] / expected[:, 1]).max()), rel=1e-6)
    assert (error["largest"] == 0) == (rule is not None and rule["accuracy"] == "exact")


# Calls one site as often as it is told to.
LOOP = r"""
#include <stdio.h>
#include <stdlib.h>
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
int main(int count, char** words) {
  const int n = 2;
  const float one = 1, a[4] = {1.1f, 2.2f, 3.3f, 4.4f};
  float c[4] = {0};
  for (int i = 0; i < atoi(words[1]); ++i) sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &one, c, &n);
  for (int i = 0; i < 4; ++i) printf("%a\n", c[i]);
  return 0;
}
"""


def held(calls, samples):
    """Number of measured calls: every d-th call, d the smallest power of two for which they are fewer than twice the samples."""
    distance = 1
    while len(range(0, calls, distance)) >= 2 * samples:
        distance *= 2
    return len(range(0, calls, distance))


def test_measured_calls_have_equal_distances(preloaded):
    (preloaded.folder / "loop.c").write_text(LOOP)
    subprocess.run([os.environ["TESTED_CC"], "-O1", "-o", preloaded.folder / "loop", preloaded.folder / "loop.c", "-Wl,--no-as-needed", LIBRARY,
                    f"-Wl,-rpath,{os.path.dirname(LIBRARY)}"], check=True)
    alone = preloaded.ok("./loop", 100, sites=write_sites(preloaded, {}), policy="native").stdout
    for calls, samples in ((1, 1), (2, 1), (7, 4), (8, 4), (100, 4), (100, 1), (100, 60)):
        sites = write_sites(preloaded, {}, error_samples=samples)
        result = preloaded.report("./loop", calls, sites=sites)
        assert [site["error"]["calls"] for site in result["sites"]] == [held(calls, samples)], (calls, samples)
    measured = preloaded.ok("./loop", 100, sites=write_sites(preloaded, {}, error_samples=4), report=str(preloaded.folder / "report.json"))
    assert measured.stdout == alone, "the program sees its own results"
    assert [site["error"] for site in preloaded.report("./loop", 3, sites=write_sites(preloaded, {}))["sites"]] == [None]


@pytest.mark.parametrize("member, value, expected", [
    ("error_samples", -1, "error_samples = -1 is not in 0 ... 1048576"), ("error_samples", "4", 'error_samples = "4" is not in'),
    ("frames", 0, "frames = 0 is not in 1 ... 64"), ("frames", 65, "frames = 65 is not in 1 ... 64")])
def test_bad_members(preloaded, member, value, expected):
    (preloaded.folder / "bad.json").write_text(json.dumps({"format": "kintsugi.sites", "format_version": 1, "sites": {}, member: value}))
    result = preloaded.ok(CALLS, "random", "--cases", 1, "--forwarded", sites="bad.json")
    assert expected in result.stderr and "emulation is off" in result.stderr


def with_fakes(preloaded, *words, rules, **members):
    """Sites of a run of cublas_calls by name, and the lines that it printed. The fake cuBLAS multiplies."""
    if not CUBLAS_CALLS:
        pytest.skip("configured without the drop-in for cuBLAS")
    preloaded.environment |= {"FAKE_CUDA_MULTIPLY": "1", "OMP_WAIT_POLICY": "passive"}
    result = preloaded(CUBLAS_CALLS, *words, sites=write_sites(preloaded, rules, **members), report=str(preloaded.folder / "report.json"))
    return {site["site"]: site for site in read_cublas_report(preloaded.folder / "report.json")["sites"]}, result.stdout.splitlines()


def test_all_functions_of_cublas(preloaded):
    """Random calls: sites whose rule is exact have no error, and results stay right."""
    words = ["random", "--seed", 5, "--cases", 150]
    native, _ = with_fakes(preloaded, *words, "--forwarded", rules={}, error_samples=8)
    measured = {name for name, site in native.items() if site["error"]}
    assert len(measured) > 10
    exact, lines = with_fakes(preloaded, *words, rules={name: {"accuracy": "exact", "policy": "emulate"} for name in native}, error_samples=8)
    # The program also counts the exact calls as executions of Kintsugi.
    assert [line for line in lines if line.startswith("FAILED") and "calls reached Kintsugi" not in line] == []
    assert {site["error"]["relative"] for site in exact.values() if site["error"]} == {0}
    assert {name for name, site in exact.items() if site["error"]} == measured


@pytest.mark.parametrize("rule", [None, {"scheme": "fp16"}, {"scheme": "fp16x3"}])
def test_errors_of_cublas_are_those_of_the_program(preloaded, rule):
    """Two callers of one wrapper, which two frames tell apart; they compute their errors themselves."""
    sites, lines = with_fakes(preloaded, "errors", rules={}, frames=2, error_samples=8)
    assert [site["function"] for site in sites.values()] == ["errors_wrapper"] * 2
    if rule:
        sites, lines = with_fakes(preloaded, "errors", rules={name: rule for name in sites}, frames=2, error_samples=8)
    expected = {line.split()[0]: [float(number) for number in line.split()[1:]] for line in lines}
    found = {site["callers"][0]["function"]: site["error"] for site in sites.values()}
    assert found.keys() == expected.keys() == {"errors_first", "errors_second"}
    for caller, (relative, largest) in expected.items():
        assert found[caller] == {"calls": 3, "relative": pytest.approx(relative, rel=1e-9), "largest": pytest.approx(largest, rel=1e-9)}
        assert (largest > 1e-5) == (rule == {"scheme": "fp16"}), "another error for every rule"
