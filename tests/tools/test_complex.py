"""Complex matrices: files, gemm and its check, generate."""

from fractions import Fraction

import numpy
import pytest


def complex_matrix(random, shape, dtype):
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)


def exact_parts(a, b, alpha, beta, c0):
    """alpha a b + beta c0 as pairs of fractions, row by row."""

    def pair(x):
        return Fraction(float(x.real)), Fraction(float(x.imag))

    def times(x, y):
        return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]

    elements = []
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            products = [times(pair(x), pair(y)) for x, y in zip(a[i], b[:, j])]
            product = times(pair(alpha), tuple(map(sum, zip(*products))))
            elements.append([p + q for p, q in zip(product, times(pair(beta), pair(c0[i, j])))])
    return elements


OPS = {"N": lambda x: x, "T": lambda x: x.T, "C": lambda x: x.conj().T}


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("ops", ["NN", "TC", "CN", "NC", "CT"])
@pytest.mark.parametrize("order", ["c", "fortran"])
def test_exact(program, random, validate, dtype, ops, order):
    m, n, k = 4, 3, 9
    a = complex_matrix(random, (m, k) if ops[0] == "N" else (k, m), dtype)
    b = complex_matrix(random, (k, n) if ops[1] == "N" else (n, k), dtype)
    c0 = complex_matrix(random, (m, n), dtype)
    program.save("A.npy", numpy.asfortranarray(a))
    program.save("B.npy", b)
    program.save("C0.npy", c0)
    words = ["--transa", ops[0], "--transb", ops[1], "--alpha", "0.5,-2", "--beta", "0,1.25", "--c", "C0.npy"]
    result = program.ok(
        "gemm", "A.npy", "B.npy", "-o", "C.npy", "--order", order, "--accuracy", "exact", "--check", "--json", *words
    ).json()
    validate(result, "gemm")
    row = result["rows"][0]
    assert row["problem"]["alpha"] == [0.5, -2] and row["problem"]["type"] == {"c8": "c32", "c16": "c64"}[dtype]
    assert row["errors"]["correctly_rounded_fraction"] == 1
    assert row["errors"]["elements_checked"] == 2 * m * n
    c = program.load("C.npy")
    assert c.dtype == dtype and c.flags["F_CONTIGUOUS"] == (order == "fortran")
    wanted = exact_parts(OPS[ops[0]](a), OPS[ops[1]](b), 0.5 - 2j, 1.25j, c0)
    unit = 2.0 ** {"c8": -24, "c16": -53}[dtype]
    for got, exact in zip(c.ravel(), wanted):
        for x, y in ((got.real, exact[0]), (got.imag, exact[1])):
            assert abs(Fraction(float(x)) - y) <= Fraction(unit) * abs(y)


# The check's own figure, computed slowly: a scheme that errs.
def test_check(program, random):
    a, b = complex_matrix(random, (5, 20), "c8"), complex_matrix(random, (20, 4), "c8")
    program.save("A.npy", a)
    program.save("B.npy", b)
    words = ["--alpha", "1,1", "--scheme", "fp16", "--check"]
    row = program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", "--json", *words).json()["rows"][0]
    exact = exact_parts(a, b, 1 + 1j, 0, numpy.zeros((5, 4), "c8"))
    computed = [(Fraction(float(x.real)), Fraction(float(x.imag))) for x in program.load("C.npy").ravel()]
    differences = [abs(p - q) for c, r in zip(computed, exact) for p, q in zip(c, r)]
    assert row["errors"]["largest_error"] == pytest.approx(float(max(differences)), rel=1e-9)
    squares = sum(float(r) ** 2 for element in exact for r in element)
    frobenius = (sum(float(d) ** 2 for d in differences) / squares) ** 0.5
    assert row["errors"]["frobenius_relative"] == pytest.approx(frobenius, rel=1e-9)
    text = program.ok("gemm", "A.npy", "B.npy", *words).stdout
    assert "all 40 real and imaginary parts of C" in text


@pytest.mark.parametrize(
    "accuracy,verdict",
    [
        ("fp64", "within the bound (2k + 8) 2^-53 |A||B| of each part"),
        ("1e-10", "within the tolerance 1e-10 |A||B| of each part"),
        ("exact", "within the accuracy exact: all of what was checked is correctly rounded"),
    ],
)
def test_contracts(program, validate, accuracy, verdict):
    for name, side in (("A.npy", "a"), ("B.npy", "b")):
        document = program.ok("generate", "phi:1", "12x12", "-o", name, "--side", side, "--type", "c64", "--json")
        validate(document.json(), "generate")
        assert document.json()["matrix"]["type"] == "complex128"
    elements = program.load("A.npy")
    assert not numpy.array_equal(elements.real, elements.imag)
    words = ["--accuracy", accuracy, "--policy", "emulate", "--check", "--explain"]
    text = program.ok("gemm", "A.npy", "B.npy", "--transb", "C", *words).stdout
    assert verdict in text
    assert "complex FP64" in text
    document = program.ok("gemm", "A.npy", "B.npy", "--transb", "C", "--json", *words).json()
    validate(document, "gemm")
    assert document["rows"][0]["errors"]["max_componentwise"] <= 1e-10


def test_types(program, random):
    program.save("A.npy", complex_matrix(random, (3, 3), "c16"))
    program.save("B.npy", random.standard_normal((3, 3)))
    assert (
        program.bad("gemm", "A.npy", "B.npy", "-o", "C.npy")
        == "B.npy: holds float64, A.npy holds complex128: give --type c32 or --type c64 for all"
    )
    assert (
        program.bad("gemm", "A.npy", "A.npy", "--type", "fp64", "-o", "C.npy")
        == "A.npy: holds complex128, which --type fp64 would cut to its real parts"
    )
    assert (
        program.bad("gemm", "B.npy", "B.npy", "--alpha", "1,2", "-o", "C.npy")
        == "--alpha: 1,2 has an imaginary part and the operands have none"
    )
    message = "C.mtx: would hold complex elements, which are written as .npy alone"
    assert program.bad("gemm", "A.npy", "A.npy", "-o", "C.mtx") == message
    assert program.bad("generate", "uniform", "3x3", "--type", "c32", "-o", "C.mtx") == message
    assert "explain takes real matrices" in program.bad("explain", "A.npy", "A.npy")
    program.ok("gemm", "A.npy", "B.npy", "--type", "c32", "-o", "C.npy")
    assert program.load("C.npy").dtype == numpy.complex64
