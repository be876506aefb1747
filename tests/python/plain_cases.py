"""Plain operands, which are multiplied as they are, against the same operands that are converted first: the same results,
problems and errors for random calls; no leaks, threads, time. PLAIN_SEEDS=0:100000 runs more than the suite does. Run by
test_package.py with the Python that the package is installed in.
"""

import concurrent.futures
import gc
import os
import resource
import sys
import time

import kintsugi
import numpy as np
import pytest
from kintsugi import _core
from random_views import TYPES, random_geometry, random_shapes, random_values

FIRST, LAST = (int(part) for part in os.environ.get("PLAIN_SEEDS", "0:1500").split(":"))

class Sub(np.ndarray):
    """A class of its own."""


@pytest.fixture(autouse=True)
def after_the_warning():
    kintsugi.matmul(np.eye(2), np.eye(2))


def usual_array(rng, shape, dtype, integers):
    """Rows or columns of unit stride, cut out of an array of more."""
    swapped = len(shape) > 1 and rng.random() < 0.4
    lengths = [length + int(rng.integers(0, 3)) for length in shape]
    lengths = [*lengths[:-2], lengths[-1], lengths[-2]] if swapped else lengths
    if rng.random() < 0.5:
        lengths[:-2] = shape[:-2]  # batch items without a gap
    whole = random_values(rng, lengths, dtype, integers)
    array = (whole.swapaxes(-1, -2) if swapped else whole)[tuple(slice(length) for length in shape)]
    return array, whole


def random_array(rng, shape, dtype, integers, **geometry):
    if rng.random() < 0.6:
        return usual_array(rng, shape, dtype, integers)
    place = random_geometry(rng, shape, np.dtype(dtype).itemsize, **geometry)
    memory = rng.integers(0, 256, place.size, np.uint8)
    array = place.view(memory, np.dtype(dtype).newbyteorder() if rng.random() < 0.03 else dtype)
    array[...] = random_values(rng, shape, dtype, integers)
    array.flags.writeable = rng.random() < 0.9
    return array.view(Sub) if rng.random() < 0.02 else array, memory


def scalar_of(rng):
    numbers = [0, 1, 2, -3, 1.5, -0.0, 2**53, 2**53 + 1, 2**70, -(10**400), 1e300, 1e-60, float("inf"), float("nan"),
               1 + 2j, 2 + 0j, complex(1e300, 0), True, np.float32(3), np.float64(0.5), np.array(2.0), np.array([1.0]), None, "1"]
    usual = rng.random() < 0.8
    return numbers[int(rng.integers(0, 6 if usual else len(numbers)))]


OPTIONS = {
    "policy": ["native", "emulate", "auto", "auto", np.str_("auto"), "cheap", 3],
    "accuracy": [None, "exact", "fp32", "fp64", 1e-3, 1e-30, "none", "exact\0", "\ud800"],
    "scheme": [None, "fp16x3", "ozaki2:moduli=20", "fp16x4", "", b"fp16x3"],
    "engine": [None, "cpu", "reference", "gpu"],
    "workspace_limit": [None, 0, 4096, "1g", -1, 2**63 - 1, 2**63, 1.5, True, "1T", b"1G"],
    "threads": [1, 1, 1, True, 0, None, -1, 2**31],
}


def options_of(rng):
    """Mostly ones that are accepted, which stand first."""
    options = {"policy": "native", "threads": 1}
    for name, values in OPTIONS.items():
        if rng.random() < 0.15:
            options[name] = values[int(min(rng.integers(0, len(values), 2)))]
    return options


def random_call(seed):
    """The arguments of a product, and the memories of all arrays: the same ones for a seed every time."""
    rng = np.random.default_rng(seed)
    integers, dtype = rng.random() < 0.7, TYPES[rng.integers(4)]
    other = dtype if rng.random() < 0.95 else [*TYPES, np.int64, np.float16][int(rng.integers(6))]
    shapes = list(random_shapes(rng))
    if rng.random() < 0.05:
        shapes[1] = (*shapes[1][:-1], shapes[1][-1] + 1) if rng.random() < 0.5 else (3, *shapes[1])
    (a, memory_a), (b, memory_b) = (random_array(rng, shape, kind, integers) for shape, kind in zip(shapes, (dtype, other)))
    memories, arguments = [memory_a, memory_b], {"a": a, "b": b, **options_of(rng)}
    try:
        shape = (np.zeros(a.shape) @ np.zeros(b.shape)).shape
    except ValueError:
        shape = (2, 2)
    for name in ("alpha", "beta"):
        if rng.random() < 0.25:
            arguments[name] = scalar_of(rng)
    if rng.random() < 0.6:
        if rng.random() < 0.05:
            shape = (*shape, 1)
        out, memory = random_array(rng, shape, dtype, integers, repeated=rng.random() < 0.05)
        memories.append(memory)
        arguments["out"] = out
        if rng.random() < 0.05 and a.shape == out.shape:
            arguments["out"] = a
    return arguments, memories


