"""kintsugi gemm against numpy's float64."""

import itertools

import numpy
import pytest

TRANSPOSES = ["N", "T", "C"]


def op(matrix, trans):
    return matrix if trans == "N" else matrix.T


def tolerance(a, b, dtype, alpha=1.0, beta=0.0, c0=0.0):
    """The contract's bound, with room for the scalars' roundings."""
    k = a.shape[1]
    unit = 2.0**-24 if dtype == "f4" else 2.0**-52
    magnitude = abs(alpha) * (abs(a).astype("f8") @ abs(b).astype("f8")) + abs(beta) * abs(c0)
    return (k + 8) * unit * magnitude + 1e-300


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("order_c", ["c", "fortran"])
def test_transposes_and_orders(program, random, dtype, order_c):
    m, n, k = 6, 5, 9
    for transa, transb, order_a, order_b in itertools.product(TRANSPOSES, TRANSPOSES, "CF", "CF"):
        a = random.standard_normal((m, k) if transa == "N" else (k, m))
        b = random.standard_normal((k, n) if transb == "N" else (n, k))
        a, b = numpy.asarray(a, dtype, order=order_a), numpy.asarray(b, dtype, order=order_b)
        program.save("A.npy", a)
        program.save("B.npy", b)
        flags = ["--transa", transa, "--transb", transb, "--order", order_c]
        program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", *flags)
        c = program.load("C.npy")
        exact = op(a, transa).astype("f8") @ op(b, transb).astype("f8")
        assert c.dtype == numpy.dtype(dtype) and c.shape == (m, n)
        assert c.flags.f_contiguous == (order_c == "fortran")
        assert (abs(c - exact) <= tolerance(op(a, transa), op(b, transb), dtype)).all(), flags


def test_orders_do_not_change_bits(program, random):
    a = random.standard_normal((17, 70)).astype("f4")
    b = random.standard_normal((70, 13)).astype("f4")
    results = []
    for order_a, order_b, order_c in itertools.product("CF", "CF", ["c", "fortran"]):
        program.save("A.npy", numpy.asarray(a, order=order_a))
        program.save("B.npy", numpy.asarray(b, order=order_b))
        flags = ["--scheme", "fp16x3-wide", "--engine", "reference", "--order", order_c]
        program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", *flags)
        results.append(numpy.ascontiguousarray(program.load("C.npy")))
    assert all(numpy.array_equal(result, results[0]) for result in results)


def test_lower_case_transposes(program, random):
    a = random.standard_normal((4, 3)).astype("f4")
    program.save("A.npy", a)
    program.ok("gemm", "A.npy", "A.npy", "-o", "C.npy", "--transa", "t")
    exact = a.T.astype("f8") @ a
    assert (abs(program.load("C.npy") - exact) <= tolerance(a.T, a, "f4")).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("order_0,order_c", itertools.product("CF", ["c", "fortran"]))
def test_alpha_and_beta(program, random, dtype, order_0, order_c):
    a = random.standard_normal((8, 11)).astype(dtype)
    b = random.standard_normal((11, 7)).astype(dtype)
    c0 = numpy.asarray(random.standard_normal((8, 7)), dtype, order=order_0)
    for name, matrix in (("A.npy", a), ("B.npy", b), ("C0.npy", c0)):
        program.save(name, matrix)
    old = (program.folder / "C0.npy").read_bytes()
    for alpha, beta in [(-2.5, 0.75), (0.0, -1.0), (1e-3, 1.0), (0.3, 0.0)]:
        flags = ["--alpha", alpha, "--beta", beta, "--c", "C0.npy", "--order", order_c]
        program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", *flags)
        scalar = numpy.dtype(dtype).type
        exact = float(scalar(alpha)) * (a.astype("f8") @ b) + float(scalar(beta)) * c0.astype("f8")
        assert (abs(program.load("C.npy") - exact) <= tolerance(a, b, dtype, alpha, beta, c0)).all()
    assert (program.folder / "C0.npy").read_bytes() == old


def test_c_may_be_replaced(program, random):
    a, c0 = random.standard_normal((5, 5)).astype("f4"), random.standard_normal((5, 5)).astype("f4")
    program.save("A.npy", a)
    program.save("C.npy", c0)
    program.ok("gemm", "A.npy", "A.npy", "--beta", "1", "--c", "C.npy", "-o", "C.npy")
    exact = a.astype("f8") @ a + c0
    assert (abs(program.load("C.npy") - exact) <= tolerance(a, a, "f4", 1, 1, c0)).all()


