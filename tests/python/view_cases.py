"""Random products of views of numpy's arrays: strides of all signs and sizes, broadcasts, swapped bytes,
vectors, batches, overlaps. Each is checked against a wider reference, with all memory around the result and
of the operands. VIEW_SEEDS=0:100000 runs more than the suite does. Run by test_package.py with the Python
that the package is installed in.
"""

import os

import kintsugi
import numpy as np
import pytest
from random_views import (TYPES, Geometry, check, product_and_bound, random_geometry, random_options, random_scalar,
                          random_shapes, random_values)

FIRST, LAST = (int(part) for part in os.environ.get("VIEW_SEEDS", "0:1200").split(":"))


def filled(rng, geometry):
    """Memory of any bytes, NaNs among them."""
    return rng.integers(0, 256, geometry.size, np.uint8)


def random_operand(rng, shape, dtype, integers):
    """The operand, its memory, and its values."""
    geometry = random_geometry(rng, shape, np.dtype(dtype).itemsize)
    memory = filled(rng, geometry)
    array = geometry.view(memory, np.dtype(dtype).newbyteorder() if rng.random() < 0.05 else dtype)
    array[...] = random_values(rng, shape, dtype, integers)
    array.flags.writeable = rng.random() < 0.7
    return array, memory, np.array(array, dtype, order="C")


def maybe_prepared(rng, operand, side, batch, dtype, options):
    fits = operand.ndim > 1 and operand.shape[:-2] in ((), batch) and operand.dtype.newbyteorder("=") == dtype
    return kintsugi.prepare(operand, side=side, **options) if fits and rng.random() < 0.2 else operand


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_a_random_product(seed):
    rng = np.random.default_rng(seed)
    integers = rng.random() < 0.5
    shape_a, shape_b = random_shapes(rng)
    type_a = TYPES[rng.integers(4)]
    type_b = type_a if rng.random() < 0.8 else TYPES[rng.integers(4)]
    a, memory_a, values_a = random_operand(rng, shape_a, type_a, integers)
    b, memory_b, values_b = random_operand(rng, shape_b, type_b, integers)
    before = memory_a.copy(), memory_b.copy()
    values_a, values_b = (values.astype(np.result_type(type_a, type_b)) for values in (values_a, values_b))
    dtype = values_a.dtype.type
    options = random_options(rng, dtype, integers)
    batch = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
    shape = (values_a @ values_b).shape
    alpha = random_scalar(rng, dtype, integers)
    beta, out, old = dtype(0), None, np.zeros(shape, dtype)
    if rng.random() < 0.6:
        geometry = random_geometry(rng, shape, np.dtype(dtype).itemsize, repeated=False)
        memory = filled(rng, geometry)
        out = geometry.view(memory, dtype)
        if rng.random() < 0.5:
            beta = random_scalar(rng, dtype, integers)
            old = random_values(rng, shape, dtype, integers)
            out[...] = old
        around = memory.copy()
    x, y = maybe_prepared(rng, a, "a", batch, dtype, options), maybe_prepared(rng, b, "b", batch, dtype, options)
    result = kintsugi.matmul(x, y, alpha=alpha, beta=beta, out=out, **options)
    assert result.dtype == dtype
    check(result, *product_and_bound(values_a, values_b, alpha, beta, old), integers)
    assert (memory_a == before[0]).all() and (memory_b == before[1]).all()
    if out is not None:
        assert result is out
        geometry.view(around, dtype)[...] = out
        assert (memory == around).all(), "only elements of out were written"


OVERLAPS = {"itself": lambda x: x, "transpose": lambda x: x.mT if hasattr(x, "mT") else x.swapaxes(-1, -2),
            "rows backwards": lambda x: x[..., ::-1, :], "columns backwards": lambda x: x[..., ::-1],
            "batch backwards": lambda x: x[::-1]}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("side", ["a", "b"])
