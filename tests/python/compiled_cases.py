"""The compiled path against the Python code: the same results, problems and errors for random calls; no leaks, threads,
time. COMPILED_SEEDS=0:100000 runs more than the suite does. Run by test_package.py with the Python that the package is
installed in.
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
from kintsugi import _abi, _calls, _compiled
from random_views import TYPES, random_geometry, random_shapes, random_values

FIRST, LAST = (int(part) for part in os.environ.get("COMPILED_SEEDS", "0:1500").split(":"))

pytestmark = pytest.mark.skipif(_compiled.core is _compiled.Absent, reason="the wheel has no compiled path")


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
    "workspace_limit": [None, 0, 4096, -1, 2**63 - 1, 2**63, 1.5, True],
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


class Counting:
    """The compiled path, and how many products it took."""

    def __init__(self):
        self.taken = 0
        self.problem = None

    def __getattr__(self, name):
        return getattr(_compiled_core, name)

    def multiply(self, *arguments):
        before = _compiled_core.last(arguments[0])
        try:
            result = _compiled_core.multiply(*arguments)
        except kintsugi.KintsugiError:
            self.taken += 1
            raise
        if result is not NotImplemented:
            self.taken += 1
            self.problem = _compiled_core.last(arguments[0])[0]
        else:
            assert _compiled_core.last(arguments[0]) == before
        return result


_compiled_core = _compiled.core


def python_path(monkeypatch, problems):
    """The Python code alone; the problems that it makes."""
    def note(problem, *rest):
        problems.append(bytes(problem))
        return make_plan(problem, *rest)

    make_plan = _calls.make_plan
    monkeypatch.setattr(_compiled, "core", _compiled.Absent)
    monkeypatch.setattr(_calls, "make_plan", note)


@pytest.mark.parametrize("block", range(FIRST, LAST, 50))
def test_random_calls_have_the_same_outcome(block, monkeypatch):
    taken = 0
    for seed in range(block, min(block + 50, LAST)):
        with monkeypatch.context() as patch:
            counting = Counting()
            patch.setattr(_compiled, "core", counting)
            found = outcome(random_call(seed))
        with monkeypatch.context() as patch:
            problems = []
            python_path(patch, problems)
            expected = outcome(random_call(seed))
        assert found == expected, f"COMPILED_SEEDS={seed}:{seed + 1}"
        if counting.problem is not None:
            assert problems == [counting.problem], f"COMPILED_SEEDS={seed}:{seed + 1}"
        taken += counting.taken
    assert LAST - FIRST < 50 or taken >= 3


# ------------------------------------------------------------ what a call keeps

def memory_used():
    """Returns the memory of the process now, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def refused(a, b):
    with pytest.raises(kintsugi.KintsugiError):
        kintsugi.matmul(a, b, scheme="fp17")


def declined(a, b):
    kintsugi.matmul(a, b[:, ::-1], policy="native")


CALLS = {
    "new results": (20000, lambda a, b, out: kintsugi.matmul(a, b, policy="native", threads=1)),
    "results in out": (20000, lambda a, b, out: kintsugi.matmul(a, b, alpha=2, beta=0.5, out=out, policy="native")),
    "a plan": (20000, lambda a, b, out: PLAN(a, b)),
    "errors": (2000, lambda a, b, out: refused(a, b)),
    "declined calls": (2000, lambda a, b, out: declined(a, b)),
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


def test_it_takes_less_time_than_ctypes(monkeypatch):
    a = np.ones((8, 8))

    def quickest(calls=20):
        start = time.perf_counter()
        for _ in range(calls):
            kintsugi.matmul(a, a, policy="native", threads=1)
        return time.perf_counter() - start

    compiled, python = [], []
    for _ in range(20):
        compiled.append(quickest())
        with monkeypatch.context() as patch:
            patch.setattr(_compiled, "core", _compiled.Absent)
            python.append(quickest())
    assert min(compiled) < 0.7 * min(python)


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
    thread = _abi.this_thread.compiled
    for call in (lambda: _compiled.core.multiply(thread), lambda: _compiled.core.execute(), lambda: _compiled.core.bind(1)):
        with pytest.raises(TypeError, match="arguments are needed"):
            call()
    for call in (lambda: _compiled.core.last(object()), lambda: _compiled.core.multiply(*[None] * 12)):
        with pytest.raises(ValueError, match="PyCapsule"):
            call()
    with pytest.raises(ValueError, match="address is 0"):
        _compiled.core.bind(0, 0, 0, 0, ValueError, None)
