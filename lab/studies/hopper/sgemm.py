"""The page about FP32 products."""

from hopper.cases import BLOCKS, LENGTHS, SGEMM_LIMITS, SIZES, SKEWED, STAGED, TILED, skewed
from hopper.few_and_wide import error_claims, errors, short, short_claims, spread, spread_claim
from hopper.results import FP16_PEAK, NATIVE, cube, size_of, value_of
from hopper.speed import auto_claim, known, rates, state, workspace_claim, workspace_table
from hopper.text import (EMPTY, LAB, Finding, claims, head, microseconds, number, one, over, percent, pictures, section, table,
                         tera, times, wrapped)

PART = "sgemm"
TITLE = "FP32 products on Hopper"
SQUARES = ("sgemm-sizes", "sgemm-16384", "sgemm-32768")
ALL_SIZES = (*SIZES, 16384, 32768)
SHORT = 64  # k of fp16x3's own block


def of_units(results, n, most, products=3):
    """Returns the rate of `fp16x3`, counted in products of the matrix unit, as a share of the rate `most`."""
    rate = results.rate(SQUARES, "fp16x3", cube(n))
    return over(None if rate is None else products * rate, most)


# ---------------------------------------------------------------- sizes

def sizes(results):
    names = (NATIVE, "tf32", "fp16", "fp16x3", "fp16x3-wide", "fp32", "auto")
    body = "TFLOP/s, in brackets the ratio to native; `fp32` is the contract under the policy `emulate`, `auto` what " \
           "a call gets that asks for nothing.\n\n"
    body += table(["m x n x k", *names], rates(results, SQUARES, names, map(cube, ALL_SIZES)))
    body += "\nPower and clock, and what part of the fp16 units' measured ceiling, and of their theoretical peak (989 TFLOP/s), " \
            "the three products of `fp16x3` take:\n\n"
    body += table(["n", "native: W, MHz", "fp16x3: W, MHz", "fp16x3-wide: W, MHz", "of the ceiling", "of the peak"],
                  [[n, *(state(results.row(SQUARES, name, cube(n))) for name in (NATIVE, "fp16x3", "fp16x3-wide")),
                    percent(of_units(results, n, results.ceiling(PART, "fp16"))), percent(of_units(results, n, FP16_PEAK))]
                   for n in ALL_SIZES])
    body += pictures(results, "sgemm-sizes", "*-device-rate.svg", "*-ratio-to-native.svg", "*-roofline.svg")
    body += "\n" + claims(size_claims(results))
    question = "How quick are three fp16 products beside cuBLAS's SGEMM, and its single TF32 and fp16 products, " \
               "splits of those included? Papers: fp16-emulation-study (plot of rates by size), h2sgemm Fig. 11, " \
               "le-gemm Figs. 8, 9 and 14."
    return section("Sizes", question, results, SQUARES, body)


def size_claims(results):
    peak = one(max(known(of_units(results, n, FP16_PEAK) for n in ALL_SIZES), default=None))
    return [Finding("own-peak", {"fp16x3": peak}, explanation="Splits are in our time, and under full load the clock is below its "
                                                              "maximum."),
            auto_claim(results, "own-auto-sgemm", SQUARES, ALL_SIZES)]


# ---------------------------------------------------------------- steps

def steps(results):
    def line(n):
        split = results.split_time("fp16x3", n)
        split = None if split is None else 1e-6 * split
        product = min((row["seconds"] for row in tiles_of(results, "fp16x3", n)), default=None)
        whole = value_of(results.row(SQUARES, "fp16x3", cube(n)), "time", "median")
        both = None if None in (split, product) else split + product
        return [n, microseconds(split), microseconds(product), microseconds(both), microseconds(whole),
                percent(over(product, both))]
    weighted = results.step_time("weighted f32, 1 of 8192 x 8192")
    body = "Microseconds of `fp16x3`: ranges and slices of A and B in one launch (`split_rate`), the three products " \
           "from slices to C, recombination in their epilogue (`term_rate`, its quickest way), the two together, the " \
           "whole call (`bench`).\n\n"
    body += table(["n", "ranges and splits", "products", "sum", "whole call", "products of the sum"],
                  map(line, SIZES[1:]))
    body += "\nA recombination of its own, as behind the vendor's products, takes "
    body += f"{microseconds(1e-6 * weighted) if weighted else EMPTY} us at n = 8192 (`recombine_rate`: one FP32 sum " \
            "into C). Times of `split_rate` and `recombine_rate` are those of [./test gpu](gpu/nvidia-h200.json) of " \
            f"{results.gpu_date}.\n"
    return section("Steps of a call", "What do ranges, splits, products and recombination take?", results,
                   ("sgemm-sizes", "sgemm-tiles"), body)


# ---------------------------------------------------------------- stages and the plain version