def test_out_that_overlaps_an_operand(side, overlap, dtype):
    rng = np.random.default_rng(5)
    x, other = (random_values(rng, (3, 6, 6), dtype, True) for _ in range(2))
    out = OVERLAPS[overlap](x)
    operands = (x, other) if side == "a" else (other, x)
    expected = 2 * operands[0] @ operands[1] + 3 * out
    assert kintsugi.matmul(*operands, alpha=2, beta=3, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shift", range(1, 4))
def test_out_one_place_beside_an_operand(shift):
    memory = np.arange(40.0)
    a, out = memory[:36].reshape(6, 6), memory[shift:][:36].reshape(6, 6)
    expected = a @ np.eye(6)[::-1]
    kintsugi.matmul(a, np.eye(6)[::-1], out=out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shape, strides", [((3, 4), (0, 8)), ((3, 4), (8, 0)), ((3, 4), (8, 8)), ((3, 4), (-16, 8)),
                                            ((2, 3, 4), (0, 32, 8)), ((2, 3, 4), (64, 32, 8)), ((2, 3, 4), (8, 32, 8))])
def test_out_whose_elements_share_memory_is_refused(shape, strides):
    out = Geometry(shape, strides, 64, 400).view(bytearray(400), np.float64)
    with pytest.raises(ValueError, match="elements of out share memory"):
        kintsugi.matmul(np.ones((*shape[:-1], 2)), np.ones((2, 4)), out=out)


def test_out_that_is_read_only_is_refused():
    out = np.zeros((2, 2))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kintsugi.matmul(np.eye(2), np.eye(2), out=out)
    assert (out == 0).all()


def random_pairs(rng, shape, repeated=True, beside=False):
    """Random double-double numbers: the array, the memory that it is a view of, and the numbers as Python's integers.
    They have some 35 bits, so that sums are exact in every order. `beside`: a number's two words are neighbors, as out
    has to have them."""
    geometry = random_geometry(rng, (*shape, 2), 8, repeated=repeated)
    if beside:
        pairs = random_geometry(rng, shape, 16, repeated=False, unit=int(rng.choice([8, 16])))
        geometry = Geometry((*shape, 2), (*pairs.strides, 8), pairs.offset, pairs.size)
    memory = filled(rng, geometry)
    array = geometry.view(memory, np.float64)
    array[...] = rng.integers(-9, 10, (*shape, 2)) * [2.0**30, 1]
    return array, memory, integers_of(array)


def integers_of(pairs):
    words = np.vectorize(int, otypes=[object])(pairs) if pairs.size else np.zeros(pairs.shape, object)
    return words[..., 0] + words[..., 1]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + (LAST - FIRST) // 4))
def test_a_random_product_of_pairs(seed):
    rng = np.random.default_rng(seed)
    shape_a, shape_b = random_shapes(rng)
    (a, memory_a, values_a), (b, memory_b, values_b) = random_pairs(rng, shape_a), random_pairs(rng, shape_b)
    before = memory_a.copy(), memory_b.copy()
    shape = np.matmul(np.ones(shape_a), np.ones(shape_b)).shape
    alpha, beta = (int(rng.integers(-3, 4)) for _ in range(2))
    out, memory, old = random_pairs(rng, shape, beside=True)
    around = memory.copy()
    result = kintsugi.matmul_dd(a, b, alpha=alpha, beta=beta, out=out, threads=1)
    assert result is out
    expected = alpha * (values_a @ values_b if values_a.size and values_b.size else np.zeros(shape, int)) + beta * old
    assert np.all(integers_of(out) == expected)
    assert (memory_a == before[0]).all() and (memory_b == before[1]).all()
    around_out = np.ndarray(out.shape, np.float64, around, out.ctypes.data - memory.ctypes.data, out.strides)
    around_out[...] = out
    assert (memory == around).all(), "only elements of out were written"
    if beta == 0:
        assert (kintsugi.matmul_dd(a, b, alpha=alpha, threads=1) == out).all()
