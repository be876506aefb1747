"""The page about programs: MixPert's applications, its tuner and processes, LE-GEMM's applications and cuBLAS's modes."""

import math

from hopper.cases import FEED_FORWARD, K_MEANS, LANGUAGE_MODELS
from hopper.results import NATIVE, size_of
from hopper.speed import known, rates
from hopper.text import EMPTY, Finding, claims, head, listed, mean, number, one, over, section, table, tera, times, wrapped

PART = "programs"
TITLE = "Programs on Hopper"
PAPER_SIZES = ("mixpert-factorizations", "mixpert-paper")
SEARCHES = ("mixpert-cholesky-search", "mixpert-perceptron-4096")
APPLICATIONS = {"k-means": ("programs-k-means", K_MEANS), "feed-forward": ("programs-feed-forward", FEED_FORWARD),
                "language models": ("programs-language-models", LANGUAGE_MODELS)}
# What stands here for the paper's methods: APE multiplies six BF16 products, CUTLASS's three of TF32 have no fused kernel.
APE = "bf16x6"
# MixPert's levels IV to I, the most accurate first.
LEVELS = ("mixpert-4", "mixpert-3", "mixpert-2", "mixpert-1")
LEVEL_SEARCHES = ("mixpert-levels-cholesky", "mixpert-levels-perceptron")
MODES = ("32F", "32F_FAST_16F", "64F", "fp16x3", "legemm")


# ---------------------------------------------------------------- MixPert's programs

def program_rows(results):
    return [row for case in PAPER_SIZES for row in results.rows(case)]


def program_row(results, program):
    return next((row for row in program_rows(results) if row["program"] == program), None)


def native_seconds(row):
    return min(row["native"]["seconds"], row["native_after"]["seconds"])


def speed_of(row, scheme):
    """The program's speed with a scheme at all sites, beside native; None: it was not measured."""
    found = next((entry for entry in row["schemes"] if entry["scheme"] == scheme and "seconds" in entry), None)
    return None if found is None else native_seconds(row) / found["seconds"]


def machine_of(results, case):
    return f"Measured on an {results.documents[case]['machine']}. " if case in results.documents else ""


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values and None not in values else None


def programs(results):
    def line(row):
        tuned = row["tuned"]
        return [f"`{row['program']}`", " x ".join(map(str, row["sizes"])), number(native_seconds(row)), times(row["speedup_auto"]),
                times(speed_of(row, APE)), times(speed_of(row, LEVELS[0])), times(row["speedup"]), number(row["native"]["error"], 2), number(row["auto"]["error"], 2),
                number(tuned["error"], 2), number(row["limit"], 1), ", ".join(sorted(set(tuned["levels"].values())))]
    rows = program_rows(results)
    body = "".join(f"`{'`, `'.join(row['program'] for row in results.rows(case))}`: {results.documents[case]['machine']}. "
                   for case in PAPER_SIZES if case in results.documents) + "Seconds with cuBLAS FP32, and speeds beside it. The error is that of the result beside the same program with FP64 " \
           "products, of `hpl-ai` its scaled residual.\n\n"
    body += table(["program", "size", "native s", "`auto`", f"`{APE}`", f"`{LEVELS[0]}`", "tuned", "native's error", "`auto`'s", "tuned's", "limit", "levels"],
                  map(line, rows))
    body += "\n" + claims(program_claims(results))
    return section("MixPert's programs", "How much faster are whole programs, and within which error? Paper: mixpert Figs. 8 and 9.",
                   results, PAPER_SIZES, body)


def program_claims(results):
    rows = program_rows(results)
    speed = geometric_mean(row["speedup"] for row in rows)
    hpl, genes = program_row(results, "hpl-ai"), program_row(results, "correlation")
    return [Finding("mixpert-speed", {"Hopper, tuned": one(speed), f"Hopper, {LEVELS[0]}": one(geometric_mean(speed_of(row, LEVELS[0]) for row in rows)),
                                      f"Hopper, {APE}": one(geometric_mean(speed_of(row, APE) for row in rows))}),
            Finding("mixpert-sparkler", {f"Hopper, {LEVELS[0]}": one(genes and speed_of(genes, LEVELS[0]))}),
            Finding("own-programs-speed", {"geometric mean": one(speed)}),
            Finding("own-programs-never-slower", {"tuned": [row["speedup"] for row in rows]}),
            Finding("own-programs-limits", {"tuned": [row["tuned"]["error"] / row["limit"] for row in rows]}),
            Finding("own-programs-auto", {"auto": [row["auto"]["error"] / row["native"]["error"] for row in rows if row is not hpl]}),
            Finding("own-hpl-ai", {"speed": one(hpl and hpl["speedup"]), "residual": one(hpl and hpl["tuned"]["error"])})]