def stage_rows(results, scheme, shape):
    """{columns of a tile: {stages: seconds}}"""
    found = {}
    for row in value_of(results.documents.get("sgemm-stages"), "rows") or []:
        if row["scheme"] == scheme and (row["m"], row["n"], row["k"]) == shape and "swapped" not in row["way"]:
            words = row["way"].replace(",", "").split()
            found.setdefault(int(words[0]), {})[int(words[2])] = row["seconds"]
    return found


def stages(results):
    most = 4
    lines = []
    for scheme in ("fp16x3", "fp16x3-wide"):
        for shape in STAGED:
            for columns, by_stages in sorted(stage_rows(results, scheme, shape).items()):
                gains = [over(by_stages.get(1), by_stages.get(stage)) for stage in range(2, most + 1)]
                lines.append([scheme, size_of(shape), columns,
                              *(microseconds(by_stages.get(s)) for s in range(1, most + 1)),
                              *map(times, gains)])
    body = "Microseconds of the products by small tiles (64 rows; `small_tiles.cuh`), whose number of places in " \
           "shared memory for a block of k is free: with one, copies and products take turns; with two and more, " \
           "copies run ahead. Narrower tiles begin a block while the one before it holds its place: two at least. Of the " \
           "128-column tile a multiprocessor has at most two blocks of threads whatever the " \
           "stages; of narrower ones with few stages it may have more, which overlap too.\n\n"
    body += table(["scheme", "m x n x k", "columns", "1 stage", "2", "3", "4", "gain of 2", "of 3", "of 4"], lines)
    question = "What is gained by copying slices ahead? Paper: h2sgemm sections 3.3.2 and 4.2, where a second buffer gains " \
               "57 %."
    return section("Stages of the pipeline", question, results, ("sgemm-stages",), body)


def plain(results):
    columns = (("own kernel", "sgemm-sizes", "fp16x3"), ("vendor, k in blocks of 64", "sgemm-vendor", "fp16x3"),
               ("vendor, blocks of 1024", "sgemm-blocks", "fp16x3:block=1024"),
               ("own, `fp16x3-wide`", "sgemm-sizes", "fp16x3-wide"),
               ("vendor, `fp16x3-wide`, 64", "sgemm-vendor", "fp16x3-wide"),
               ("one tf32 product", "sgemm-sizes", "tf32"), ("one fp16 product", "sgemm-sizes", "fp16"))
    body = "TFLOP/s. The plain version is cuBLAS's product of every term and block of k, each added to the sum in " \
           "memory; the setting `accumulator = cublas` makes a plan take it where there is a kernel of our own.\n\n"
    body += table(["n", *(title for title, _, _ in columns)],
                  [[n, *(tera(results.rate(case, name, cube(n))) for _, case, name in columns)] for n in SIZES[2:]])
    question = "What does the product kernel gain over the vendor's products, term by term? Paper: le-gemm section " \
               "5.6, where the pipeline gains 2.72 times over a plain implementation on an A800. Blocks of 64 have the " \
               "kernel's own accuracy and cost three passes over C each; blocks of 1024 are what a plain implementation takes."
    return section("The plain version", question, results, ("sgemm-sizes", "sgemm-vendor"),
                   body)


# ---------------------------------------------------------------- blocks and tiles

def blocks(results):
    def line(block):
        name = "fp16x3" if block == SHORT else f"fp16x3:block={block}"
        cells = []
        for n in (4096, 8192):
            row = results.row("sgemm-blocks", name, cube(n))
            cells += [tera(value_of(row, "rate")), times(results.ratio("sgemm-blocks", name, cube(n))),
                      number(value_of(row, "check", "frobenius_relative"), 2)]
        return [block, "own" if block == SHORT else "vendor", *cells]
    body = table(["block of k", "products", "n = 4096: TFLOP/s", "to native", "Frobenius error", "n = 8192: TFLOP/s",
                  "to native",
                  "Frobenius error"], map(line, (SHORT, *BLOCKS)))
    native = value_of(results.row("sgemm-blocks", NATIVE, cube(8192)), "check", "frobenius_relative")
    body += f"\nNative's Frobenius error at n = 8192: {number(native, 2)}.\n"
    question = "After how many k should sums leave the matrix unit? Kernels of our own add in registers and have blocks of " \
               "64; the vendor's products add in memory, where each block costs three passes over C, and blocks lose " \
               "accuracy as they grow."
    return section("Blocks of k", question, results, ("sgemm-blocks",), body)


def tiles_of(results, scheme, n):
    return [row for row in value_of(results.documents.get("sgemm-tiles"), "rows") or []
            if row["scheme"] == scheme and (row["m"], row["n"], row["k"]) == cube(n)]


def walk_name(way):
    """Without what the size decides."""
    return ", ".join(word for word in way.split(", ") if "parts" not in word and "stages" not in word)