def outcome(call, *, run=kintsugi.matmul):
    arguments, memories = call
    try:
        result = run(**arguments)
    except Exception as error:
        return type(error), str(error), getattr(error, "status", None), [memory.tobytes() for memory in memories]
    given = arguments.get("out")
    return (type(result), result.dtype, result.shape, np.asarray(result).tobytes(), given is None or result is given,
            [memory.tobytes() for memory in memories])


class Noting:
    """_core.matmul() or _core.plan(), which notes the problem of every product: how many products it took, and the last
    problem."""

    def __init__(self):
        self.taken = 0
        self.problems = []

    def matmul(self, *arguments):
        before = _core.last()
        try:
            result = core_matmul(*arguments)
        except kintsugi.KintsugiError:
            self.taken += 1
            raise
        if result is NotImplemented:
            assert _core.last() == before
        else:
            self.taken += 1
            self.problems.append(_core.last()[0])
        return result

    def plan(self, problem, *rest):
        self.problems.append(dict(problem))
        return core_plan(problem, *rest)


core_matmul, core_plan = _core.matmul, _core.plan


def convert_all(monkeypatch):
    """Makes the package convert all operands, whether they must be or not."""
    for name in ("matmul", "execute"):
        monkeypatch.setattr(_core, name, lambda *_: NotImplemented)


@pytest.mark.parametrize("block", range(FIRST, LAST, 50))
def test_random_calls_have_the_same_outcome(block, monkeypatch):
    taken = 0
    for seed in range(block, min(block + 50, LAST)):
        plain, converted = Noting(), Noting()
        with monkeypatch.context() as patch:
            patch.setattr(_core, "matmul", plain.matmul)
            found = outcome(random_call(seed))
        with monkeypatch.context() as patch:
            convert_all(patch)
            patch.setattr(_core, "plan", converted.plan)
            expected = outcome(random_call(seed))
        assert found == expected, f"PLAIN_SEEDS={seed}:{seed + 1}"
        assert not plain.problems or plain.problems == converted.problems, f"PLAIN_SEEDS={seed}:{seed + 1}"
        taken += plain.taken
    assert LAST - FIRST < 50 or taken >= 3


# ------------------------------------------------------------ what a call keeps

