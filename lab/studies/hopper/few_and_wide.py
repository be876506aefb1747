"""Parts of the page about FP32 products: short sides, batches, operands of many binades, and errors."""

import math

from hopper.cases import (BATCH, BATCHED, ERRING, ERRING_SIDES, FEW_ROWS, INNER, SPREAD, SPREAD_SIZES, WEIGHTS,
                          beside_weights)
from hopper.results import NATIVE, NOISE, cube, size_of, value_of
from hopper.speed import rate_of, rates, time_of
from hopper.text import EMPTY, Finding, claims, listed, number, over, percent, section, table, times


# ---------------------------------------------------------------- short sides and batches

def of_copy(results, shape):
    """Returns what share the slices of prepared weights reach of the copy's bandwidth: four bytes an element."""
    _, n, k = shape
    seconds = value_of(results.row("sgemm-prepared", "fp16x3", shape), "time", "median")
    return over(None if seconds is None else 4 * n * k / seconds, results.ceiling("sgemm", "copy"))


def short(results):
    names = (NATIVE, "fp16x3", "fp16x3-wide", "auto")
    prepared = [shape for weights in WEIGHTS for shape in beside_weights(weights)]
    lines = rates(results, "sgemm-prepared", names, prepared, time_of)
    body = "Microseconds, in brackets the ratio to native. B prepared, split before and not timed, and what its " \
           "slices, read by `fp16x3`, make of the copy's bandwidth:\n\n"
    body += table(["m x n x k", *names, "fp16x3 of the copy"],
                  [[*line, percent(of_copy(results, shape))] for line, shape in zip(lines, prepared)])
    unprepared = (NATIVE, "fp16x3", "auto")
    body += "\nNothing prepared:\n\n"
    body += table(["m x n x k", *unprepared],
                  rates(results, "sgemm-short", unprepared, beside_weights(WEIGHTS[0]), time_of))
    body += f"\n{BATCH} products in one call:\n\n"
    body += table(["m x n x k", *names], rates(results, "sgemm-batched", names, map(cube, BATCHED), time_of))
    body += "\n" + claims(short_claims(results))
    question = "What do few rows beside weights, and many small products, gain?"
    return section("Short sides and batches", question, results,
                   ("sgemm-prepared", "sgemm-short", "sgemm-batched"), body)


def short_claims(results):
    def gain(rows):
        found = [results.ratio("sgemm-prepared", "fp16x3", (rows, weights, weights)) for weights in WEIGHTS]
        return None if None in found else found

    sizes = listed(WEIGHTS, str)
    found = [Finding("own-weights-read", {f"n = k = {weights}": shares_of_copy(results, weights) for weights in WEIGHTS})]
    for rows in FEW_ROWS[1:]:
        ratios = gain(rows)
        found.append(Finding(f"own-weights-{rows}", {"fp16x3": ratios},
                             f"{listed(ratios)} at n = k = {sizes}" if ratios else ""))
    batched = results.ratio("sgemm-batched", "fp16x3", cube(512))
    shapes = {"prepared": ("sgemm-prepared", [shape for weights in WEIGHTS for shape in beside_weights(weights)]),
              "nothing prepared": ("sgemm-short", beside_weights(WEIGHTS[0])),
              "batches": ("sgemm-batched", list(map(cube, BATCHED)))}
    return [*found, Finding("own-batch", {"fp16x3": None if batched is None else [batched]}),
            never_slower(results, "own-auto-short", shapes)]


def shares_of_copy(results, weights):
    shares = [of_copy(results, (rows, weights, weights)) for rows in FEW_ROWS if rows <= 64]
    return None if None in shares else shares


def never_slower(results, claim, series):
    """Returns the finding that `auto` is not slower than native. series: {name: (case, shapes)}."""
    ratios = {(name, case, shape): results.ratio(case, "auto", shape)
              for name, (case, shapes) in series.items() for shape in shapes}
    if None in ratios.values():
        return Finding(claim, {})
    slower = sorted((ratio, case, shape) for (_, case, shape), ratio in ratios.items() if ratio < 1 - NOISE)
    words = f"at least {times(min(ratios.values()))}"
    words += "".join(f"{'; slower:' if i == 0 else ','} {size_of(shape)} of {case} ({times(ratio)})"
                     for i, (ratio, case, shape) in enumerate(slower))
    return Finding(claim, {name: [ratio for (other, _, _), ratio in ratios.items() if other == name] for name in series},
                   words)


def spread(results):
    def cell(case, n):
        row = results.row(case, "auto", cube(n))
        return EMPTY if row is None else f"{rate_of(row)} ({times(row['ratios'][NATIVE])}, {row['scheme']})"

    cases = [f"sgemm-phi-{phi}" for phi in SPREAD]
    body = "TFLOP/s of `auto`, in brackets the ratio to native and what was taken; `native` there is the engine's own " \
           "plain product, where a ladder was left at its end.\n\n"
    body += table(["n", *(f"phi = {phi}" for phi in SPREAD)],
                  [[n, *(cell(case, n) for case in cases)] for n in SPREAD_SIZES])
    return section("Operands of many binades", "What does `auto` take of (rand - 0.5) exp(phi randn)?", results, cases,
                   body + "\n" + claims([spread_claim(results)]))


