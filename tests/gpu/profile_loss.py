"""Says what the decisions of a profile cost: for shapes that `kintsugi bench` timed both natively and emulated on this
device, how much longer calls of `auto` take with each profile than with the best choice.

    kintsugi bench auto fp32 --memory device --shapes ... --baselines native -o times.json
    python3 tests/gpu/profile_loss.py --library libkintsugi.so times.json shipped= blind=folder

A profile is given as NAME=FOLDER, with the folder that XDG_CONFIG_HOME would name (empty: none, so that the shipped profile
is used). The plans are made on the device, so that they are those of real calls.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys

F32, F64, DEVICE = 0, 1, 1


class Problem(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_int64) for name in (
        "m", "n", "k", "lda", "ldb", "ldc", "batch_count", "stride_a", "stride_b", "stride_c")] + [
            (name, ctypes.c_int32) for name in ("op_a", "op_b", "type_a", "type_b", "type_c", "type_scalar", "layout",
                                                "pointer_mode", "memory", "batch_kind", "prepared_a", "prepared_b")]


def emulates(library, m, n, k, is_double):
    """True if auto emulates this row-major product (bench's are row-major)."""
    number = F64 if is_double else F32
    problem = Problem(ctypes.sizeof(Problem), m, n, k, k, n, n, 1, 0, 0, 0, 0, 0, number, number, number, number, 1, 0, DEVICE)
    plan = ctypes.c_void_p()
    if library.kintsugi_plan_create(None, ctypes.byref(problem), None, ctypes.byref(plan)) != 0:
        library.kintsugi_last_error.restype = ctypes.c_char_p
        sys.exit(f"profile_loss: {library.kintsugi_last_error().decode()}")
    buffer = ctypes.create_string_buffer(1 << 20)
    library.kintsugi_plan_describe(plan, buffer, len(buffer), None)
    library.kintsugi_plan_destroy(plan)
    return json.loads(buffer.value)["candidates"][0]["scheme"] != "native"


def print_decisions(path, shapes):
    library = ctypes.CDLL(os.path.abspath(path))
    print(json.dumps([emulates(library, *shape) for shape in json.loads(shapes)]))


def decisions(library, shapes, folder):
    """Returns for each shape if auto emulates it. Asks a new process, since a process reads its profile only once."""
    environment = {**os.environ, "XDG_CONFIG_HOME": folder or "/nonexistent"}
    words = [sys.executable, __file__, "--decide", json.dumps(shapes), "--library", library]
    return json.loads(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)


def times_of(files):
    """(m, n, k, is_double) -> (native, emulated) seconds. Of several emulated rows of a shape the fastest counts."""
    native, emulated = {}, {}
    for file in files:
        for row in json.load(open(file))["rows"]:
            problem = row["problem"]
            shape = (problem["m"], problem["n"], problem["k"], problem["type"] == "fp64")
            if row["name"] == "native":
                native[shape] = row["time"]["median"]
            elif row["scheme"] != "native":
                emulated[shape] = min(row["time"]["median"], emulated.get(shape, float("inf")))
    return {shape: (native[shape], time) for shape, time in emulated.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="results of bench, then NAME=FOLDER for each profile")
    parser.add_argument("--library", required=True)
    parser.add_argument("--decide", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.decide:
        return print_decisions(given.library, given.decide)
    profiles = dict(word.split("=", 1) for word in given.files if "=" in word)
    times = times_of(word for word in given.files if "=" not in word)
    shapes = list(times)
    chosen = {name: decisions(given.library, shapes, folder) for name, folder in profiles.items()}
    result = {"shapes": len(shapes), "profiles": {}}
    for name, emulated in chosen.items():
        ratios = [times[shape][choice] / min(times[shape]) for shape, choice in zip(shapes, emulated)]
        slower = [times[shape][choice] / times[shape][0] for shape, choice in zip(shapes, emulated)]
        worst = max(range(len(shapes)), key=lambda i: ratios[i])
        result["profiles"][name] = {"emulated": sum(emulated), "mean_over_best": sum(ratios) / len(ratios),
                                    "worst_over_best": ratios[worst], "worst_shape": shapes[worst],
                                    "worst_over_native": max(slower)}
    print(json.dumps(result) if given.json else "\n".join(
        f"{name:12} emulates {found['emulated']:3} of {len(shapes)}; {100 * (found['mean_over_best'] - 1):.2f} % over the best "
        f"choices in the mean, {100 * (found['worst_over_best'] - 1):.0f} % at {found['worst_shape']}; at most "
        f"{100 * (found['worst_over_native'] - 1):.0f} % over native" for name, found in result["profiles"].items()))


main()
