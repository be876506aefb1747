"""The page about FP64 products, correctly rounded ones and complex ones."""

from hopper.cases import FP64_LIMITS, MODULI, PAPER_MODES, PAPER_PHIS, PAPER_SIZES, PHIS, SIZES, moduli_name
from hopper.results import NATIVE, cube, value_of
from hopper.speed import auto_claim, rates, state, workspace_claim, workspace_table
from hopper.text import (EMPTY, Finding, claims, head, microseconds, number, one, over, percent, pictures, section, table, tera,
                         times, wrapped)

PART = "fp64"
TITLE = "FP64 products on Hopper"
SQUARES = ("fp64-sizes", "fp64-16384")
ALL_SIZES = (*SIZES, 16384)
DP, CR, DOUBLES = PAPER_MODES
TITLES = {DP: "DGEMM-TC-DP (`ozaki-fp16`)", CR: "DGEMM-TC-CR (`ozaki-fp16:mode=cr`)",
          DOUBLES: "DGEMM-DP-CR (`ozaki-fp64`)"}


# ---------------------------------------------------------------- sizes

def sizes(results):
    names = (NATIVE, "ozaki2:moduli=15", "ozaki2", "fp64", "exact", "auto")
    body = "TFLOP/s, in brackets the ratio to native. `ozaki2` is the program by name, with its own bound; `fp64` is " \
           "the contract, proved by norms or element by element, `exact` the correctly rounded result, `auto` what a call gets " \
           "that asks for nothing.\n\n"
    body += table(["m x n x k", *names], rates(results, SQUARES, names, map(cube, ALL_SIZES)))
    watched = (NATIVE, "ozaki2", "fp64", "exact")
    body += "\nPower and clock:\n\n" + table(["n", *(f"{name}: W, MHz" for name in watched)], [
        [n, *(state(results.row(SQUARES, name, cube(n))) for name in watched)] for n in ALL_SIZES])
    body += "\nErrors at n = 8192, of 4096 elements:\n\n" + table(
        ["", "largest componentwise", "Frobenius", "correctly rounded"],
        [error_line(name, results.row(SQUARES, name, cube(8192))) for name in names[:-1]])
    body += pictures(results, "fp64-sizes", "*-device-rate.svg", "*-ratio-to-native.svg", "*-roofline.svg")
    body += "\n" + claims([auto_of(results)])
    return section("Sizes", "How quick are FP64 products by int8 residues beside cuBLAS's DGEMM, by name, by contract "
                            "and correctly rounded, for n = 256 to 16384 and phi = 0.5?", results, SQUARES, body)


def auto_of(results):
    return auto_claim(results, "own-auto-dgemm", SQUARES, ALL_SIZES)


def error_line(name, row):
    check = value_of(row, "check") or {}
    return [name, number(check.get("max_componentwise"), 2), number(check.get("frobenius_relative"), 2),
            percent(check.get("correctly_rounded_fraction"))]


# ---------------------------------------------------------------- dgemm-tc

def paper_case(phi):
    return f"fp64-dgemm-tc-phi-{phi}"


def paper_rate(results, name, phi, n):
    return results.rate(paper_case(phi), name, cube(n))


# GFLOP/s of the paper's Table 1, n = 10240: Titan RTX and Tesla V100, each at phi = 0.1, 1, 2.
TABLE1 = {NATIVE: ((534.1,) * 3, (6761,) * 3), DP: ((972.4, 823.0, 713.1), (1064, 914.3, 790.8)),
          CR: ((220.4, 193.5, 173.1), (255.0, 222.5, 198.5)), DOUBLES: ((24.75, 21.17, 21.17), (293.1, 250.7, 250.7))}
LARGEST = PAPER_SIZES[-1]
COMMON = 4096  # n at which all phi were measured


