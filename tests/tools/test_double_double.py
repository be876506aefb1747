"""Double-double matrices: files, gemm and its check, generate."""

from fractions import Fraction

import numpy
import pytest


def pairs(random, shape):
    hi = random.standard_normal(shape)
    lo = numpy.spacing(numpy.abs(hi)) * random.uniform(-0.5, 0.5, shape)
    return numpy.stack([hi + lo, lo - ((hi + lo) - hi)], axis=-1)


def rational(pair):
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def rounded(x):
    return [float(x), float(x - Fraction(float(x)))]


@pytest.mark.parametrize("ops", ["NN", "TC"])
@pytest.mark.parametrize("order", ["c", "fortran"])
def test_exact(program, random, validate, ops, order):
    m, n, k = 4, 3, 9
    a, b, c0 = pairs(random, (m, k)), pairs(random, (k, n)), pairs(random, (m, n))
    program.save("A.npy", a if ops[0] == "N" else a.swapaxes(0, 1).copy())
    program.save("B.npy", b if ops[1] == "N" else b.swapaxes(0, 1).copy())
    program.save("C0.npy", c0)
    words = ["--transa", ops[0], "--transb", ops[1], "--alpha", "0.1,1e-18", "--beta", "-2", "--c", "C0.npy"]
    result = program.ok(
        "gemm", "A.npy", "B.npy", "-o", "C.npy", "--order", order, "--accuracy", "exact", "--check", "--json",
        "--explain", *words
    ).json()
    validate(result, "gemm")
    row = result["rows"][0]
    assert row["problem"]["type"] == "dd" and row["problem"]["alpha"] == [0.1, 1e-18]
    assert row["errors"]["correctly_rounded_fraction"] == 1
    assert row["errors"]["elements_checked"] == m * n and 0 < row["errors"]["max_ulp"] <= 0.5
    c = program.load("C.npy")
    assert c.dtype == "f8" and c.shape == (m, n, 2)
    alpha = rational([0.1, 1e-18])
    for i, j in numpy.ndindex(m, n):
        exact = alpha * sum(rational(x) * rational(y) for x, y in zip(a[i], b[:, j])) - 2 * rational(c0[i, j])
        assert list(c[i, j]) == rounded(exact)


# The contract, and a scheme that misses it.
def test_check(program, random):
    program.save("A.npy", pairs(random, (6, 20)))
    program.save("B.npy", pairs(random, (20, 5)))
    text = program.ok("gemm", "A.npy", "B.npy", "--check", "--compare", "ozaki2,ozaki2:moduli=16,native").stdout
    assert "within the bound (k + 8) 2^-104 |A||B|" in text and "of the dd contract" in text
    assert "ozaki2:moduli=16: beyond the bound" in text


def test_types_meet_where_they_are_named(program, random):
    program.save("A.npy", pairs(random, (3, 4)))
    program.save("B.npy", random.standard_normal((4, 2)).astype("f4"))
    message = program.bad("gemm", "A.npy", "B.npy", "--check")
    assert "holds float32, A.npy holds double-double: give --type fp64 or --type dd for all" in message
    text = program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", "--type", "dd").stdout
    assert "B.npy: float32 read as double-double, nothing is lost" in text and "3 x 2 double-double" in text
    text = program.ok("gemm", "A.npy", "B.npy", "-o", "D.npy", "--type", "fp64").stdout
    assert "A.npy: double-double rounded once to float64 (nearest), 12 of 12 elements changed" in text
    assert program.load("D.npy").shape == (3, 2)


# Rounded once: hi alone lies on a tie.
def test_rounding_to_float32_sees_both_words(program):
    tie = 1 + 2.0**-24
    program.save("A.npy", numpy.array([[[tie, 2.0**-80], [tie, -(2.0**-80)], [tie, 0]]]))
    program.save("I.npy", numpy.eye(3, dtype="f4"))
    program.ok("gemm", "A.npy", "I.npy", "-o", "C.npy", "--type", "fp32")
    assert list(program.load("C.npy")[0]) == [1 + 2.0**-23, 1, 1]


def test_generate(program, validate):
    result = program.ok("generate", "phi:1", "5x7", "-o", "A.npy", "--type", "dd", "--seed", "4", "--json").json()
    validate(result, "generate")
    assert result["matrix"]["type"] == "double-double"
    a = program.load("A.npy")
    assert a.shape == (5, 7, 2) and (a[..., 0] == a[..., 0] + a[..., 1]).all() and (a[..., 1] != 0).any()
    program.ok("generate", "phi:1", "5x7", "-o", "B.npy", "--type", "fp64", "--seed", "4")
    assert (program.load("B.npy") == a[..., 0]).all()


def test_files_that_hold_no_pairs(program, random):
    program.save("three.npy", random.standard_normal((3, 4, 3)))
    program.save("fortran.npy", numpy.asfortranarray(pairs(random, (3, 4))))
    for name in ("three.npy", "fortran.npy"):
        assert "(rows, columns, 2) of float64 in C order, which are double-double numbers" in program.bad("gemm", name, name, "--check")
    assert "double-double elements, which are written as .npy alone" in program.bad(
        "generate", "uniform", "2x2", "-o", "A.mtx", "--type", "dd")
