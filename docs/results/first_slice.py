#!/usr/bin/env python3
"""Errors of all schemes of version 0.1 over distributions and inner lengths; writes first-slice.json and prints
the tables of first-slice.md.

    docs/results/first_slice.py build/kintsugi            measure (about ten minutes on two cores), then print
    docs/results/first_slice.py --tables                   print from first-slice.json

Needs the Python standard library alone.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
RESULT = HERE / "first-slice.json"
M = N = 128
SEEDS = ["1", "2", "3"]
LENGTHS = [1, 4, 16, 64, 128, 256, 1024, 4096]
DISTRIBUTIONS = ["uniform", "uniform01", "phi:0.5", "phi:1", "phi:2", "phi:4", "span:16", "span:17", "span:28", "span:29"]
# Column of the tables: scheme, engine.
CASES = {
    "fp16": ("fp16", "reference"),
    "markidis": ("markidis", "reference"),
    "fp16x3": ("fp16x3", "reference"),
    "fp16x3-wide": ("fp16x3-wide", "reference"),
    "fp16x3-wide cpu": ("fp16x3-wide", "cpu"),
    "native OpenBLAS": ("native", "cpu"),
    "native sequential": ("native", "reference"),
}


ERRORS = ["frobenius_relative", "max_relative", "mean_relative", "max_componentwise", "correctly_rounded_fraction",
          "special_mismatches", "within_contract_bound"]


def short(value):
    """Four digits say all that an error has to say."""
    return float(f"{value:.3e}") if isinstance(value, float) else value


def run(program, folder, *words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KINTSUGI_", "OPENBLAS_"))}
    done = subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def measure_one(program, folder, distribution, k, seed):
    run(program, folder, "generate", distribution, f"{M}x{k}", "-o", "a.npy", "--seed", seed, "--side", "a")
    run(program, folder, "generate", distribution, f"{k}x{N}", "-o", "b.npy", "--seed", seed, "--side", "b")
    rows = []
    for engine in ("reference", "cpu"):
        cases = [name for name, (_, where) in CASES.items() if where == engine]
        schemes = [CASES[name][0] for name in cases]
        first = ["--scheme", schemes[0]] if schemes[0] != "native" else ["--policy", "native"]
        document = json.loads(run(program, folder, "gemm", "a.npy", "b.npy", "--engine", engine, *first, "--compare",
                                  ",".join(schemes[1:]), "--check", "--json"))
        for name, scheme, row in zip(cases, schemes, document["rows"]):
            assert row["scheme"] == scheme and row["engine"] == engine, (name, row["scheme"], row["engine"])
            assert row["errors"]["elements_checked"] == M * N
            row["distribution"] = distribution
            row["seed"] = int(seed)
            row["case"] = name
            # What the tables need; the times of single runs at this size mean nothing.
            row["problem"] = {key: row["problem"][key] for key in ("m", "n", "k", "type")}
            row["errors"] = {key: short(row["errors"][key]) for key in ERRORS}
            row["bound"] = row["bound"] and {"relative": short(row["bound"]["relative"])}
            row["time"] = row["baseline"] = None
            rows.append(row)
    head = {key: document[key] for key in ("version", "commit", "machine")}
    return head, rows


def measure(program):
    result = {"format": "kintsugi.first-slice", "format_version": 1, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        for distribution in DISTRIBUTIONS:
            for k in LENGTHS:
                if k == 1 and distribution.startswith("span"):
                    continue  # a vector of one element spans nothing
                for seed in SEEDS:
                    head, rows = measure_one(program, folder, distribution, k, seed)
                    result.update(head)
                    result["machine"].pop("system", None)  # which kernel ran says nothing about errors
                    result["rows"] += rows
                print(f"{distribution} k = {k}", file=sys.stderr, flush=True)
        result["settings"] = {}
        result["seed"] = int(SEEDS[0])
        result["cpu_engine"] = [engine["details"] for engine in json.loads(run(program, folder, "engines", "--json"))["engines"]
                                if engine["name"] == "cpu"][0].split(", from ")[0]
    order = ["format", "format_version", "version", "commit", "machine", "cpu_engine", "settings", "seed", "rows"]
    return {key: result[key] for key in order}


def number(value):
    """Non-finite numbers stand as text in JSON."""
    return float(value) if isinstance(value, str) else value


def collect(rows):
    """{(distribution, k, case): (median Frobenius, worst componentwise / bound)} over the seeds."""
    found = {}
    for row in rows:
        key = row["distribution"], row["problem"]["k"], row["case"]
        errors = row["errors"]
        share = number(errors["max_componentwise"]) / ((row["problem"]["k"] + 8) * 2.0**-24)
        found.setdefault(key, []).append((number(errors["frobenius_relative"]), share))
    return {key: (sorted(f for f, _ in values)[len(values) // 2], max(s for _, s in values))
            for key, values in found.items()}


def text(value, digits):
    if not math.isfinite(value):
        return "NaN or Inf" if math.isnan(value) else "Inf"
    return f"{value:.{digits}e}" if digits else f"{value:.2g}"


def table(found, index, digits):
    print("| distribution | k | " + " | ".join(CASES) + " |")
    print("|---|---|" + "---|" * len(CASES))
    for distribution in DISTRIBUTIONS:
        for k in LENGTHS:
            cells = [found.get((distribution, k, case)) for case in CASES]
            if cells[0] is None:
                continue
            print(f"| {distribution} | {k} | " + " | ".join(text(cell[index], digits) for cell in cells) + " |")


def no_worse_from(found, distribution, case, native):
    """The smallest measured k from which on the case is no worse than native in every measured k."""
    best = "none"
    for k in reversed(LENGTHS):
        if (distribution, k, case) not in found:
            continue
        if found[distribution, k, case][0] > found[distribution, k, native][0]:
            break
        best = str(k)
    return best


def ratio(found, distribution, k, case, native):
    return found[distribution, k, case][0] / found[distribution, k, native][0]


def print_tables(result):
    found = collect(result["rows"])
    print("### Frobenius error, median of three seeds\n")
    table(found, 0, 1)
    print("\n### Largest componentwise error over (k + 8) 2^-24, worst of three seeds\n")
    table(found, 1, 0)
    print("\n### No worse than native in Frobenius error from k = ... on; in brackets the ratio at k = 64\n")
    pairs = [("fp16x3-wide", "native OpenBLAS"), ("fp16x3-wide", "native sequential"), ("fp16x3", "native sequential"),
             ("fp16x3-wide cpu", "native OpenBLAS"), ("fp16x3-wide cpu", "native sequential")]
    print("| distribution | " + " | ".join(f"{case} / {native}" for case, native in pairs) + " |")
    print("|---|" + "---|" * len(pairs))
    for distribution in DISTRIBUTIONS:
        cells = [f"{no_worse_from(found, distribution, *pair)} ({ratio(found, distribution, 64, *pair):.2f})" for pair in pairs]
        print(f"| {distribution} | " + " | ".join(cells) + " |")


def main():
    if sys.argv[1:] == ["--tables"]:
        print_tables(json.loads(RESULT.read_text()))
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    result = measure(str(pathlib.Path(sys.argv[1]).resolve()))
    # One row a line keeps the file readable and small.
    head = json.dumps({key: value for key, value in result.items() if key != "rows"}, indent=1)[:-2]
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in result["rows"])
    RESULT.write_text(f'{head},\n "rows": [\n{rows}\n]}}\n')
    print_tables(result)


if __name__ == "__main__":
    main()
