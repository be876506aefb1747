"""Lifetimes of a prepared operand and of what it was made of. Run by test_package.py with the Python
that the package is installed in."""

import gc
import resource
import threading
import weakref

import kintsugi
import numpy as np
import pytest

OPTIONS = {"native": {"policy": "native"}, "exact": {"accuracy": "exact", "policy": "emulate"},
           "emulated": {"policy": "emulate"}, "words": {"scheme": "ozaki2"}, "slices": {"scheme": "ozaki-int8"}}
VIEWS = {"rows": lambda x: x, "columns": lambda x: x.swapaxes(-1, -2), "cut": lambda x: x[..., :20, 3:23],
         "steps": lambda x: x[..., ::2, ::-2]}


def values(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("shape", [(40, 40), (3, 40, 40)])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("side", ["a", "b"])
def test_the_operand_may_change_and_go(side, view, options, shape):
    array = values(*shape)
    operand = VIEWS[view](array)
    other = values(operand.shape[-1], operand.shape[-1], seed=2)
    products = {**OPTIONS[options], "threads": 1}
    in_order = (lambda x: (x, other)) if side == "a" else (lambda x: (other, x))
    expected = kintsugi.matmul(*in_order(operand), **products)
    prepared = kintsugi.prepare(operand, side=side, **products)
    array.fill(np.nan)
    gone = weakref.ref(array)
    del array, operand
    assert gone() is None, "nobody keeps it"
    for _ in range(2):
        np.testing.assert_array_equal(kintsugi.matmul(*in_order(prepared), **products), expected)


def core_product(a, b, *, alpha=1, beta=0, out=None, accuracy=None, scheme=None, engine=None, policy=None):
    """Returns the result of _core.matmul(): NotImplemented where the Python code must look at the operands."""
    return kintsugi._core.matmul(a, b, alpha, beta, out, accuracy, scheme, engine, policy, 1, None)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_matrix_needs_no_conversion(side, dtype):
    """The fast way and that of other operands give the same, also in `out` and for vectors and batches beside it."""
    accept = kintsugi.matmul(np.ones((2, 2)), np.ones((2, 2)))  # warns of a missing engine, once
    assert accept.shape == (2, 2)
    random = np.random.default_rng()
    for shape in ((17, 9), (1, 5), (40, 33)):
        matrix = random.standard_normal(shape).astype(dtype)
        prepared = kintsugi.prepare(matrix, side=side, accuracy="exact")
        length = shape[1] if side == "a" else shape[0]
        others = [random.standard_normal((length, 6)), random.standard_normal(length), random.standard_normal((3, length, 4))]
        for other in others:
            other = other.astype(dtype)
            other = other if side == "a" or other.ndim == 1 else other.swapaxes(-1, -2)
            pair, plain = ((prepared, other), (matrix, other)) if side == "a" else ((other, prepared), (other, matrix))
            found = core_product(*pair, accuracy="exact")
            assert found is not NotImplemented
            np.testing.assert_array_equal(found, kintsugi.matmul(*plain, accuracy="exact"))
            out = np.ones_like(found)
            assert core_product(*pair, alpha=2, beta=-1, out=out, accuracy="exact") is out
            np.testing.assert_array_equal(out, kintsugi.matmul(*plain, alpha=2, beta=-1, out=np.ones_like(found),
                                                               accuracy="exact"))


def test_the_fast_way_declines_what_needs_a_look():
    matrix, other = values(8, 8), values(8, 8, seed=2)
    prepared = kintsugi.prepare(matrix, side="b", accuracy="exact")
    assert core_product(other, prepared, accuracy="fp64") is NotImplemented, "prepared for another accuracy"
    assert core_product(other, prepared, accuracy="exact", scheme="ozaki2") is NotImplemented
    assert core_product(prepared, other, accuracy="exact") is NotImplemented, "on the wrong side"
    assert core_product(other.astype("float32"), prepared, accuracy="exact") is NotImplemented
    assert core_product(values(8, 7), prepared, accuracy="exact") is NotImplemented
    assert core_product(other, kintsugi.prepare(values(2, 8, 8), side="b", accuracy="exact"), accuracy="exact") is NotImplemented
    assert core_product(prepared, prepared, accuracy="exact") is NotImplemented
    with pytest.raises(ValueError, match="prepared as b is given as a"):
        kintsugi.matmul(prepared, other, accuracy="exact")
    with pytest.raises(ValueError, match="columns meet 8 rows"):
        kintsugi.matmul(values(8, 7), prepared, accuracy="exact")


def test_a_thread_may_leave_one():
    a, b = values(30, 30), values(30, 30, seed=2)
    made = []

    def work():
        made.append(kintsugi.prepare(a, side="a", accuracy="exact"))
        kintsugi.matmul(made[0], b, accuracy="exact")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(kintsugi.matmul(made.pop(), b, accuracy="exact"), kintsugi.matmul(a, b, accuracy="exact"))


def memory_used():
    """Returns the memory of the process now, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_it_goes_with_its_last_reference():
    """Out of cycles, too; a copy of each has 2 MiB."""
    array, other = values(512, 512), values(512, 1)

    def work():
        twin = [kintsugi.prepare(array, side="a", policy="native")]
        twin.append(twin)
        kintsugi.matmul(twin[0], other, policy="native")
        gone = weakref.ref(twin[0])
        del twin
        gc.collect()
        assert gone() is None

    work()
    before = memory_used()
    for _ in range(20):
        work()
    assert memory_used() - before < 10 << 20


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (2, 3, 0), (0, 3, 4)])
def test_operands_without_elements(shape):
    rows, columns = shape[-2:]
    batch = shape[:-2]
    left = kintsugi.matmul(kintsugi.prepare(np.ones(shape), side="a"), np.ones((columns, 5)))
    right = kintsugi.matmul(np.ones((5, rows)), kintsugi.prepare(np.ones(shape), side="b"))
    assert left.shape == (*batch, rows, 5) and (left == columns).all()
    assert right.shape == (*batch, 5, columns) and (right == rows).all()