# ---------------------------------------------------------------- the tuner

def search_rows(results):
    return [row for case in SEARCHES for row in results.rows(case)]


def found_over_best(row):
    return row["tuned"]["seconds"] / row["exhaustive"]["seconds"]


def searches(results):
    def line(row):
        held = sum(error <= row["limit"] for error in row["validated"])
        return [f"`{row['program']}`", row["sizes"][0], row["tuned"]["runs"], row["exhaustive"]["runs"], times(found_over_best(row)),
                f"{held} of {len(row['validated'])}", " ".join(row["tuned"]["levels"].values())]
    body = machine_of(results, SEARCHES[0]) + "\n\n" + table(["program", "n", "runs", "combinations", "time over the best's", "other inputs within the limit", "levels"],
                 map(line, search_rows(results)))
    return section("The search", "Does the tuner find the fastest combination of levels in few runs? Paper: mixpert Fig. 10.",
                   results, SEARCHES, body + "\n" + claims(search_claims(results)))


def level_searches(results):
    """The search over MixPert's own levels, and each level at all sites, of the two programs of the figure."""
    def line(row):
        whole = program_row(results, row["program"])
        return [f"`{row['program']}`", row["sizes"][0], *(times(speed_of(whole, level)) for level in LEVELS), times(row["speedup"]),
                number(row["tuned"]["error"], 2), number(row["limit"], 1), row["tuned"]["runs"],
                " ".join(level.removeprefix("mixpert-") for level in row["tuned"]["levels"].values())]
    body = machine_of(results, LEVEL_SEARCHES[0]) + "Speeds beside native with one level at all sites, and tuned.\n\n"
    body += table(["program", "n", *(f"`{level}`" for level in LEVELS), "tuned", "error", "limit", "runs", "levels"],
                  [line(row) for case in LEVEL_SEARCHES for row in results.rows(case)])
    return section("MixPert's levels", "What does the tuner make of MixPert's own levels IV to I? Paper: mixpert Fig. 10.", results, LEVEL_SEARCHES, body)


def search_claims(results):
    rows = search_rows(results)
    cholesky = program_row(results, "cholesky")
    gain = None if cholesky is None else over(speed_of(cholesky, "fp16"), speed_of(cholesky, "fp16x3"))
    tuned = next(iter(results.rows(LEVEL_SEARCHES[0])), None)
    level_gain = None if None in (cholesky, tuned) else over(tuned["speedup"], speed_of(cholesky, LEVELS[0]))
    return [Finding("mixpert-tuner", {"H100, fp16 over fp16x3": one(None if gain is None else gain - 1),
                                      "H100, tuned over mixpert-4": one(None if level_gain is None else level_gain - 1)}),
            Finding("own-tuner-optimum", {"both": [found_over_best(row) for row in rows]}),
            Finding("own-tuner-runs", {"both": [row["tuned"]["runs"] / row["exhaustive"]["runs"] for row in rows]}),
            Finding("own-tuner-inputs", {"both": [max(row["validated"]) / row["limit"] for row in rows]})]


# ---------------------------------------------------------------- processes

def process_rates(results):
    """{level: correlations a second of one, two, ... processes}"""
    found = {}
    for row in results.rows("mixpert-processes"):
        found.setdefault(row["level"], []).append(row["rate"])
    return found


def process_ratios(results, level, other):
    found = process_rates(results)
    return [over(x, y) for x, y in zip(found.get(level, []), found.get(other, []))]


def processes(results):
    found = process_rates(results)
    counts = range(1, 1 + max(map(len, found.values()), default=0))
    body = machine_of(results, "mixpert-processes") + "Correlations a second of all processes together, in brackets the ratio to native. Each process has a context of its own, " \
           "and the GPU takes turns among them.\n\n"
    body += table(["level", *(f"{count} processes" if count > 1 else "1 process" for count in counts)], [
        [f"`{level}`", *(f"{number(rate)} ({times(ratio)})" for rate, ratio in zip(rate_list, process_ratios(results, level, NATIVE)))]
        for level, rate_list in found.items()])
    return section("Processes", "What is left of the gain where several processes share a GPU? Paper: mixpert Fig. 12b.", results,
                   ("mixpert-processes",), body + "\n" + claims(process_claims(results)))