def spread_claim(results):
    series = {f"phi = {phi}": (f"sgemm-phi-{phi}", list(map(cube, SPREAD_SIZES))) for phi in SPREAD}
    found = never_slower(results, "own-auto-spread", series)
    found.explanation = "Short products have few candidates, for launches cost what they gain; what lies deeper is multiplied " \
                        "natively by a kernel of our own, since cuBLAS calls cannot be made conditional on data in device memory."
    return found


# ---------------------------------------------------------------- errors

NAMED = 5  # of the products that disagree, the worst first
MEASURES = ("max_componentwise", "frobenius_relative")
WHY_WORSE = "Where SGEMM errs less: matrix units truncate, so that of elements of one sign a block of 64 loses 3 x 2^-24 " \
            "of its sum, whatever k is, and SGEMM's errors cancel in part; of few tiles cuBLAS seems to split k, since " \
            "its error hardly grows with it; and where one product outweighs the others (phi = 4), a split counts, " \
            "which SGEMM has not. Beyond the window (stars) `auto` takes a scheme only where the elements' depth " \
            "proves it.\n\n"


def error_rows(results, side, scheme):
    """{(distribution, k): row}"""
    return {(row["distribution"], row["problem"]["k"]): row for row in results.rows(f"sgemm-errors-{side}")
            if row["scheme"] == scheme}


def by_native(row):
    """The errors over those of cuBLAS's product, by measure; 1 where neither has any."""
    ours, natives = row["errors"], row["baseline"]["errors"]
    return [1.0 if ours[name] == natives[name] == 0 else ours[name] / natives[name] if natives[name] else math.inf
            for name in MEASURES]


def errors(results):
    all_of, some_of = ERRING_SIDES
    body = f"All elements of C, {all_of} x {all_of}, and {all_of**2} of {some_of} x {some_of}, against the exact " \
           "product: the largest |C - AB| / |A||B| of an element and the Frobenius error, both over cuBLAS's SGEMM's. A " \
           "star: the rows of A or columns of B span more binades than the scheme's window, whose bound says nothing " \
           "there.\n\n"
    measured = [side for side in ERRING_SIDES if results.rows(f"sgemm-errors-{side}")]
    for side in measured:
        for scheme in ("fp16x3", "fp16x3-wide"):
            rows = error_rows(results, side, scheme)
            body += table([f"{scheme}, {side} x {side}", *(f"k = {k}" for k in INNER)],
                          [[f"`{name}`", *(error_cell(rows.get((name, k))) for k in INNER)] for name in ERRING]) + "\n"
    body += WHY_WORSE + claims(error_claims(results))
    question = "Do three fp16 products err less than cuBLAS's SGEMM, whatever the operands? Papers: " \
               "fp16-emulation-study (Types 1 to 4), h2sgemm section 4, le-gemm section 5.5."
    return section("Errors", question, results, [f"sgemm-errors-{side}" for side in ERRING_SIDES], body)


def error_cell(row):
    if row is None:
        return EMPTY
    return listed(by_native(row), lambda ratio: number(ratio, 2)) + ("" if row["bound"]["in_window"] else " *")


def error_claims(results):
    schemes = ("fp16x3", "fp16x3-wide")
    inside = {scheme: [row["bound"] for side in ERRING_SIDES for row in error_rows(results, side, scheme).values()
                       if row["bound"]["in_window"]] for scheme in schemes}
    found = [Finding("own-bound", {scheme: [bound["largest_ratio"] for bound in inside[scheme]] for scheme in schemes},
                     bound_words(inside))]
    mild = ("phi:0.5", "phi:1", "phi:2")
    for side in ERRING_SIDES:
        found.append(no_worse(f"own-errors-wide-{side}", "fp16x3-wide", error_rows(results, side, "fp16x3-wide"),
                              lambda key, row: True))
        found.append(no_worse(f"own-errors-narrow-{side}", "fp16x3", error_rows(results, side, "fp16x3"),
                              lambda key, row: row["bound"]["in_window"] or key[0] in mild))
    return found


def bound_words(inside):
    bounds = [bound for found in inside.values() for bound in found]
    if not bounds:
        return ""
    return f"{sum(bound['held'] for bound in bounds)} of {len(bounds)} products; at most " \
           f"{percent(max(bound['largest_ratio'] for bound in bounds))} of the bound"


def no_worse(claim, scheme, rows, applies):
    ratios = {key: max(by_native(row)) for key, row in rows.items() if key[1] >= 64 and applies(key, row)}
    worse = sorted((key for key in ratios if ratios[key] > 1), key=lambda key: -ratios[key])
    words = f"{len(ratios) - len(worse)} of {len(ratios)} products" if ratios else ""
    words += "".join(f"{'; not' if i == 0 else ','} {name} at k = {k} ({times(ratios[name, k])})"
                     for i, (name, k) in enumerate(worse[:NAMED]))
    words += f" and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
    return Finding(claim, {scheme: list(ratios.values())}, words)
