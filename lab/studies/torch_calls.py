#!/usr/bin/env python3
"""Measures kintsugi.matmul of torch's tensors on a GPU against torch.mm, call by call.

Both are called in turns, in both orders. "call" is the time of many calls one after the other until the device has finished,
divided by their number; "host" the time until the calls have returned, while the device has room for their work. Medians of
rounds, in microseconds. A call may take 5 us more than torch's; the program ends with status 1 if one takes longer. Every
result is compared with that of FP64 before anything is timed.

example: lab/studies/torch_calls.py --json torch-calls.json
"""

import argparse
import gc
import json
import pathlib
import statistics
import sys
import time

SHAPES = "16x2048x2048,100000x32x32,256x256x256,512x512x512,64x4096x4096,2048x64x512"  # m x n x k
LAYOUTS = {"contiguous": (False, False), "a transposed": (True, False), "b transposed": (False, True),
           "both transposed": (True, True)}
GOAL = 5.0


def matrix(torch, rows, columns, transposed, dtype):
    made = torch.randn((columns, rows) if transposed else (rows, columns), dtype=dtype, device="cuda")
    return made.mT if transposed else made


def check(torch, call, a, b):
    """Compares with the FP64 product: 1e-4 and 1e-12 of |a| |b| hold whatever arithmetic of the type computed it."""
    wide_a, wide_b = a.double(), b.double()
    error = ((call(a, b).double() - wide_a @ wide_b).abs() / (wide_a.abs() @ wide_b.abs())).max().item()
    if not error <= (1e-4 if a.dtype == torch.float32 else 1e-12):
        sys.exit(f"torch_calls: {tuple(a.shape)} by {tuple(b.shape)}: the error is {error} of |a| |b|")


def microseconds(torch, call, a, b, calls, waits):
    """Time of a call in microseconds; waits: until the device has finished."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call(a, b)
    if waits:
        torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / calls * 1e6


def measure(torch, calls_by_name, a, b, rounds):
    """Medians of each call, by name and kind."""
    times = {(name, kind): [] for name in calls_by_name for kind in ("call", "host")}
    for call in calls_by_name.values():
        microseconds(torch, call, a, b, 20, True)
    for turn in range(rounds):
        names = list(calls_by_name) if turn % 2 == 0 else list(reversed(calls_by_name))
        for name in names:
            times[name, "call"].append(microseconds(torch, calls_by_name[name], a, b, 200, True))
            times[name, "host"].append(microseconds(torch, calls_by_name[name], a, b, 20, False))
    return {f"{name} {kind}": statistics.median(found) for (name, kind), found in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("torch-calls.json"), help="file for what is measured")
    parser.add_argument("--rounds", type=int, default=30, help="of both calls [30]")
    parser.add_argument("--shapes", default=SHAPES, help=f"m x n x k of the products [{SHAPES}]")
    parser.add_argument("--types", default="float32,float64", help="of the tensors [float32,float64]")
    words = parser.parse_args()
    import kintsugi
    import torch

    calls = {"torch": torch.mm, "kintsugi": kintsugi.matmul, "native": lambda a, b: kintsugi.matmul(a, b, policy="native")}
    document = {"format": "kintsugi.torch-calls", "format_version": 1, "device": torch.cuda.get_device_name(),
                "torch": torch.__version__, "goal": GOAL, "rows": []}
    gc.disable()
    for type_name in words.types.split(","):
        for m, n, k in (map(int, shape.split("x")) for shape in words.shapes.split(",")):
            for layout, (a_transposed, b_transposed) in LAYOUTS.items():
                dtype = getattr(torch, type_name)
                a, b = matrix(torch, m, k, a_transposed, dtype), matrix(torch, k, n, b_transposed, dtype)
                for call in calls.values():
                    check(torch, call, a, b)
                row = {"type": type_name, "shape": f"{m}x{n}x{k}", "layout": layout, **measure(torch, calls, a, b, words.rounds)}
                row["difference"] = row["kintsugi call"] - row["torch call"]
                kintsugi.matmul(a, b)
                row["schemes"] = [found["scheme"] for found in kintsugi.last_report()["candidates"] if found["items"]]
                document["rows"].append(row)
                words.json.write_text(json.dumps(document, indent=1) + "\n")
                print(f"{type_name} {row['shape']:16} {layout:16} torch {row['torch call']:6.1f} (host {row['torch host']:5.1f})  "
                      f"kintsugi {row['kintsugi call']:6.1f} (host {row['kintsugi host']:5.1f})  native {row['native call']:6.1f}"
                      f"{'' if row['difference'] <= GOAL else '  missed'}", flush=True)
    sys.exit(any(row["difference"] > GOAL for row in document["rows"]))


if __name__ == "__main__":
    main()
