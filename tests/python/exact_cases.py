"""kintsugi.sum, dot, norm2 and residual beside integers and fractions of any size; the seed is new in every run, and a
failure shows it. CASES_SEED=7 takes that one, EXACT_CASES=100 as many times the suite's cases. Run by test_package.py
with the Python that the package is installed in."""

import contextlib
import ctypes
import fractions
import math
import os
import platform

import kintsugi
import numpy as np
import pytest
from places import place, rng  # noqa: F401

TIMES = int(os.environ.get("EXACT_CASES", "1"))
REAL = [np.dtype(np.float32), np.dtype(np.float64)]
COMPLEX = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}


def rounded(value, dtype):
    """A fraction rounded to the nearest number of a real type, ties to even; overflow as IEEE 754 has it."""
    info = np.finfo(dtype)
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()  # of the leading bit, or one more
    if size < fractions.Fraction(2)**exponent:
        exponent -= 1
    unit = fractions.Fraction(2)**max(exponent - info.nmant, info.minexp - info.nmant)
    found = round(size / unit) * unit  # round() takes ties to even
    result = math.inf if found > fractions.Fraction(float(info.max)) else float(found)
    return -result if value < 0 else result


def rounded_root(value, dtype):
    """The root of a fraction, rounded to nearest: the number between whose midpoints to its neighbours the fraction
    lies."""
    if value == 0:
        return 0.0
    info = np.finfo(dtype)
    scale = max(0, 2200 + 2 * value.denominator.bit_length() - value.numerator.bit_length()) // 2
    root = math.isqrt(value.numerator * 4**scale // value.denominator)
    low = rounded(fractions.Fraction(root, 2**scale), dtype)
    with np.errstate(over="ignore"):
        below, above = (float(np.nextafter(dtype.type(low), dtype.type(end))) for end in (0, np.inf))
    candidates = [below, low, above]
    exact = [fractions.Fraction(x) if math.isfinite(x) else fractions.Fraction(2)**info.maxexp for x in candidates]
    for i in range(2):
        middle = ((exact[i] + exact[i + 1]) / 2)**2
        is_even = int(np.array(candidates[i], dtype).view(f"u{dtype.itemsize}")) % 2 == 0
        if value < middle or (value == middle and is_even):
            return candidates[i]
    return candidates[2]


def numbers(rng, count, dtype, most=None):
    """Numbers of one of several hard kinds."""
    info = np.finfo(dtype)
    low, high = info.minexp - info.nmant, info.maxexp
    kind = int(rng.integers(6))
    digits = rng.integers(-2**int(info.nmant), 2**int(info.nmant) + 1, count).astype(np.float64)
    if kind == 0:  # alike
        exponents = np.full(count, -int(info.nmant))
    elif kind == 1:  # of all sizes
        exponents = rng.integers(low - info.nmant, high - info.nmant, count)
    elif kind == 2:  # subnormal
        exponents = np.full(count, low) if rng.random() < 0.5 else low - rng.integers(0, info.nmant, count)
    elif kind == 3:  # near overflow
        exponents = rng.integers(high - info.nmant - 3, high - info.nmant, count)
    elif kind == 4:  # sums near ties: few bits, half a unit apart
        digits = rng.choice([-1.0, 1.0, 1.0, 2.0, 3.0], count)
        exponents = rng.choice([0, 1, -int(info.nmant) - 1, -2 * int(info.nmant), int(rng.integers(-60, 60))], count)
    else:  # in wide steps
        exponents = rng.integers(-8, 8, count) * 16
    with np.errstate(over="ignore", under="ignore"):
        values = np.ldexp(digits, exponents).astype(dtype)
    values[~np.isfinite(values)] = info.max
    if count > 3 and rng.random() < 0.5:  # what cancels
        half = count // 2
        values[half:2 * half] = -values[:half][rng.permutation(half)]
        with np.errstate(over="ignore"):
            values[0] *= dtype.type(1 + 2 * info.eps)
        values[~np.isfinite(values)] = info.max
    return values


def fractions_of(values):
    return [fractions.Fraction(float(x)) for x in values]


def same(found, expected):
    return float(found) == expected or (math.isnan(float(found)) and math.isnan(expected))


def test_sums(rng, place):
    make, read = place
    for case in range(700 * TIMES):
        dtype = REAL[case % 2]
        values = numbers(rng, int(rng.integers(1, 40)), dtype)
        found = read(kintsugi.sum(make(values)))
        assert found.dtype == dtype and same(found, rounded(sum(fractions_of(values)), dtype)), values.tolist()


def test_dots(rng, place):
    make, read = place
    for case in range(700 * TIMES):
        dtype = REAL[case % 2]
        count = int(rng.integers(1, 40))
        a, b = numbers(rng, count, dtype), numbers(rng, count, dtype)
        if rng.random() < 0.3:
            b = a[::-1].copy()
        found = read(kintsugi.dot(make(a), make(b)))
        expected = rounded(sum(x * y for x, y in zip(fractions_of(a), fractions_of(b))), dtype)
        assert found.dtype == dtype and same(found, expected), (a.tolist(), b.tolist())


def test_norms(rng, place):
    make, read = place
    for case in range(700 * TIMES):
        dtype = REAL[case % 2]
        rows, count = int(rng.integers(1, 4)), int(rng.integers(1, 20))
        values = np.stack([numbers(rng, count, dtype) for _ in range(rows)])
        found = read(kintsugi.norm2(make(values), axis=1))
        assert found.dtype == dtype and found.shape == (rows,)
        for row, norm in zip(values, found):
            assert same(norm, rounded_root(sum(x * x for x in fractions_of(row)), dtype)), row.tolist()


def squares_that_add_up_to(number):
    """Four squares, by Lagrange's theorem (the greedy first two may fail, and then smaller ones are tried)."""
    for first in range(math.isqrt(number), -1, -1):
        rest = number - first * first
        for second in range(math.isqrt(rest), max(math.isqrt(rest) - 40, -1), -1):
            left = rest - second * second
            for third in range(math.isqrt(left), max(math.isqrt(left) - 40, -1), -1):
                fourth = math.isqrt(left - third * third)
                if fourth * fourth == left - third * third:
                    return [first, second, third, fourth]


def test_norms_beside_ties(rng):
    """Roots that are midpoints of two floats exactly, and less or more than such by next to nothing."""
    for case in range(60 * TIMES):
        dtype = REAL[case % 2]
        digits = int(np.finfo(dtype).nmant) + 1
        middle = 2 * int(rng.integers(2**(digits - 1), 2**digits)) + 1
        squares = [x for x in squares_that_add_up_to(middle * middle) if x < 2**digits] if case % 3 else [0]
        if sum(x * x for x in squares) != middle * middle:  # the root itself has a digit too many
            squares = squares_that_add_up_to(middle * middle - (middle - 1)**2 // 1)
            squares = [middle - 1, *squares] if middle - 1 < 2**(digits + 1) else squares
        scale = int(rng.integers(-60, 60)) if case % 2 == 0 else int(rng.choice([-1040, -300, 0, 300, 960]))
        tiny = float(np.finfo(dtype).smallest_subnormal)
        for more in ([], [tiny], [tiny] * 3):
            with np.errstate(under="ignore"):
                values = np.array([*np.ldexp(np.array(squares, np.float64), scale), *more]).astype(dtype)
            expected = rounded_root(sum(x * x for x in fractions_of(values)), dtype)
            assert same(kintsugi.norm2(values), expected), values.tolist()


def test_complex_numbers(rng, place):
    make, read = place
    for case in range(200 * TIMES):
        dtype = REAL[case % 2]
        count = int(rng.integers(1, 12))
        parts = [numbers(rng, count, dtype) for _ in range(4)]
        a, b = (np.empty(count, COMPLEX[dtype]) for _ in range(2))
        a.real, a.imag, b.real, b.imag = parts
        ar, ai, br, bi = map(fractions_of, parts)
        total = read(kintsugi.sum(make(a)))
        assert total.dtype == COMPLEX[dtype]
        assert same(total.real, rounded(sum(ar), dtype)) and same(total.imag, rounded(sum(ai), dtype)), a.tolist()
        found = read(kintsugi.dot(make(a), make(b)))
        real, imaginary = (sum(w * x + sign * y * z for w, x, y, z in zip(*four))
                           for four, sign in (((ar, br, ai, bi), -1), ((ar, bi, ai, br), 1)))
        assert same(found.real, rounded(real, dtype)), (a.tolist(), b.tolist())
        assert same(found.imag, rounded(imaginary, dtype)), (a.tolist(), b.tolist())
        norm = read(kintsugi.norm2(make(a)))
        assert norm.dtype == dtype and same(norm, rounded_root(sum(x * x for x in ar + ai), dtype)), a.tolist()


def test_residuals(rng, place):
    make, read = place
    for case in range(300 * TIMES):
        dtype = REAL[case % 2]
        m, n = int(rng.integers(1, 5)), int(rng.integers(1, 8))
        a, x = np.stack([numbers(rng, n, dtype) for _ in range(m)]), numbers(rng, n, dtype)
        with np.errstate(all="ignore"):
            b = np.nan_to_num(a @ x).astype(dtype) if rng.random() < 0.7 else numbers(rng, m, dtype)
        found = read(kintsugi.residual(make(a), make(x), make(b)))
        for row, wanted, element in zip(a, fractions_of(b), found):
            exact = wanted - sum(p * q for p, q in zip(fractions_of(row), fractions_of(x)))
            assert same(element, rounded(exact, dtype)), (a.tolist(), x.tolist(), b.tolist())


@contextlib.contextmanager
def rounding(mode):
    libm = ctypes.CDLL("libm.so.6")
    before = libm.fegetround()
    assert libm.fesetround(mode) == 0
    try:
        yield
    finally:
        libm.fesetround(before)


def rounded_down(value, dtype):
    nearest = rounded(value, dtype)
    if math.isinf(nearest) or fractions.Fraction(nearest) > value:
        return float(np.nextafter(dtype.type(nearest), dtype.type(-np.inf)))
    return nearest


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of rounding modes are x86's")
@pytest.mark.parametrize("mode", ["down", "up", "to zero"])
def test_rounding_modes(rng, mode):
    """Sums and residuals follow the thread's, norms are rounded to nearest."""
    number = {"down": 0x400, "up": 0x800, "to zero": 0xC00}[mode]
    for case in range(300 * TIMES):
        dtype = REAL[case % 2]
        values = numbers(rng, int(rng.integers(2, 20)), dtype)
        exact = sum(fractions_of(values))
        down, up = rounded_down(exact, dtype), -rounded_down(-exact, dtype)
        expected = {"down": down, "up": up, "to zero": down if exact > 0 else up}[mode]
        norm = rounded_root(sum(x * x for x in fractions_of(values)), dtype)
        with rounding(number):
            total = kintsugi.sum(values)
            residual = kintsugi.residual(values[None, :-1], np.full(len(values) - 1, -1, dtype), values[-1:])
            length = kintsugi.norm2(values)
        if exact != 0:  # zero has another sign when rounding down
            assert same(total, expected) and same(residual[0], expected), values.tolist()
        assert same(length, norm), values.tolist()


def test_axes(place):
    make, read = place
    a = np.random.default_rng(1).integers(-9, 10, (2, 3, 4)).astype(np.float64)
    for axis in (None, 0, 1, -1, (0, 2), (2, 0), (0, 1, 2), ()):
        for keepdims in (False, True):
            for function, theirs in ((kintsugi.sum, np.sum(a, axis, keepdims=keepdims)),
                                     (kintsugi.norm2, np.sqrt(np.sum(a * a, axis, keepdims=keepdims)))):
                found = read(function(make(a), axis, keepdims=keepdims))
                assert np.shape(found) == np.shape(theirs)
                np.testing.assert_array_equal(found, theirs)
    empty = np.zeros((0, 3), np.float32)
    assert read(kintsugi.sum(make(empty), 0)).tolist() == [0, 0, 0]
    assert read(kintsugi.norm2(make(empty), 1)).shape == (0,)
    assert read(kintsugi.norm2(make(empty))) == 0 and read(kintsugi.sum(make(empty))) == 0
    x, b = np.ones((2, 4, 5)), np.ones(5)
    assert read(kintsugi.residual(make(a[0]), make(x), make(b))).tolist() == (b - a[0] @ x).tolist()


def test_special_values():
    inf, nan = math.inf, math.nan
    for values, total, norm in (([inf, 1], inf, inf), ([inf, -inf], nan, inf), ([nan, inf], nan, nan), ([0.0], 0, 0),
                                ([1.5e308, 1.5e308], inf, inf), ([1e300, 1e300], 2e300, 1.4142135623730952e300),
                                ([1.5e308, 1.5e308, -1.5e308], 1.5e308, inf), ([5e-324, 5e-324], 1e-323, 5e-324)):
        assert same(kintsugi.sum(values), total) and same(kintsugi.norm2(values), norm), values
    assert kintsugi.sum(np.array([inf + 1j])) == complex(inf, 1)
    assert type(kintsugi.sum([1, 2])) is np.float64 and type(kintsugi.norm2(np.ones(2, np.float32))) is np.float32


@pytest.mark.parametrize("call, error, message", [
    (lambda: kintsugi.dot([1.0], [1.0, 2.0]), ValueError, "vectors of one length"),
    (lambda: kintsugi.dot([[1.0]], [[1.0]]), ValueError, "vectors of one length"),
    (lambda: kintsugi.sum([1.0], 1), ValueError, "axis = 1, and the array has 1 dimensions"),
    (lambda: kintsugi.sum([[1.0]], (0, -2)), ValueError, "an axis twice"),
    (lambda: kintsugi.sum(np.ones(2, np.float16)), TypeError, "a is float16"),
    (lambda: kintsugi.sum([2**53 + 1]), ValueError, "integers beyond"),
    (lambda: kintsugi.residual([1.0], [1.0], [1.0]), ValueError, "a has two dimensions"),
    (lambda: kintsugi.residual([[1.0]], [1.0], [1.0, 2.0]), ValueError, "broadcast"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_defaults_do_not_count():
    """The functions are exact under every default."""
    values = [1.0, 1e20, -1e20]
    for accuracy, policy in (("fp64", "native"), (1e-3, "emulate"), (None, "native")):
        with kintsugi.accuracy(accuracy, policy=policy):
            assert kintsugi.sum(values) == 1 and kintsugi.dot(values, [1, 1, 1]) == 1
            assert kintsugi.residual([values], [1, 1, 1], [1]).tolist() == [0]
