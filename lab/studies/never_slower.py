#!/usr/bin/env python3
"""Measures on a GPU whether calls are slower than cuBLAS on any data or shape, and compares with goals that were set before.

Runs `kintsugi bench` for every group of cases below: `auto` and contracts against cuBLAS in turns, in both orders, medians of
rounds, plans made before. --write makes docs/results/never-slower.md from the file.

example: lab/studies/never_slower.py --program build/kintsugi --json never-slower.json
         lab/studies/never_slower.py --write docs/results/hopper/never-slower.json
"""

import argparse
import datetime
import json
import math
import pathlib
import random
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "results" / "never-slower.md"

# Group, candidate, type, distribution, {shape: least speed of cuBLAS's}.
WIDE = {"256": 0.95, "512": 1.0, "768": 1.0, "1024": 1.0, "1280": 0.95, "1536": 0.95, "2048": 0.95, "4096": 0.95, "8192": 0.95}
NARROW = {"256": 1.4, "512": 1.6, "768": 2.1, "1024": 2.4, "1280": 2.5, "1536": 2.8, "2048": 3.0, "4096": 3.0, "8192": 3.0}
# Few rows or columns: cuBLAS's time in a prototype's measurements over that of the goal.
FEW = {"8x4096x4096": 3.5, "16x4096x4096": 3.5, "32x4096x4096": 2.7, "64x4096x4096": 1.7, "128x4096x4096": 2.1,
       "4096x8x4096": 1.8, "4096x16x4096": 1.8, "4096x32x4096": 1.5, "4096x64x4096": 1.7, "4096x128x4096": 2.1,
       "2048x16x2048": 2.4, "1x4096x4096": 0.95, "4096x1x4096": 0.95}
GROUPS = [
    *(("auto, FP32", "auto", "fp32", distribution, NARROW)
      for distribution in ("uniform", "uniform01", "phi:0.5", "phi:1", "phi:2")),
    *(("auto, FP32", "auto", "fp32", distribution, WIDE)
      for distribution in ("phi:4", "phi:8", "graded:40", "graded-inner:60", "outlier:40", "zeros:0.5", "subnormal-mixed")),
    *(("few rows or columns, auto, FP32", "auto", "fp32", distribution, FEW)
      for distribution in ("uniform", "phi:2", "phi:4", "outlier:40", "zeros:0.5")),
    *(("auto, FP64", "auto", "fp64", distribution, {"4096": 1.08, "8192": 1.4}) for distribution in ("uniform", "phi:0.5", "phi:1")),
    ("auto, FP64", "auto", "fp64", "phi:0.5", {"2048": 0.97, "2560": 1.1, "16384": 1.6, "2048x16384x1024": 1.05}),
    ("auto, FP64", "auto", "fp64", "phi:2", {"2048": 0.97, "2560": 0.97, "4096": 0.87, "8192": 1.15, "2048x16384x1024": 0.87}),
    *(("auto, FP64", "auto", "fp64", distribution, {"4096": 0.87, "8192": 0.87}) for distribution in ("phi:4", "phi:8")),
    ("auto, complex FP64", "auto", "c64", "phi:0.5", {"512": 0.6, "1024": 0.87, "1536": 1.15, "2048": 1.5, "4096": 2.0}),
    ("auto, complex FP64", "auto", "c64", "phi:2", {"512": 0.6, "1024": 0.87, "1536": 0.87, "2048": 1.1, "4096": 1.4}),
    ("auto, complex FP64", "auto", "c64", "phi:4", {"512": 0.6, "1024": 0.87, "1536": 0.6, "2048": 0.7, "4096": 0.7}),
    *(("auto, complex FP32", "auto", "c32", distribution, {"512": 0.75, "1024": 1.0, "1536": 1.7, "2048": 2.2, "4096": 3.0})
      for distribution in ("uniform", "phi:0.5")),
    ("auto, complex FP32", "auto", "c32", "phi:2", {"512": 0.75, "1024": 0.95, "1536": 1.5, "2048": 2.0, "4096": 2.5}),
    ("auto, complex FP32", "auto", "c32", "phi:4", {"512": 0.75, "1024": 0.7, "1536": 0.87, "2048": 1.1, "4096": 1.3}),
    ("fp64 under emulate", "fp64", "fp64", "phi:4", {"4096": 0.8, "8192": 0.8}),
    *(("exact", "exact", "fp64", f"phi:{phi}", {"8192": goal}) for phi, goal in ((0.5, 1.0), (1, 0.9), (2, 0.6), (4, 0.35))),
    ("long k, auto", "auto", "fp32", "uniform", {"1024x1024x65536": 2.0, "1024x1024x1000000": 1.8, "768x768x131072": 0.9,
                                                 "4096x4096x65536": 4.0}),
    ("long k, auto", "auto", "fp64", "uniform", {"2048x2048x131072": 1.1}),
    ("long k, fp32 under emulate", "fp32", "fp32", "uniform", {"1024x1024x16384": 0.9, "1536x1024x100000": 0.9}),
    ("long or thin, fp32 under emulate", "fp32", "fp32", "uniform", {"64x64x1048576": 0.3, "100x100x100000": 0.3,
                                                                     "262144x64x64": 0.3}),
]
RANDOM_GOAL = 0.95


def random_shapes(count, seed, volume=(30, 36)):
    """Shapes with m n k = 2^30 ... 2^36, each of m, n and k from 16 to 10^6, by uniform logarithms."""
    draw = random.Random(seed)
    shapes = []
    while len(shapes) < count:
        m, n, k = (round(2 ** draw.uniform(4, 19.93)) for _ in range(3))
        if 2 ** volume[0] <= m * n * k <= 2 ** volume[1] and m * n <= 2**28 and m * k <= 2**28 and k * n <= 2**28:
            shapes.append(f"{m}x{n}x{k}")
    return shapes