def memory_used():
    """Returns the memory of the process now, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def refused(a, b):
    with pytest.raises(kintsugi.KintsugiError):
        kintsugi.matmul(a, b, scheme="fp17")


def converted(a, b):
    kintsugi.matmul(a, b[:, ::-1], policy="native")


CALLS = {
    "new results": (20000, lambda a, b, out: kintsugi.matmul(a, b, policy="native", threads=1)),
    "results in out": (20000, lambda a, b, out: kintsugi.matmul(a, b, alpha=2, beta=0.5, out=out, policy="native")),
    "a plan": (20000, lambda a, b, out: PLAN(a, b)),
    "errors": (2000, lambda a, b, out: refused(a, b)),
    "operands that are converted": (2000, lambda a, b, out: converted(a, b)),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_kept(name, monkeypatch):
    """Five times the calls that filled all caches, of arrays of 8 KiB: one kept result a call would be 16 MiB or more."""
    monkeypatch.setitem(globals(), "PLAN", kintsugi.plan((32, 32), (32, 32), dtype=np.float64, policy="native"))
    calls, call = CALLS[name]
    a, b, out = (np.ones((32, 32)) for _ in range(3))
    objects = [a, b, out, a.dtype, "native", kintsugi.KintsugiError]
    for _ in range(calls // 5):
        call(a, b, out)
    gc.collect()
    references, used = [sys.getrefcount(item) for item in objects], memory_used()
    for _ in range(calls):
        call(a, b, out)
    gc.collect()
    assert memory_used() - used < 8 << 20
    for item, before in zip(objects, references):
        assert abs(sys.getrefcount(item) - before) < 20, item


def test_a_result_owns_its_memory():
    result = kintsugi.matmul(np.eye(3), np.eye(3))
    references = sys.getrefcount(result)  # an assertion would hold more
    assert result.flags.owndata and result.flags.writeable and references == 2


# ------------------------------------------------------------ threads, time, plans

def test_eight_threads_at_once():
    """Each with results, errors and a last plan of its own."""
    def work(number):
        rng = np.random.default_rng(number)
        size = number + 3
        a, b = rng.standard_normal((2, size, size))
        expected = kintsugi.matmul(a, b, accuracy="exact", threads=1)
        for _ in range(200):
            assert (kintsugi.matmul(a, b, accuracy="exact", threads=1) == expected).all()
            with pytest.raises(kintsugi.KintsugiError, match=f"fp{number}"):
                kintsugi.matmul(a, b, scheme=f"fp{number}")
        kintsugi.matmul(a, b, threads=1)
        return kintsugi.last_plan()["problem"]["m"] == size

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_other_threads_run_during_a_product():
    a = np.ones((250, 250), np.float32)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        product = pool.submit(kintsugi.matmul, a, a, scheme="fp16x3", engine="reference", threads=1)
        turns = 0
        while not product.done():
            time.sleep(0.001)
            turns += 1
    assert turns > 5, "with the interpreter's lock held there is one or two"


def test_plain_operands_take_less_time(monkeypatch):
    a = np.ones((8, 8))

    def quickest(calls=20):
        start = time.perf_counter()
        for _ in range(calls):
            kintsugi.matmul(a, a, policy="native", threads=1)
        return time.perf_counter() - start

    plain, converted = [], []
    for _ in range(20):
        plain.append(quickest())
        with monkeypatch.context() as patch:
            convert_all(patch)
            converted.append(quickest())
    assert min(plain) < 0.7 * min(converted)


def test_the_last_plan_is_that_of_the_last_product(monkeypatch):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    kintsugi.matmul(a, b, accuracy=1e-5, policy="emulate", threads=1)
    last = kintsugi.last_plan()
    assert last == kintsugi.explain(a, b, accuracy=1e-5, policy="emulate", threads=1)
    assert kintsugi.last_plan() == last and kintsugi.last_report()["engine"] == last["engine"]
    kintsugi.matmul(a[:, ::-1], b, threads=1)
    assert kintsugi.last_plan()["candidates"][0]["scheme"] == "native"
    kintsugi.matmul(a, b, scheme="fp16x3", threads=1)
    assert kintsugi.last_plan()["candidates"][0]["scheme"] == "fp16x3"


def test_the_module_refuses_what_is_no_argument_of_it():
    for call in (lambda: _core.matmul(1), lambda: _core.execute(), lambda: _core.plan({}, ())):
        with pytest.raises(TypeError, match="arguments are needed"):
            call()
    for call in (lambda: _core.plan_text(object()), lambda: _core.execute(*[None] * 6), lambda: _core.set_last(1)):
        with pytest.raises(ValueError, match="PyCapsule"):
            call()
    with pytest.raises(KeyError, match="no member q"):
        _core.plan({"q": 1}, (None,) * 6)
    with pytest.raises(ValueError, match="cannot read an array"):
        _core.problem(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2), int), 2)
    with pytest.raises(ValueError, match="BLAS cannot address"):
        _core.problem(np.ones((2, 4))[:, ::2], np.ones((2, 2)), np.ones((2, 2)), 2)


@pytest.mark.parametrize("shape, strides, kind", [
    ((3, 4), (32, 8), "strided"), ((3, 4), (8, 24), "strided"), ((3, 4), (64, 16), None), ((3, 4), (-32, 8), None),
    ((5, 3, 4), (96, 32, 8), "strided"), ((5, 3, 4), (0, 32, 8), "strided"), ((5, 3, 4), (-96, 32, 8), "pointers"),
    ((2, 5, 3, 4), (480, 96, 32, 8), "strided"), ((2, 5, 3, 4), (0, 96, 32, 8), "pointers"), ((1, 4), (-8, 8), "strided"),
    ((0, 4), (1, 1), "strided"), ((5, 0, 4), (-8, 8, 16), "strided")])
def test_how_blas_can_address_an_array(shape, strides, kind):
    memory = np.zeros(1000)
    assert _core.batch_kind(np.lib.stride_tricks.as_strided(memory[500:], shape, strides)) == kind
    assert _core.batch_kind(np.zeros(shape, int)) is None


def test_the_limit_of_threads():
    offered = kintsugi.set_threads(None)
    a = np.eye(300)
    try:
        assert kintsugi.set_threads(1) == 1
        assert kintsugi.explain(a, a, accuracy="exact", threads=7)["threads"] == 1
    finally:
        assert kintsugi.set_threads(0) == offered
    assert kintsugi.explain(a, a, accuracy="exact", threads=7)["threads"] == 7
    for wrong in (-1, 2**31):
        with pytest.raises(ValueError, match="threads"):
            kintsugi.set_threads(wrong)
