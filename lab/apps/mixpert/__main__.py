"""Runs the programs natively, with every scheme and tuned, and prints their speed beside the native one."""

import argparse
import json
import math
import sys

import kintsugi

from mixpert.arrays import DEVICES
from mixpert.factorizations import Cholesky, HplAi
from mixpert.networks import Bert, FeedForward, Perceptron, Projections
from mixpert.search import Trials, exhaustive, greedy
from mixpert.sites import LEVELS, Sites
from mixpert.statistics import Correlation, KMeans, Neighbours, Sparkler

PROGRAMS = {kind.name: kind for kind in (HplAi, Cholesky, Correlation, Sparkler, Neighbours, KMeans, Perceptron, Bert, FeedForward, Projections)}
EXAMPLES = """examples:
  PYTHONPATH=apps python3 -m mixpert all
  PYTHONPATH=apps python3 -m mixpert perceptron cholesky --schemes fp16x3,tf32 --json
  PYTHONPATH=apps python3 -m mixpert all --device cuda --size paper --validate 20 --output mixpert.json
  PYTHONPATH=apps python3 -m mixpert bert-feed-forward --weights model.safetensors"""


def parse(words):
    parser = argparse.ArgumentParser(prog="mixpert", description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", choices=["all", *PROGRAMS], metavar="program", help="all, or of " + ", ".join(PROGRAMS))
    parser.add_argument("--device", choices=sorted(DEVICES), default="cpu", help="cpu (numpy) or cuda (CuPy); default cpu")
    parser.add_argument("--size", default="small", help="small, paper or numbers, as 8192 or 4096x1024; default small")
    parser.add_argument("--schemes", default="", metavar="LIST", help="schemes to run beside native, auto and tuned: all, or names")
    parser.add_argument("--levels", default=",".join(LEVELS), metavar="LIST",
                        help="levels of the search, most accurate first; default %(default)s")
    parser.add_argument("--limit", type=float, help="largest error of the program's result; default its own")
    parser.add_argument("--search", choices=["greedy", "exhaustive"], default="greedy", help="exhaustive runs both searches")
    parser.add_argument("--validate", type=int, default=0, metavar="N", help="check the limit on N other inputs")
    parser.add_argument("--weights", metavar="FILE", help="safetensors file of a BERT encoder; default: synthetic weights")
    parser.add_argument("--repeats", type=int, default=2, metavar="N", help="runs of which the fastest counts; default 2")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs; default 1")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--output", metavar="FILE", help="write the results as JSON, after each program")
    options = parser.parse_args(words)
    if options.repeats < 1 or options.validate < 0:
        parser.error(f"--repeats {options.repeats} --validate {options.validate}: at least 1 and 0")
    return options


def make(kind, device, options, seed):
    """A program with inputs of the size that was asked for."""
    sizes = getattr(kind, options.size, None) if options.size in ("small", "paper") else numbers(kind, options.size)
    weights = {"weights": options.weights} if kind in (Bert, FeedForward, Projections) else {}
    program = kind(device, *sizes, seed=seed, **weights)
    if options.limit is not None:
        program.limit = options.limit
    return program, sizes


def numbers(kind, text):
    words = text.split("x")
    if len(words) != len(kind.small) or not all(word.isdigit() and int(word) > 0 for word in words):
        raise SystemExit(f"mixpert: --size {text}: {kind.name} takes small, paper or {len(kind.small)} positive numbers with x between")
    return tuple(int(word) for word in words)


def reference_of(program):
    """The result of the same program with FP64 products; HPL-AI judges itself."""
    return None if isinstance(program, HplAi) else program.run(Sites(program.device), "float64")


def scheme_rows(trials, schemes):
    rows = []
    for scheme in schemes:
        try:
            rows.append({"scheme": scheme, **trials.measure(None, scheme)})
        except kintsugi.KintsugiError as error:
            rows.append({"scheme": scheme, "error": None, "refused": str(error)})
    return rows


