"""kintsugi.solve beside solutions in fractions: matrices of integers whose condition reaches 1e15, every element of the
solution judged. The seed is new in every run; CASES_SEED=7 takes that one. Run by test_package.py with the Python that
the package is installed in."""

import fractions
import math
import sys

import kintsugi
import numpy as np
import pytest
from places import place, rng  # noqa: F401

pytest.importorskip("scipy.linalg")
TYPES = [np.dtype(kind) for kind in (np.float32, np.float64, np.complex64, np.complex128)]


class Gauss:
    """A complex number of fractions."""

    def __init__(self, real, imaginary=fractions.Fraction(0)):
        self.real, self.imaginary = real, imaginary

    def __sub__(self, other):
        return Gauss(self.real - other.real, self.imaginary - other.imaginary)

    def __mul__(self, other):
        return Gauss(self.real * other.real - self.imaginary * other.imaginary,
                     self.real * other.imaginary + self.imaginary * other.real)

    def __truediv__(self, other):
        size = other.real**2 + other.imaginary**2
        product = self * Gauss(other.real, -other.imaginary)
        return Gauss(product.real / size, product.imaginary / size)

    def __bool__(self):
        return bool(self.real or self.imaginary)


def exact(x):
    return Gauss(fractions.Fraction(float(np.real(x))), fractions.Fraction(float(np.imag(x))))


