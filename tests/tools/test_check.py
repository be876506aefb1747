"""--check against exact fractions: every error of the table, computed slowly."""

import json
import math
from fractions import Fraction

import numpy
import pytest

SIGNIFICAND = {"f4": 24, "f8": 53}
SMALLEST_EXPONENT = {"f4": -126, "f8": -1022}


def exponent(x):
    """e with 2^e <= |x| < 2^(e + 1)."""
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def unit(x, dtype):
    """The unit in the last place of dtype at x."""
    return Fraction(2) ** (max(exponent(x), SMALLEST_EXPONENT[dtype]) - SIGNIFICAND[dtype] + 1)


def rounded(x, dtype):
    """x to nearest, ties to even; a Fraction's round() does just that to integers."""
    return Fraction(0) if x == 0 else round(x / unit(x, dtype)) * unit(x, dtype)


def exact_product(a, b, alpha, beta, c0):
    a, b, c0 = ([[Fraction(float(x)) for x in row] for row in matrix] for matrix in (a, b, c0))
    columns = list(zip(*b))
    dots = [[[x * y for x, y in zip(row, column)] for column in columns] for row in a]
    exact = [[alpha * sum(dot) + beta * c for dot, c in zip(row, cs)] for row, cs in zip(dots, c0)]
    absolute = [
        [abs(alpha) * sum(map(abs, dot)) + abs(beta * c) for dot, c in zip(row, cs)] for row, cs in zip(dots, c0)
    ]
    return sum(exact, []), sum(absolute, [])


def errors(computed, exact, absolute, native, dtype):
    difference = [abs(c - r) for c, r in zip(computed, exact)]
    relative = [d / abs(r) for d, r in zip(difference, exact)]
    return {
        "frobenius_relative": math.sqrt(sum(d * d for d in difference) / sum(r * r for r in exact)),
        "max_relative": max(relative),
        "mean_relative": sum(relative) / len(relative),
        "max_componentwise": max(d / s for d, s in zip(difference, absolute)),
        "max_ulp": max(d / unit(r, dtype) for d, r in zip(difference, exact)),
        "correctly_rounded_fraction": sum(c == rounded(r, dtype) for c, r in zip(computed, exact)) / len(exact),
        "le_gemm_max_error": max(abs(c - s) / (abs(c) + abs(s)) if c != s else 0 for c, s in zip(computed, native)),
        "le_gemm_mred": sum(abs(c - s) / abs(s) for c, s in zip(computed, native)) / len(exact),
        "largest_error": max(difference),
    }


def fractions(matrix):
    return [Fraction(float(x)) for x in matrix.ravel()]


@pytest.mark.parametrize("dtype,scheme", [("f4", "fp16"), ("f4", "fp16x3-wide"), ("f4", "native"), ("f8", "native")])
@pytest.mark.parametrize("alpha,beta", [(1.0, 0.0), (-0.7, 1.3)])
def test_errors_against_fractions(program, random, dtype, scheme, alpha, beta):
    m, n, k = 6, 7, 40
    a = (random.standard_normal((m, k)) * numpy.exp(random.standard_normal((m, k)))).astype(dtype)
    b = random.standard_normal((k, n)).astype(dtype)
    c0 = random.standard_normal((m, n)).astype(dtype)
    for name, matrix in (("A.npy", a), ("B.npy", b), ("C0.npy", c0)):
        program.save(name, matrix)
    scalars = ["--alpha", alpha, "--beta", beta, "--c", "C0.npy"]
    choice = ["--policy", "native"] if scheme == "native" else ["--scheme", scheme]
    document = program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", "--check", "--json", *scalars, *choice).json()
    program.ok("gemm", "A.npy", "B.npy", "-o", "S.npy", "--policy", "native", *scalars)
    scalar = numpy.dtype(dtype).type
    exact, absolute = exact_product(a, b, Fraction(float(scalar(alpha))), Fraction(float(scalar(beta))), c0)
    expected = errors(fractions(program.load("C.npy")), exact, absolute, fractions(program.load("S.npy")), dtype)
    found = document["rows"][0]["errors"]
    assert found["elements_checked"] == found["elements_total"] == m * n
    for name, value in expected.items():
        assert found[name] == pytest.approx(float(value), rel=1e-9, abs=0), name