def groups(count, seed):
    yield from GROUPS
    for type_name in ("fp32", "fp64"):
        shapes = random_shapes(count if type_name == "fp32" else count // 2, seed)
        yield (f"{len(shapes)} random shapes, {type_name}", "auto", type_name, "uniform", dict.fromkeys(shapes, RANDOM_GOAL))


def bench(program, candidate, type_name, distribution, shapes, repeat):
    words = [program, "bench", candidate, "--type", type_name, "--distribution", distribution, "--memory", "device", "--shapes",
             ",".join(shapes), "--baselines", "native", "--repeat", str(repeat), "--no-ceilings", "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"never_slower: {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def batches(items, size):
    return [items[first:first + size] for first in range(0, len(items), size)]


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def shape_of(problem):
    m, n, k = problem["m"], problem["n"], problem["k"]
    return str(m) if m == n == k else f"{m}x{n}x{k}"


def measure(words):
    document = {"format": "kintsugi.never-slower", "format_version": 1,
                "date": datetime.date.today().isoformat(), "seed": words.seed, "rows": []}
    for group, candidate, type_name, distribution, goals in groups(words.random_shapes, words.seed):
        if words.group not in (None, group):
            continue
        for shapes in batches(list(goals), 40):
            result = bench(words.program, candidate, type_name, distribution, shapes, words.repeat)
            native = {shape_of(row["problem"]): row["time"]["median"] for row in result["rows"] if row["name"] == "native"}
            document["device"] = result["rows"][0]["engine_details"].split(";")[0]
            document["commit"] = result["commit"]
            for row in result["rows"]:
                if row["name"] == "native":
                    continue
                shape = shape_of(row["problem"])
                document["rows"].append({"group": group, "type": type_name, "distribution": distribution, "shape": shape,
                                         "scheme": row["scheme"], "microseconds": row["time"]["median"] * 1e6,
                                         "cublas_microseconds": native[shape] * 1e6, "speed": row["ratios"]["native"],
                                         "goal": goals[shape]})
            words.json.write_text(json.dumps(document, indent=1) + "\n")  # a run that is ended leaves what it has
            speeds = [row["speed"] for row in document["rows"][-len(shapes):]]
            print(f"{group}, {distribution}: {len(shapes)} shapes, geometric mean {geometric_mean(speeds):.2f}, least {min(speeds):.2f}",
                  flush=True)


def cell(row):
    mark = "" if row["speed"] >= row["goal"] else " **missed**"
    return f"{row['speed']:.2f} ({row['scheme']}; goal {row['goal']:g}){mark}"


def page(document):
    rows = document["rows"]
    lines = ["# Never slower than cuBLAS?", "",
             "Made by `lab/studies/never_slower.py --write` from [never-slower.json](hopper/never-slower.json); not to be edited by "
             "hand. The goals were set before.",
             f"{document['device']}; commit {document['commit']}; {document['date']}.", "",
             "Speed of the call divided by that of cuBLAS's product of the type, medians, both orders of turns; in brackets the "
             "scheme that the", "operands selected.", ""]
    missed = sum(row["speed"] < row["goal"] for row in rows)
    lines += [f"{len(rows) - missed} of {len(rows)} cases reach their goal.", ""]
    for group in dict.fromkeys(row["group"] for row in rows):
        of_group = [row for row in rows if row["group"] == group]
        lines += [f"## {group[0].upper()}{group[1:]}", ""]
        if "random" in group:
            speeds = sorted(of_group, key=lambda row: row["speed"])
            below = [row for row in speeds if row["speed"] < row["goal"]]
            emulated = [row for row in speeds if row["scheme"] != "native"]
            mean = geometric_mean([row["speed"] for row in speeds])
            lines += [f"Geometric mean {mean:.2f}; {len(below)} of {len(speeds)} below {of_group[0]['goal']:g}; {len(emulated)} are emulated. "
                      "The slowest:", "",
                      "| m x n x k | speed |", "|---|---|",
                      *(f"| {row['shape']} | {row['speed']:.2f} ({row['scheme']}) |" for row in speeds[:12]), ""]
            continue
        shapes = list(dict.fromkeys(row["shape"] for row in of_group))
        lines += ["| data | " + " | ".join(shapes) + " |", "|---" * (len(shapes) + 1) + "|"]
        for distribution in dict.fromkeys(row["distribution"] for row in of_group):
            found = {row["shape"]: cell(row) for row in of_group if row["distribution"] == distribution}
            lines.append(f"| {distribution} | " + " | ".join(found.get(shape, "") for shape in shapes) + " |")
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="kintsugi", help="the program kintsugi [kintsugi]")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("never-slower.json"), help="file for what is measured")
    parser.add_argument("--repeat", type=int, default=4, help="rounds [4]")
    parser.add_argument("--random-shapes", type=int, default=100, help="of FP32; half as many of FP64 [100]")
    parser.add_argument("--group", help="measure this group alone, such as 'auto, FP32', which README's chart shows")
    parser.add_argument("--seed", type=int, default=1, help="of the random shapes [1]")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="measure nothing; make the page from this file")
    words = parser.parse_args()
    if words.write:
        PAGE.write_text(page(json.loads(words.write.read_text())))
    else:
        measure(words)


if __name__ == "__main__":
    main()