def exact_solution(a, b):
    """Columns of the solution by elimination; None if the matrix is singular."""
    n = len(a)
    rows = [[exact(x) for x in (*a[i], *b[i])] for i in range(n)]
    for column in range(n):
        pivot = next((i for i in range(column, n) if rows[i][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for i in range(n):
            if i != column and rows[i][column]:
                factor = rows[i][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[column])]
    return [row[n:] for row in rows]


def check_solution(found, tail, wanted, dtype, context):
    """Every part of every element is correct to 0.51 units of its last place, and the two words to twice the digits;
    parts of less than 2**-100 of the largest element of the column are as small as that."""
    real = np.dtype(dtype.char.lower())
    for column in range(found.shape[1]):
        values = [part for row in wanted for part in (row[column].real, row[column].imaginary)]
        words = [[part for x in word[:, column] for part in (exact(x).real, exact(x).imaginary)] for word in (found, tail)]
        largest = max(map(abs, values))
        for high, low, value in zip(*words, values):
            if abs(value) < largest / 2**100:
                assert abs(high) <= largest / 2**99, context
                continue
            unit = fractions.Fraction(float(np.spacing(np.array(abs(float(value)), real))))
            assert abs(high - value) <= unit * fractions.Fraction(51, 100), (float(abs(high - value) / unit), context)
            assert abs(high + low - value) <= largest * fractions.Fraction(float(np.finfo(real).eps))**2, context


def hilbert(n):
    """The inverse of Hilbert's matrix, of integers: its condition is some 10**(1.5 n)."""
    def element(i, j):
        factors = math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i)**2
        return (-1)**(i + j) * (i + j + 1) * factors

    return np.array([[element(i, j) for j in range(n)] for i in range(n)], np.float64)


def binomial(n):
    """Pascal's matrix: integers, of determinant 1."""
    return np.array([[math.comb(i + j, i) for j in range(n)] for i in range(n)], np.float64)


def near_singular(rng, n, binades):
    """A product of random integers whose last row is nearly a combination of the others."""
    a = rng.integers(-99, 100, (n, n)).astype(np.float64)
    a[-1] = a[:-1].sum(axis=0)
    a[-1, int(rng.integers(n))] += 2.0**-binades
    return a


def matrices(rng):
    for n in range(2, 11):
        yield f"inverse of Hilbert's, {n}", hilbert(n)
    for n in (5, 10, 13):
        yield f"Pascal's, {n}", binomial(n)
    for binades in (0, 10, 20, 30):
        for n in (2, 5, 9):
            yield f"nearly singular by {binades}, {n}", near_singular(rng, n, binades)
    for n in (1, 3, 8):
        yield f"random, {n}", rng.standard_normal((n, n))
    scales = np.ldexp(1.0, rng.integers(-100, 100, 6))
    yield "badly scaled rows", scales[:, None] * rng.integers(-9, 10, (6, 6)) + np.diag(scales) * 50
    yield "triangular", np.triu(rng.integers(1, 9, (7, 7))).astype(np.float64)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_solutions_have_one_unit_of_error(rng, place, dtype):
    make, read = place
    tried = 0
    for name, real in matrices(rng):
        n = len(real)
        a = real if dtype.kind == "f" else real * (1 + 2j) + np.diag(rng.integers(-3, 4, n)) * 1j
        b = rng.integers(-9, 10, (n, 2)) + (1j * rng.integers(-9, 10, (n, 2)) if dtype.kind == "c" else 0)
        with np.errstate(over="ignore"):
            a, b = a.astype(dtype), b.astype(dtype)
        wanted = exact_solution(a, b)
        if wanted is None or not np.isfinite(a).all():
            continue
        tried += 1
        found, tail = (read(part) for part in kintsugi.solve(make(a), make(b), tail=True))
        assert found.dtype == dtype and found.shape == b.shape
        check_solution(found, tail, wanted, dtype, (name, a.tolist(), b.tolist()))
        vector = read(kintsugi.solve(make(a), make(b[:, 0])))
        assert vector.shape == (n,) and (vector == found[:, 0]).all()
    assert tried > 20


@pytest.mark.parametrize("name, a", [
    ("ones", np.ones((3, 3))), ("zeros", np.zeros((2, 2))), ("a row of zeros", np.diag([1.0, 0.0, 2.0])),
    ("of rank 2", np.add.outer(np.arange(5.0), 3 * np.arange(5.0))),
    ("of rank 2, scaled", np.add.outer(np.arange(5.0), np.arange(5.0)) * 2.0**900),
])
def test_singular_matrices_are_errors(place, name, a):
    """Consistent right-hand sides too, of which one of many solutions would be found."""
    make, _ = place
    for b in (np.arange(1.0, len(a) + 1), a.sum(axis=1), a[:, :1]):
        with pytest.raises(np.linalg.LinAlgError, match="a is singular"):
            kintsugi.solve(make(a), make(b))


def test_random_singular_matrices_are_errors(rng):
    """Products of integers of a smaller inner length."""
    for case in range(100):
        n = int(rng.integers(2, 12))
        a = (rng.integers(-9, 10, (n, n - 1)) @ rng.integers(-9, 10, (n - 1, n))).astype(np.float64)
        for b in (rng.integers(-9, 10, n), a @ rng.integers(-9, 10, n)):
            with pytest.raises(np.linalg.LinAlgError, match="a is singular"):
                print(a.tolist(), b.tolist(), kintsugi.solve(a, b))


def test_conditions_are_said():
    with pytest.raises(np.linalg.LinAlgError, match=r"condition is about \de\+\d\d, and the refinement"):
        kintsugi.solve(hilbert(20), np.ones(20))


def test_small_systems(place):
    make, read = place
    assert read(kintsugi.solve(make([[2.0]]), make([6.0]))).tolist() == [3]
    assert read(kintsugi.solve(make(np.eye(3)), make(np.zeros(3)))).tolist() == [0, 0, 0]
    assert read(kintsugi.solve(make(np.eye(3)), make(np.ones((3, 0))))).shape == (3, 0)
    assert read(kintsugi.solve(make(np.ones((0, 0))), make(np.ones(0)))).shape == (0,)
    assert read(kintsugi.solve(make(np.eye(2, dtype=np.float32)), make(np.ones(2)))).dtype == np.float64


@pytest.mark.parametrize("a, b, message", [
    (np.ones((2, 3)), np.ones(2), "square"), (np.eye(3), np.ones(2), r"needs \(3,\) or \(3, k\)"),
    (np.eye(2), np.ones((2, 1, 1)), "b has"), (np.array([[np.inf, 1], [1, 1]]), np.ones(2), "a has elements that are infinite"),
    (np.eye(2), np.array([np.nan, 1]), "b has elements"),
])
def test_errors(a, b, message):
    with pytest.raises(ValueError, match=message):
        kintsugi.solve(a, b)


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        kintsugi.solve(np.eye(2), np.ones(2))


def test_lists_and_integers():
    assert kintsugi.solve([[2, 1], [1, 3]], [3, 4]).tolist() == [1, 1]