def test_transposed_operands_are_checked_as_such(program, random):
    a, b = random.standard_normal((9, 5)).astype("f4"), random.standard_normal((4, 9)).astype("f4")
    program.save("A.npy", a)
    program.save("B.npy", numpy.asfortranarray(b))
    flags = ["--transa", "T", "--transb", "C", "--check", "--json", "--order", "fortran"]
    (row,) = program.ok("gemm", "A.npy", "B.npy", *flags).json()["rows"]
    assert row["problem"]["m"] == 5 and row["problem"]["n"] == 4 and row["problem"]["k"] == 9
    assert 0 < row["errors"]["max_componentwise"] < 2e-7
    assert row["errors"]["within_contract_bound"]


def test_a_wrong_result_would_be_seen(program, random):
    """single fp16 breaks the contract, and the table says so."""
    program.save("A.npy", random.standard_normal((20, 20)).astype("f4"))
    result = program.ok("gemm", "A.npy", "A.npy", "--check", "--scheme", "fp16", "--compare", "fp16x3-wide")
    lines = result.stdout.splitlines()
    assert any(line.startswith("fp16: beyond the bound (k + 8) 2^-24") for line in lines)
    assert any(line.startswith("fp16x3-wide: within the bound (k + 8) 2^-24") for line in lines)


def test_zeros_and_special_values_are_told(program):
    a = numpy.array([[1, -1], [numpy.nan, 0], [numpy.inf, 0]], "f4")
    program.save("A.npy", a)
    program.save("B.npy", numpy.ones((2, 2), "f4"))
    result = program.ok("gemm", "A.npy", "B.npy", "--check", "--policy", "native")
    assert "native: 2 elements whose exact value is 0" in result.stdout
    assert "native: 4 elements are NaN or infinite as they must be" in result.stdout
    (row,) = program.ok("gemm", "A.npy", "B.npy", "--check", "--policy", "native", "--json").json()["rows"]
    assert row["errors"]["special_references"] == 4 and row["errors"]["special_mismatches"] == 0
    assert row["errors"]["max_relative"] == 0


def test_large_products_are_sampled(program):
    program.ok("generate", "uniform", "800x800", "-o", "A.npy")
    program.ok("generate", "uniform", "800x800", "-o", "B.npy", "--side", "b")
    result = program.ok("gemm", "A.npy", "B.npy", "--check", "--policy", "native")
    assert "a sample of 4096 of the 640000 elements of C (seed 1)" in result.stdout
    document = program.ok("gemm", "A.npy", "B.npy", "--check", "--policy", "native", "--json").json()
    assert document["rows"][0]["errors"]["elements_checked"] == 4096 and document["seed"] == 1


@pytest.fixture
def uniform(program):
    program.ok("generate", "uniform", "40x40", "-o", "A.npy")
    return program


def test_a_scheme_and_an_accuracy_that_it_cannot_give_are_an_error(uniform):
    for scheme, accuracy in [("fp16", "exact"), ("fp16", "fp32"), ("bf16x9", "exact"), ("fp16x3", "1e-8"), ("ozaki2", "exact")]:
        message = uniform.bad("gemm", "A.npy", "A.npy", "--check", "--scheme", scheme, "--accuracy", accuracy)
        assert "contradict each other" in message and scheme in message and accuracy in message


def contract_of(program, *flags, status):
    result = program("gemm", "A.npy", "A.npy", "--check", "--json", *flags)
    assert result.status == status, result.stderr
    document = json.loads(result.stdout)
    return document["rows"][0]["contract"], result.stderr


