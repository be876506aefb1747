"""Times of one small product through the package, in microseconds: the least of many short runs, so that other programs on
the machine count little.

    python3 tests/python/call_times.py --size 8 --json
    python3 tests/python/call_times.py --size 1024 --torch --cuda

"own part" is without the library, whose place a function of the C library takes that does nothing.
"""

import argparse
import ctypes
import json
import sys
import timeit

import kintsugi
import numpy as np
from kintsugi import _core


def microseconds(call, calls=100, runs=300):
    return min(timeit.repeat(call, before_runs, number=calls, repeat=runs)) / calls * 1e6


def before_runs():
    """Waits until the device is idle: times are the host's, and no call may wait because a stream is full."""
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        torch.cuda.synchronize()


def own_part(calls):
    """fegetround() is 0, success, where numbers are rounded to nearest."""
    nothing = ctypes.cast(ctypes.CDLL("libm.so.6").fegetround, ctypes.c_void_p).value
    _core.replace(nothing, 0, nothing)
    try:
        return {f"own part of {name}": microseconds(call) for name, call in calls.items()}
    finally:
        _core.replace(0, 0, 0)


def times(a, b, out, native):
    """native: what the arrays' library does, with and without out."""
    plan = kintsugi.plan(a, b)
    calls = {"matmul, policy native": lambda: kintsugi.matmul(a, b, policy="native"),
             "matmul": lambda: kintsugi.matmul(a, b), "matmul, out": lambda: kintsugi.matmul(a, b, out=out),
             "plan": lambda: plan(a, b), "plan, out": lambda: plan(a, b, out=out)}
    found = {name: microseconds(call) for name, call in (native | calls).items()}
    reversed_columns = a.flip(1) if hasattr(a, "flip") else a[:, ::-1]
    found["matmul of what must be copied"] = microseconds(lambda: kintsugi.matmul(reversed_columns, b), 20, 50)
    return found | own_part(calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8, help="rows and columns of the matrices")
    parser.add_argument("--torch", action="store_true", help="tensors of torch on the CPU in place of numpy's arrays")
    parser.add_argument("--cuda", action="store_true", help="with --torch: tensors on the GPU, whose host time it is then")
    parser.add_argument("--json", action="store_true", help="an object of microseconds by name")
    given = parser.parse_args()
    a, b, out = (np.ones((given.size, given.size), np.float32) for _ in range(3))
    native = {"a @ b": lambda: a @ b, "a @ b, out": lambda: np.matmul(a, b, out=out)}
    if given.torch:
        import torch

        torch.set_num_threads(1)
        a, b, out = (torch.from_numpy(x).to("cuda" if given.cuda else "cpu") for x in (a, b, out))
        native = {"torch.mm": lambda: torch.mm(a, b), "torch.mm, out": lambda: torch.mm(a, b, out=out)}
    kintsugi.matmul(np.eye(2), np.eye(2))
    found = times(a, b, out, native)
    print(json.dumps(found) if given.json else "\n".join(f"{time:9.2f}  {name}" for name, time in found.items()))


main()