def process_claims(results):
    gains = process_ratios(results, "fp16", APE)
    return [Finding("mixpert-processes", {f"H100, fp16 over {APE}": [gain - 1 for gain in gains] or None}),
            Finding("own-processes", {"fp16": process_ratios(results, "fp16", NATIVE) or None})]


# ---------------------------------------------------------------- LE-GEMM's applications

def applications(results):
    names = (NATIVE, "auto", "fp16x3", "legemm")
    body = "TFLOP/s, in brackets the ratio to native. The papers' sizes are not in its text: k-means has 1024 centroids and 256 " \
           "features, feed-forward layers are BERT's with 512 to 8192 tokens, language models have 2048 tokens.\n"
    for title, (case, shapes) in APPLICATIONS.items():
        body += f"\n{title.capitalize()}:\n\n" + table(["m x n x k", *names], rates(results, case, names, shapes))
    body += "\n" + claims(application_claims(results))
    return section("LE-GEMM's applications", "How fast are the products of k-means, feed-forward layers and projections of language "
                   "models? Paper: le-gemm Fig. 15.", results, [case for case, _ in APPLICATIONS.values()], body)


def error_rows(case, results, shapes):
    """For each shape the mean over seeds of the mean relative error and of the largest relative error, beside the exact product."""
    names = dict.fromkeys(row["scheme"] for row in results.rows(case))
    for shape in shapes:
        line = [size_of(shape)]
        for name in names:
            errors = [row["errors"] for row in results.rows(case)
                      if row["scheme"] == name and tuple(row["problem"][size] for size in "mnk") == shape]
            line.append(", ".join(number(mean(error[member] for error in errors), 2) for member in ("mean_relative", "max_relative")))
        yield line


def application_errors(results):
    cases = {title: (case.replace("programs-", "programs-errors-"), shapes) for title, (case, shapes) in APPLICATIONS.items()}
    body = "Measured on the H100. Mean and largest relative error beside the exact product, means over three " \
           "seeds, of 4096 elements each. Whether errors grow with k, as the paper says, is decided in [accuracy.md](../../lab/results/accuracy.md) by the " \
           "models of its chips.\n"
    for title, (case, shapes) in cases.items():
        names = dict.fromkeys(row["scheme"] for row in results.rows(case))
        body += f"\n{title.capitalize()}:\n\n" + table(["m x n x k", *names], error_rows(case, results, shapes))
    return section("Errors of LE-GEMM's applications", "How large are the errors of these products on the device? Paper: le-gemm Fig. 16.",
                   results, [case for case, _ in cases.values()], body)


def application_ratios(results, title, name):
    case, shapes = APPLICATIONS[title]
    return known(results.ratio(case, name, shape) for shape in shapes)


def application_claims(results):
    return [Finding("own-applications", {title: application_ratios(results, title, "auto") or None for title in APPLICATIONS})]


# ---------------------------------------------------------------- cuBLAS's modes

def mode_rows(results, mode):
    return [row for row in results.rows("programs-trade") if row["mode"] == mode]


def mode_ratios(results, mode, other, member="rate"):
    return [x[member] / y[member] for x, y in zip(mode_rows(results, mode), mode_rows(results, other))] or None


def trade(results):
    body = machine_of(results, "programs-trade") + "TFLOP/s and mean relative error beside FP64, of squares on [-1, 1]; `32F`, `32F_FAST_16F` and `64F` are compute types of " \
           "`cublasGemmEx`, 64F on operands stored in FP64.\n\n"
    sizes = [row["n"] for row in mode_rows(results, MODES[0])]
    body += table(["", *(f"n = {n}" for n in sizes)], [
        [f"`{mode}`", *(f"{tera(row['rate'])}, {number(row['mean_relative'], 2)}" for row in mode_rows(results, mode))] for mode in MODES])
    return section("Speed and precision", "Where do the emulations lie between cuBLAS's FP16 and FP64 modes? Paper: le-gemm Fig. 18.",
                   results, ("programs-trade",), body + "\n" + claims(trade_claims(results)))


def trade_claims(results):
    return [Finding("own-trade", {"fp16x3 over FAST_16F": mode_ratios(results, "fp16x3", "32F_FAST_16F"),
                                  "fp16x3 over 64F": mode_ratios(results, "fp16x3", "64F")})]


def findings(results):
    """Returns the findings for all claims of the page."""
    return [*program_claims(results), *search_claims(results), *process_claims(results), *application_claims(results),
            *trade_claims(results)]


def page(results):
    parts = (programs, searches, level_searches, processes, applications, application_errors, trade)
    return wrapped(head(TITLE, PART, results) + "".join(part(results) for part in parts).rstrip("\n") + "\n")