def tiles(results):
    body = "TFLOP/s of the products alone, from slices to C (`term_rate`): `walk` are clusters' tiles of 256 rows " \
           "and 192, 128 or 64 columns (tile 0, 1, 2), the others small tiles of 64 rows; `swapped` has C's columns " \
           "as rows. All have the same bits.\n\n"
    for scheme in ("fp16x3", "fp16x3-wide"):
        found = {n: {walk_name(row["way"]): row for row in tiles_of(results, scheme, n)} for n in TILED}
        names = list(dict.fromkeys(name for rows in found.values() for name in rows))
        lines = [[name, *(tera(over(2 * n**3, value_of(found[n].get(name), "seconds"))) for n in TILED)]
                 for name in names]
        lines.append(["what the plan takes", *(chosen(found[n]) for n in TILED)])
        body += table([scheme, *(f"n = {n}" for n in TILED)], lines) + "\n"
    body += claims([choice_claim(results)])
    return section("Tiles", "Which tile suits which size, and does the plan take it?", results, ("sgemm-tiles",), body)


def expected(rows):
    """The name of the way that is expected to be the quickest."""
    return min(rows, key=lambda name: rows[name]["expected"], default=None)


def chosen(rows):
    return expected(rows) or EMPTY


def choice_claim(results):
    losses = []
    for scheme in ("fp16x3", "fp16x3-wide"):
        for n in TILED:
            rows = {walk_name(row["way"]): row for row in tiles_of(results, scheme, n)}
            if rows:
                losses.append(rows[expected(rows)]["seconds"] / min(row["seconds"] for row in rows.values()) - 1)
    words = f"at most {percent(max(losses))} behind it, of {len(losses)} products" if losses else ""
    return Finding("own-tile", {"all products": losses or None}, words)


# ---------------------------------------------------------------- shapes

def eq18(row):
    """TFLOPS as le-gemm counts: 2 (MNK + MN) operations."""
    if row is None:
        return None
    m, n, k = (row["problem"][size] for size in "mnk")
    return 2e-12 * (m * n * k + m * n) / row["time"]["median"]


def shapes(results):
    names = (NATIVE, "fp16", "markidis", "ootomo", "legemm", "fp16x3")
    lines = [[size_of(shape), *(number(eq18(results.row("sgemm-skewed", name, shape)), 4) for name in names)]
             for n in SKEWED for shape in skewed(n)]
    body = "TFLOP/s by le-gemm's Eq. 18, 2(MNK + MN) operations. `markidis`, `ootomo` and `legemm` are multiplied by " \
           "cuBLAS term by term, `ootomo` leaving the matrix unit every 16 of k.\n\n"
    body += table(["m x n x k", *names], lines)
    body += f"\nKernels as the paper has them: [accuracy.md]({LAB}/accuracy.md), `le-gemm-speed`.\n"
    body += "\nOne size grows, the others are 4096; TFLOP/s of `fp16x3`, in brackets the ratio to native:\n\n"
    body += table(["", *map(str, LENGTHS)], [["k", *grown(results, lambda x: (4096, 4096, x))],
                                             ["m = n", *grown(results, lambda x: (x, x, 4096))]])
    return section("Shapes", "Do skewed products gain as square ones do? Papers: le-gemm Figs. 8 and 9 and Table 6; "
                             "h2sgemm Fig. 11a and b. Speeds of other chips and kernels decide nothing here.", results, ("sgemm-skewed", "sgemm-dimensions"), body)


def length_row(results, shape):
    return results.row("sgemm-dimensions", "fp16x3", shape)


def grown(results, shape_of):
    def cell(x):
        row = length_row(results, shape_of(x))
        return EMPTY if row is None else f"{tera(row['rate'])} ({times(row['ratios'][NATIVE])})"
    return [cell(x) for x in LENGTHS]


# ---------------------------------------------------------------- workspace

LIMITED = [f"sgemm-workspace-{limit}" for limit in SGEMM_LIMITS]
LIMITED_NAMES = ("fp16x3", "fp16x3-wide")


def workspace_of(results):
    return workspace_claim(results, "own-workspace-sgemm", "sgemm-sizes", LIMITED, LIMITED_NAMES, 8192)


def workspace(results):
    body = workspace_table(results, "sgemm-sizes", LIMITED, LIMITED_NAMES, 8192) + "\n" + claims([workspace_of(results)])
    return section("Workspace", "What does a limit cost at n = 8192? C is worked on in blocks then, with the same bits.",
                   results, LIMITED, body)


def findings(results):
    """Returns the findings for all claims of the page."""
    return [*size_claims(results), choice_claim(results),
            *short_claims(results), spread_claim(results), *error_claims(results),
            workspace_of(results)]


def page(results):
    parts = (sizes, steps, stages, plain, blocks, tiles, shapes, short, spread, errors, workspace)
    return wrapped(head(TITLE, PART, results) + "".join(part(results) for part in parts).rstrip("\n") + "\n")
