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
from kintsugi import _abi, _compiled
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
        shape = (np.empty(a.shape) @ np.empty(b.shape)).shape
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
    from kintsugi import _calls

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
    assert LAST - FIRST < 50 or taken >= 10