def measure(kind, device, options, schemes):
    program, sizes = make(kind, device, options, options.seed)
    trials = Trials(program, reference_of(program), options.repeats)
    levels = options.levels.split(",")
    native = trials.measure(None)
    row = {"program": kind.name, "sizes": sizes, "limit": program.limit, "native": native,
           "auto": trials.measure(None, "auto")}
    tuned = greedy(trials, levels)
    row["tuned"] = {**tuned, "runs": len(trials.steps)}
    # Native after the others too: the clock of a GPU falls while it works.
    row["native_after"] = trials.measure(None)
    # A program is tuned to native levels where nothing else is faster, then it is the native program.
    is_native = set(tuned["levels"].values()) == {"native"}
    row["speedup"] = 1.0 if is_native else min(native["seconds"], row["native_after"]["seconds"]) / tuned["seconds"]
    row["speedup_auto"] = min(native["seconds"], row["native_after"]["seconds"]) / row["auto"]["seconds"]
    if options.search == "exhaustive":
        row["exhaustive"] = {**exhaustive(trials, levels), "runs": len(levels)**len(program.sites)}
    row["schemes"] = scheme_rows(trials, schemes)
    if kind in (Bert, FeedForward, Projections):
        row["weights"] = options.weights or "synthetic"
    del program, trials
    row["validated"] = [fresh_error(kind, device, options, tuned["levels"], seed) for seed in range(2, options.validate + 2)]
    return row


def fresh_error(kind, device, options, levels, seed):
    program, _ = make(kind, device, options, options.seed + seed)
    return program.error(program.run(Sites(device, levels)), reference_of(program))


def mean(rows, key):
    return math.exp(sum(math.log(row[key]) for row in rows) / len(rows))


def document(rows, options, device):
    return {"format": "kintsugi.mixpert", "format_version": 1, "version": kintsugi.__version__, "device": options.device,
            "machine": device.description(), "seed": options.seed, "size": options.size, "rows": rows,
            "geometric_mean": {"tuned": mean(rows, "speedup"), "auto": mean(rows, "speedup_auto")}}


def line(row):
    tuned, held = row["tuned"], sum(error <= row["limit"] for error in row["validated"])
    levels = " ".join(f"{site}={level}" for site, level in tuned["levels"].items())
    text = (f"{row['program']:<19} native {row['native']['seconds']:9.4f} s {row['native']['error']:.1e}  auto {row['speedup_auto']:5.2f} "
            f"{row['auto']['error']:.1e}  tuned {row['speedup']:5.2f} {tuned['error']:.1e} of {row['limit']:.0e} in {tuned['runs']} runs  {levels}")
    if row["validated"]:
        text += f"  held {held} of {len(row['validated'])}"
    if "exhaustive" in row:
        text += f"  exhaustive {row['exhaustive']['seconds'] / tuned['seconds']:.2f} of the time in {row['exhaustive']['runs']} runs"
    return text


def main(words=None):
    options = parse(words)
    device = DEVICES[options.device]()
    kinds = list(PROGRAMS.values()) if "all" in options.programs else [PROGRAMS[name] for name in options.programs]
    schemes = [scheme["name"] for scheme in kintsugi.schemes()] if options.schemes == "all" else [s for s in options.schemes.split(",") if s]
    rows = []
    for kind in kinds:
        rows.append(measure(kind, device, options, schemes))
        if options.output:
            with open(options.output, "w", encoding="utf-8") as file:
                json.dump(document(rows, options, device), file, indent=1)
        if not options.json:
            print(line(rows[-1]), flush=True)
    if options.json:
        print(json.dumps(document(rows, options, device), indent=1))
    else:
        print(f"geometric mean: auto {mean(rows, 'speedup_auto'):.2f}, tuned {mean(rows, 'speedup'):.2f}")
    return 0 if all(row["tuned"]["held"] and max(row["validated"], default=0) <= row["limit"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
