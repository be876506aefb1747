"""Products of double-double matrices by the package kintsugi. Run by test_package.py with the Python that it is
installed in."""

import fractions

import kintsugi
import numpy as np
import pytest


def pairs(shape, seed):
    """Double-double numbers with all bits used: hi, and lo below half of its last place."""
    generator = np.random.default_rng(seed)
    hi = generator.standard_normal(shape)
    lo = np.spacing(np.abs(hi)) * generator.uniform(-0.5, 0.5, shape)
    return np.stack([hi + lo, lo - ((hi + lo) - hi)], axis=-1)


def rational(pair):
    return fractions.Fraction(float(pair[0])) + fractions.Fraction(float(pair[1]))


@pytest.mark.parametrize("policy", ["native", "emulate"])
def test_double_double_keeps_its_contract(policy):
    a, b = pairs((5, 9), 1), pairs((9, 4), 2)
    c = kintsugi.matmul_dd(a, b, policy=policy)
    assert c.shape == (5, 4, 2) and c.dtype == np.float64
    for i, j in np.ndindex(5, 4):
        products = [rational(x) * rational(y) for x, y in zip(a[i], b[:, j])]
        magnitudes = sum(abs(product) for product in products)
        assert abs(rational(c[i, j]) - sum(products)) <= (9 + 8) * fractions.Fraction(1, 2**104) * magnitudes


def test_double_double_exact_with_scalars_and_out():
    a, b, c = pairs((3, 7), 3), pairs((7, 2), 4), pairs((3, 2), 5)
    alpha, beta = (0.1, 2.0**-60), -3
    out = c.copy()
    assert kintsugi.matmul_dd(a, b, alpha=alpha, beta=beta, out=out, accuracy="exact") is out
    for i, j in np.ndindex(3, 2):
        products = sum(rational(x) * rational(y) for x, y in zip(a[i], b[:, j]))
        value = rational(alpha) * products + beta * rational(c[i, j])
        hi = float(value)
        assert (out[i, j] == [hi, float(value - fractions.Fraction(hi))]).all()


def test_double_double_takes_transposes_batches_and_vectors():
    a, b = pairs((2, 6, 5), 6), pairs((5, 3), 7)
    c = kintsugi.matmul_dd(a, b)
    swapped = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)
    assert (kintsugi.matmul_dd(swapped, b) == c).all()
    assert (kintsugi.matmul_dd(a[0], b) == c[0]).all()
    assert (kintsugi.matmul_dd(a[1, 2], b) == c[1, 2]).all()
    assert kintsugi.matmul_dd(a[0, 0], b[:, 0]).shape == (2,)
    assert (kintsugi.matmul_dd(np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -1, 0)), 0, -1), b) == c).all()


@pytest.mark.parametrize("a", [np.ones((3, 3)), np.ones((2, 2, 2), complex), np.ones(2)])
def test_double_double_needs_two_words(a):
    with pytest.raises(TypeError, match="last axis"):
        kintsugi.matmul_dd(a, a)
