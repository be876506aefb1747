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