def test_beta_without_reading_c(program):
    program.save("A.npy", numpy.ones((2, 2), "f4"))
    program.save("C0.npy", numpy.full((2, 2), numpy.nan, "f4"))
    program.ok("gemm", "A.npy", "A.npy", "--beta", "0", "--c", "C0.npy", "-o", "C.npy")
    assert numpy.array_equal(program.load("C.npy"), numpy.full((2, 2), 2, "f4"))


def test_operands_are_not_changed(program, random):
    a = random.standard_normal((30, 30)).astype("f4")
    program.save("A.npy", a)
    program.save("B.npy", a)
    before = [(program.folder / name).read_bytes() for name in ("A.npy", "B.npy")]
    program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", "--check", "--compare", "fp16,native")
    assert before == [(program.folder / name).read_bytes() for name in ("A.npy", "B.npy")]


def test_dtype_rounds_once_and_says_so(program, random):
    a = random.standard_normal((6, 6))
    a[0, 0], a[1, 1] = 0.5, 1e300
    program.save("A.npy", a)
    program.save("I.npy", numpy.eye(6, dtype="f4"))
    result = program.ok("gemm", "I.npy", "A.npy", "-o", "C.npy", "--type", "fp32", "--policy", "native")
    note = "A.npy: float64 rounded once to float32 (nearest), 35 of 36 elements changed, 1 of them to infinity"
    assert note in result.stdout.splitlines()
    program.save("A.npy", numpy.delete(a, 1, axis=1)[:5])
    program.save("I.npy", numpy.eye(5, dtype="f4"))
    program.ok("gemm", "I.npy", "A.npy", "-o", "C.npy", "--type", "fp32", "--policy", "native")
    expected = program.load("A.npy").astype("f4")
    assert program.load("C.npy").dtype == "f4" and numpy.array_equal(program.load("C.npy"), expected)


def test_dtype_widens(program, random):
    a = random.standard_normal((6, 6)).astype("f4")
    program.save("A.npy", a)
    result = program.ok("gemm", "A.npy", "A.npy", "-o", "C.npy", "--type", "fp64")
    assert "A.npy: float32 read as float64, nothing is lost" in result.stdout
    c, exact = program.load("C.npy"), a.astype("f8") @ a.astype("f8")
    assert c.dtype == "f8" and (abs(c - exact) <= tolerance(a, a, "f8")).all()


def test_schemes_are_obeyed(program, random, validate):
    program.save("A.npy", random.standard_normal((64, 64)).astype("f4"))
    errors = {}
    for scheme in ("fp16", "fp16x3", "fp16x3-wide", "markidis"):
        flags = ["--scheme", scheme, "--engine", "reference", "--check", "--json"]
        document = program.ok("gemm", "A.npy", "A.npy", *flags).json()
        validate(document, "gemm")
        (row,) = document["rows"]
        assert row["scheme"] == scheme and row["engine"] == "reference"
        errors[scheme] = row["errors"]["frobenius_relative"]
    assert errors["fp16"] > 1e-4 > errors["markidis"] > errors["fp16x3-wide"]


def test_human_output(program, random):
    program.save("A.npy", random.standard_normal((48, 48)).astype("f4"))
    flags = ["--scheme", "fp16x3-wide", "--explain", "--check", "--compare", "fp16,native"]
    lines = program.ok("gemm", "A.npy", "A.npy", "-o", "C.npy", *flags).stdout.splitlines()
    heads = "scheme engine accumulator max componentwise frobenius max relative MRED correctly rounded time"
    (at,) = [i for i, line in enumerate(lines) if line.startswith("scheme ") and "frobenius" in line]
    assert lines[at].split() == heads.split()
    assert [line.split()[0] for line in lines[at + 2 : at + 5]] == ["fp16x3-wide", "fp16", "native"]
    assert len({len(line) for line in lines[at : at + 5]}) == 1, "the columns are aligned"
    words = " ".join(line.strip() for line in lines[:at])
    for part in ("fp16x3-wide", "2^-12 (a1 b0 + a0 b1) + a0 b0", "added outside the engine every 64", "Ran: fp16x3-wide;"):
        assert part in words, words
    assert any(line == "errors against the exact result, all 2304 elements of C" for line in lines)
    assert any(line.startswith("C.npy: 48 x 48 float32, fp16x3-wide on ") for line in lines)


def test_output_is_optional_only_with_something_to_say(program):
    program.save("A.npy", numpy.ones((2, 2), "f4"))
    program.ok("gemm", "A.npy", "A.npy", "--explain")
    program.ok("gemm", "A.npy", "A.npy", "--check")
    message = program.bad("gemm", "A.npy", "A.npy")
    assert message == "-o: a file for C is needed, unless --check or --explain is given"