def dgemm_tc(results):
    body = "Table 1 beside this device, GFLOP/s; the paper's are for n = 10240:\n\n"
    heads = ["", *(f"{device}, phi = {phi}" for device in ("Titan RTX", "V100") for phi in PAPER_PHIS),
             *(f"here, n = {COMMON}, phi = {phi}" for phi in PAPER_PHIS), f"n = {LARGEST}, phi = 1"]
    body += table(heads, [table1_line(results, name) for name in TABLE1])
    body += "\nBy size, phi = 1 (Figs. 4 and 6), TFLOP/s, in brackets the ratio to native:\n\n"
    names = (NATIVE, *PAPER_MODES, "ozaki2")
    body += table(["m x n x k", *(TITLES.get(name, name) for name in names)],
                  rates(results, paper_case("1"), names, map(cube, PAPER_SIZES)))
    body += "\nSGEMM-TC, FP32 operands in SP mode (Fig. 9), TFLOP/s:\n\n"
    names = (NATIVE, DP, "fp16x3")
    body += table(["m x n x k", "native", "SGEMM-TC (`ozaki-fp16`)", "fp16x3"],
                  rates(results, "fp64-sgemm-tc", names, map(cube, PAPER_SIZES[:3])))
    body += "\n" + claims(paper_claims(results))
    cases = [paper_case(phi) for phi in PAPER_PHIS] + ["fp64-sgemm-tc"]
    question = "How quick are the paper's modes on this device? Figs. 3 and 8 are about accuracy, and so is the left of " \
               "Figs. 5b and 7b: [accuracy.md](../../lab/results/accuracy.md). The breakdowns of Figs. 5a and 7a are not measured: a " \
               "stream's steps are not timed one by one. Speeds of other chips and kernels decide nothing here."
    return section("dgemm-tc: Table 1, Figs. 4 to 7 and 9", question, results, cases, body)


def table1_line(results, name):
    return [TITLES.get(name, name), *(number(rate, 4) for device in TABLE1[name] for rate in device),
            *(number(paper_rate(results, name, phi, COMMON), 4, 1e-9) for phi in PAPER_PHIS),
            number(paper_rate(results, name, "1", LARGEST), 4, 1e-9)]


def paper_claims(results):
    dp, cr, doubles = (paper_rate(results, name, "1", LARGEST) for name in (DP, CR, DOUBLES))
    return [Finding("dgemm-tc-cr-speed", {"H200": one(over(dp, cr))}),
            Finding("dgemm-tc-dp-cr-speed", {"H200": one(over(doubles, cr))})]


# ---------------------------------------------------------------- breakdown

def breakdown(results):
    n = COMMON
    def both_ways(step):
        return sum_of(results.step_time(f"{step} f64, {n} x {n}, {way}") for way in ("across", "along k"))

    split = micro(results.split_time("ozaki2:moduli=15", n))
    of_16 = results.byte_time("ozaki2", n)
    residues = micro(results.step_time(f"residues f64, 15 moduli, {n} x {n}"))
    normed = micro(results.split_time("ozaki2:moduli=15:scale=norm", n))
    looks = micro(sum_of(map(both_ways, ("ranges", "margins"))))
    rounded = micro(results.step_time(f"checked f64, 19 moduli, {n} x {n}, rounded twice"))
    of_15 = micro(of_16, 15 / 16)
    steps = {"ozaki2:moduli=15": (None, split, of_15, residues), "fp64": (None, normed, of_15, residues),
             "exact": (looks, None, None, rounded)}
    lines = [[name, *breakdown_cells(results, name, n, found)] for name, found in steps.items()]
    body = f"Microseconds at n = {n} of the steps alone, by the programs that measure them in " \
           f"[./test gpu](gpu/nvidia-h200.json) of {results.gpu_date}, beside the whole call. `fp64` is its rung of 15 " \
           "moduli, whose split finds norms that prove it before its products run; `exact` has 20 moduli, and its " \
           "recombination was measured with 19. Products of 15 moduli are 15/16 of those of 16. What has no column is in " \
           "the rest.\n\n"
    body += table(["", "ranges, margins", "splits", "products", "recombination", "sum", "whole call", "rest"], lines)
    return section("Steps of a call", "Where does the time of `ozaki2`, `fp64` and `exact` go?", results, ("fp64-sizes",),
                   body)


def micro(found, share=1):
    return None if found is None else 1e-6 * share * found


def sum_of(values):
    values = list(values)
    return None if None in values else sum(values)


def breakdown_cells(results, name, n, steps):
    whole = value_of(results.row(SQUARES, name, cube(n)), "time", "median")
    done = sum(step for step in steps if step is not None)
    rest = None if whole is None else whole - done
    return [*map(microseconds, steps), microseconds(done or None), microseconds(whole), microseconds(rest)]


# ---------------------------------------------------------------- workspace

LIMITED = [f"fp64-workspace-{limit}" for limit in FP64_LIMITS]
LIMITED_NAMES = ("ozaki2", "fp64", "exact")


def workspace_of(results):
    return workspace_claim(results, "own-workspace-dgemm", "fp64-sizes", LIMITED, LIMITED_NAMES, 8192)


def workspace(results):
    body = workspace_table(results, "fp64-sizes", LIMITED, LIMITED_NAMES, 8192) + "\n" + claims([workspace_of(results)])
    return section("Workspace", "What does a limit cost at n = 8192? C is worked on in blocks then, with the same bits.",
                   results, LIMITED, body)