def test_a_named_accuracy_judges_a_named_scheme(uniform, validate):
    """FP16 rounds 1 + 2^-11 to 1, which loses 2^-10 of a product of two."""
    uniform.save("A.npy", numpy.full((4, 4), 1 + 2.0**-11, "f4"))
    contract, _ = contract_of(uniform, "--scheme", "fp16", "--accuracy", "1e-2", status=0)
    assert contract == {"accuracy": "1e-2", "coefficient": 0.01, "named": True, "met": True}
    contract, error = contract_of(uniform, "--scheme", "fp16", "--accuracy", "4e-4", status=1)
    assert contract == {"accuracy": "4e-4", "coefficient": 4e-4, "named": True, "met": False}
    assert error == "kintsugi: gemm: the error of C is larger than the requested accuracy 4e-4 allows\n"
    contract, _ = contract_of(uniform, "--scheme", "fp16", status=0)
    assert contract["accuracy"] == "fp32" and not contract["named"] and not contract["met"]
    contract, _ = contract_of(uniform, "--scheme", "superaccumulator", "--accuracy", "exact", status=0)
    assert contract == {"accuracy": "exact", "coefficient": 0, "named": True, "met": True}
    result = uniform.ok("gemm", "A.npy", "A.npy", "--check", "--json", "--accuracy", "exact")
    validate(result.json(), "gemm")


@pytest.mark.parametrize("rounding", ["nearest", "up", "down", "zero"])
def test_exact_is_judged_in_its_rounding_mode(uniform, rounding):
    document = uniform.ok("gemm", "A.npy", "A.npy", "--check", "--json", "--accuracy", "exact", "--rounding", rounding).json()
    row = document["rows"][0]
    assert row["contract"]["met"] and row["errors"]["correctly_rounded_fraction"] == 1


def test_the_nearer_of_a_scheme_and_an_accuracy_that_it_cannot_give_counts(uniform):
    document = uniform.ok("gemm", "A.npy", "A.npy", "--check", "--json", "--scheme", "fp16",
                          environment={"KINTSUGI_ACCURACY": "exact"}).json()
    assert document["rows"][0]["scheme"] == "fp16" and not document["rows"][0]["contract"]["named"]
    document = uniform.ok("gemm", "A.npy", "A.npy", "--check", "--json", "--accuracy", "exact",
                          environment={"KINTSUGI_SCHEME": "fp16"}).json()
    assert document["rows"][0]["scheme"] != "fp16" and document["rows"][0]["contract"]["met"]


def test_progress_is_for_terminals(program):
    import os
    import pty
    import subprocess

    program.ok("generate", "uniform", "300x300", "-o", "A.npy")
    words = ["gemm", "A.npy", "A.npy", "--check", "--policy", "native"]
    assert program(*words).stderr == ""
    from conftest import PROGRAM

    ours, theirs = pty.openpty()
    subprocess.run(
        [PROGRAM, *words], cwd=program.folder, env=program.environment, stdout=subprocess.DEVNULL, stderr=theirs, check=True
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "checking [" in shown and shown.endswith("\r\x1b[K"), "a bar that is wiped at the end"


ACCURACIES = ["fp32", "exact", "reproducible", "1e-3"]


@pytest.mark.parametrize("policy", [None, "emulate"])
def test_accuracies_are_compared(program, random, policy):
    """Beside schemes, each checked by itself; the policy holds for them."""
    program.save("A.npy", random.standard_normal((30, 30)).astype("f4"))
    words = ["gemm", "A.npy", "A.npy", "--check", "--scheme" if policy is None else "--accuracy", "fp16" if policy is None else "1e-2",
             "--compare", ",".join(["bf16", *ACCURACIES]), *(["--policy", policy] if policy else [])]
    rows = program.ok(*words, "--json").json()["rows"]
    assert [row["contract"]["accuracy"] for row in rows[2:]] == ACCURACIES
    assert all(row["contract"]["named"] and row["contract"]["met"] for row in rows[2:])
    assert rows[3]["errors"]["correctly_rounded_fraction"] == 1 > rows[1]["errors"]["correctly_rounded_fraction"]
    assert (rows[2]["scheme"] == "native") == (policy is None)
    text = program.ok(*words).stdout
    for row, accuracy in zip(rows[2:], ACCURACIES):
        assert f"\n{accuracy} ({row['scheme']})" in text and f"\n{accuracy} ({row['scheme']}): within" in text