# ---------------------------------------------------------------- moduli

def moduli_case(phi):
    return f"fp64-moduli-phi-{phi}"


# GEMMul8 3.0.5 D, accurate mode (peers.md): by moduli the ratio to DGEMM at n = 8192, errors at n = 4096 of phi = 0.5 and 2.
GEMMUL8 = {14: (1.2, 3.0e-16, 3.5e-14), 15: (1.13, 1.4e-17, 2.0e-15), 16: (1.04, 5e-18, 1.5e-16)}


def moduli(results):
    n = COMMON
    names = [*map(moduli_name, MODULI), "fp64", "exact", NATIVE]
    body = f"n = {n}: TFLOP/s and largest componentwise error, by phi of (rand - 0.5) exp(phi randn).\n\n"
    lines = []
    for name in names:
        rows = [results.row(moduli_case(phi), name, cube(n)) for phi in PHIS]
        lines.append([name, *(cell for row in rows
                              for cell in (tera(value_of(row, "rate")),
                                           number(value_of(row, "check", "max_componentwise"), 2)))])
    body += table(["", *(head for phi in PHIS for head in (f"phi = {phi}", "error"))], lines)
    body += pictures(results, "fp64-moduli", "*-against-P-device-rate.svg")
    body += "\nBeside GEMMul8 3.0.5 in its accurate mode ([peers.md](peers.md)): ratios to DGEMM at n = 8192 and phi " \
            f"= 0.5, errors at n = {n}.\n\n"
    body += table(["moduli", "GEMMul8: to DGEMM", "error, phi = 0.5", "error, phi = 2", "Kintsugi: to DGEMM",
                   "error, phi = 0.5",
                   "error, phi = 2"], [peer_line(results, count) for count in MODULI])
    body += "\n" + claims([peer_claim(results)])
    return section("Moduli and ranges", "How many moduli does which range of values want, and what do they cost?",
                   results,
                   [moduli_case(phi) for phi in PHIS], body)


def modulus_error(results, count, phi):
    return value_of(results.row(moduli_case(phi), moduli_name(count), cube(COMMON)), "check", "max_componentwise")


def peer_line(results, count):
    ratio, narrow, wide = GEMMUL8.get(count, (None,) * 3)
    return [count, times(ratio), number(narrow, 2), number(wide, 2),
            times(results.ratio(SQUARES, moduli_name(count), cube(8192))),
            *(number(modulus_error(results, count, phi), 2) for phi in ("0.5", "2"))]


def peer_claim(results):
    """At the error of GEMMul8's best mode that is no worse than native."""
    _, error, _ = GEMMUL8[15]
    errors = {count: modulus_error(results, count, "0.5") for count in MODULI}
    if None in errors.values():
        return Finding("own-gemmul8", {})
    enough = min((count for count in MODULI if errors[count] <= 1.25 * error), default=None)
    here = None if enough is None else results.ratio(SQUARES, moduli_name(enough), cube(8192))
    words = f"of {MODULI[0]} to {MODULI[-1]} moduli " + ("none has it" if enough is None else f"{enough} have it")
    return Finding("own-gemmul8", {"ozaki2": one(here)}, words + ("" if here is None else f", {times(here)} of DGEMM"))


# ---------------------------------------------------------------- complex elements

def complex_elements(results):
    body = ""
    for case, contract, title in (("fp64-zgemm", "fp64", "ZGEMM"), ("fp64-cgemm", "fp32", "CGEMM")):
        body += f"{title}, TFLOP/s (8mnk), in brackets the ratio to native:\n\n"
        body += table(["m x n x k", "native", "ozaki2", contract],
                      rates(results, case, (NATIVE, "ozaki2", contract), map(cube, SIZES[2:]))) + "\n"
    body += claims([complex_claim(results)])
    return section("Complex elements", "How quick are ZGEMM and CGEMM by two or three products a modulus?", results,
                   ("fp64-zgemm", "fp64-cgemm"), body)


def complex_claim(results):
    return Finding("own-complex", {"ozaki2": one(results.ratio("fp64-zgemm", "ozaki2", cube(8192)))})


def findings(results):
    """Returns the findings for all claims of the page."""
    return [auto_of(results), *paper_claims(results), workspace_of(results), peer_claim(results), complex_claim(results)]


def page(results):
    return wrapped(head(TITLE, PART, results) + "".join(
        part(results) for part in (sizes, dgemm_tc, breakdown, workspace, moduli, complex_elements)).rstrip("\n") + "\n")
