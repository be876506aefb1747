"""The runs of the studies on a GPU, most important first: commands of the program, of programs that measure, and of Python."""

import dataclasses
import shlex


@dataclasses.dataclass(frozen=True)
class Case:
    part: str
    name: str  # of its file
    words: tuple
    seconds: float  # it is stopped after so many
    settings: str = ""  # the settings file, where there is one

    def is_python(self):
        return self.words[0] == "python3"

    def output(self, file):
        return ["-o" if self.words[0].startswith("kintsugi") else "--output" if self.is_python() else "--json", str(file)]

    def text(self):
        """As a user types it."""
        before = f"KINTSUGI_CONFIG=<(echo '{self.settings}') " if self.settings else "PYTHONPATH=lab/apps " if self.is_python() else ""
        return before + shlex.join([*self.words, *self.output(f"{self.name}.json")])


def bench(part, name, candidates, shapes, seconds, *more, baselines="native", repeat=2, ceilings=False, settings=""):
    words = ["kintsugi", "bench", *candidates.split(), "--memory", "device", "--shapes", shapes, "--baselines", baselines,
             "--repeat", str(repeat), *more, *([] if ceilings else ["--no-ceilings"])]
    return Case(part, name, tuple(words), seconds, settings)


def of_fp64(name, candidates, shapes, seconds, *more, phi="0.5", **keywords):
    more = [*(() if "--type" in more else ("--type", "fp64")), *more, "--distribution", f"phi:{phi}"]
    return bench("fp64", name, candidates, shapes, seconds, *more, **keywords)


def squares(sizes):
    return ",".join(map(str, sizes))


SIZES = (256, 512, 1024, 2048, 4096, 8192)
BLOCKS = (128, 256, 512, 1024, 2048, 4096, 8192)
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)  # k at m = n = 4096, and m = n at k = 4096
SKEWED = (1024, 2048, 4096)
STAGED = ((1024, 1024, 1024), (1024, 1024, 8192), (2048, 2048, 2048))
TILED = (512, 1024, 2048, 4096)
MODULI = (13, 14, 15, 16, 17, 18)
PHIS = ("0.5", "1", "2", "4")
PAPER_PHIS = ("0.1", "1", "2")  # of dgemm-tc
PAPER_SIZES = (1024, 2048, 4096, 7168, 10240)
PAPER_MODES = ("ozaki-fp16", "ozaki-fp16:mode=cr", "ozaki-fp64")
ERRING = ("uniform", "uniform01", "phi:0.5", "phi:1", "phi:2", "phi:4", "type1", "type2", "type3", "type4", "graded:40",
          "span:16")
INNER = (1, 4, 16, 64, 256, 1024, 4096, 16384)  # k of those
ERRING_SIDES = (256, 2048)  # m = n: all elements of C, and as many of a C that has enough tiles for the whole chip
FEW_ROWS = (16, 32, 64, 128)  # beside weights of so many rows and columns, prepared or not
WEIGHTS = (4096, 8192, 16384)
BATCH = 64
BATCHED = (128, 256, 512)
SPREAD = ("1", "2", "4")  # phi, and sizes
SPREAD_SIZES = (512, 1024, 1536, 2048, 4096)
SGEMM_LIMITS = ("280000000", "140000000")
FP64_LIMITS = ("1200000000", "600000000")  # half of what ozaki2 takes at n = 8192, and a quarter


def shape_text(shape):
    return "x".join(str(size) for size in shape)


def skewed(n):
    """Shapes of le-gemm's Table 6."""
    return [(n, n, n), (n, 4 * n, n), (n, n, 4 * n)]


def stretched():
    """m = n = 4096 with other k, k = 4096 with other m = n."""
    return [(4096, 4096, k) for k in LENGTHS if k != 4096] + [(n, n, 4096) for n in LENGTHS[:-1]]


def beside_weights(weights):
    return [(rows, weights, weights) for rows in FEW_ROWS]


def moduli_name(moduli):
    return "ozaki2" if moduli == 16 else f"ozaki2:moduli={moduli}"


SGEMM = [
    bench("sgemm", "sgemm-sizes", "fp16x3 fp16x3-wide fp32 auto", squares(SIZES), 60, baselines="native,tf32,fp16",
          repeat=3, ceilings=True),
    bench("sgemm", "sgemm-vendor", "fp16x3 fp16x3-wide", squares(SIZES[2:]), 40, settings="accumulator = cublas"),
    bench("sgemm", "sgemm-blocks", " ".join(["fp16x3", *(f"fp16x3:block={block}" for block in BLOCKS)]),
          squares((4096, 8192)), 40),
    bench("sgemm", "sgemm-skewed", "fp16x3 legemm markidis ootomo",
          ",".join(shape_text(shape) for n in SKEWED for shape in skewed(n)), 50, baselines="native,fp16"),
    bench("sgemm", "sgemm-dimensions", "fp16x3", ",".join(map(shape_text, stretched())), 40),
    Case("sgemm", "sgemm-tiles", ("term_rate", *map(shape_text, ((n, n, n) for n in TILED))), 40),
    *(bench("sgemm", f"sgemm-workspace-{limit}", "fp16x3 fp16x3-wide", "8192", 20, "--workspace-limit", limit)
      for limit in SGEMM_LIMITS),
    bench("sgemm", "sgemm-16384", "fp16x3 fp16x3-wide", "16384", 40, baselines="native,fp16", repeat=1),
    bench("sgemm", "sgemm-32768", "fp16x3", "32768", 60, repeat=1),
    bench("sgemm", "sgemm-prepared", "fp16x3 fp16x3-wide auto",
          ",".join(shape_text(shape) for weights in WEIGHTS for shape in beside_weights(weights)), 40, "--prepare", "b"),
    bench("sgemm", "sgemm-short", "fp16x3 auto", ",".join(map(shape_text, beside_weights(WEIGHTS[0]))), 20),
    bench("sgemm", "sgemm-batched", "fp16x3 fp16x3-wide auto", squares(BATCHED), 20, "--batch", str(BATCH)),
    *(bench("sgemm", f"sgemm-phi-{phi}", "auto", squares(SPREAD_SIZES), 20, "--distribution", f"phi:{phi}")
      for phi in SPREAD),
    *(Case("sgemm", f"sgemm-errors-{side}",
           ("kintsugi-lab", "accuracy", "--engines", "cuda", "--schemes", "fp16x3,fp16x3-wide", "--distributions",
            ",".join(ERRING), "--m", str(side), "--n", str(side), "--k", ",".join(map(str, INNER)),
            "--max-elements", str(ERRING_SIDES[0]**2)), 120) for side in ERRING_SIDES),
    Case("sgemm", "sgemm-stages", ("term_rate", "--stages", *map(shape_text, STAGED)), 90),
]
FP64 = [
    of_fp64("fp64-sizes", "fp64 ozaki2 ozaki2:moduli=15 exact auto", squares(SIZES), 60, ceilings=True),
    of_fp64("fp64-dgemm-tc-phi-1", " ".join([*PAPER_MODES, "ozaki2"]), squares(PAPER_SIZES), 70, phi="1", repeat=1),
    *(of_fp64(f"fp64-workspace-{limit}", "ozaki2 fp64 exact", "8192", 30, "--workspace-limit", limit)
      for limit in FP64_LIMITS),
    *(of_fp64(f"fp64-moduli-phi-{phi}", " ".join([*map(moduli_name, MODULI), "fp64", "exact"]), "4096", 30, phi=phi)
      for phi in PHIS),
    of_fp64("fp64-zgemm", "ozaki2 fp64", squares(SIZES[2:]), 50, "--type", "c64"),
    of_fp64("fp64-cgemm", "ozaki2 fp32", squares(SIZES[2:]), 50, "--type", "c32"),
    *(of_fp64(f"fp64-dgemm-tc-phi-{phi}", " ".join(PAPER_MODES), "4096", 30, phi=phi, repeat=1)
      for phi in PAPER_PHIS if phi != "1"),
    of_fp64("fp64-sgemm-tc", "ozaki-fp16 fp16x3", squares(PAPER_SIZES[:3]), 40, "--type", "fp32", phi="1", repeat=1),
    of_fp64("fp64-16384", "fp64 ozaki2", "16384", 60, repeat=1),
]
K_MEANS = tuple((points, 1024, 256) for points in (4096, 8192, 16384, 32768, 65536))
FEED_FORWARD = tuple((tokens, *layer) for layer in ((3072, 768), (768, 3072)) for tokens in (512, 2048, 8192))
LANGUAGE_MODELS = tuple((2048, width, width) for width in (1024, 2048, 4096, 8192))
MIXPERT_LEVELS = "mixpert-4,mixpert-3,mixpert-2,mixpert-1"
# Schemes of FP32 with kernels of their own on Hopper.
MEASURED_SCHEMES = "fp16,bf16,tf32,fp16x3,fp16x3-wide,bf16x6,mixpert-1,mixpert-2,mixpert-3,mixpert-4,mixpert-full,int8x6"


def of_mixpert(name, programs, seconds, *more):
    return Case("programs", name, ("python3", "-m", "mixpert", *programs.split(), "--device", "cuda", "--repeats", "1", *more), seconds)


def of_application(name, shapes, seconds, *more):
    return bench("programs", name, "auto fp16x3 legemm", ",".join(map(shape_text, shapes)), seconds, *more)


def of_errors(name, shapes, seconds, distribution="uniform"):
    return Case("programs", name, ("kintsugi-lab", "accuracy", "--engines", "cuda", "--schemes", "native,fp16,fp16x3,legemm", "--seeds", "1,2,3",
                                   "--distributions", distribution, "--shapes", ",".join(map(shape_text, shapes))), seconds)


PROGRAMS = [
    of_mixpert("mixpert-paper", "nearest-neighbours k-means perceptron bert-feed-forward query-key-value correlation", 120,
               "--size", "paper", "--schemes", MEASURED_SCHEMES),
    of_mixpert("mixpert-factorizations", "hpl-ai cholesky", 90, "--size", "paper", "--schemes", MEASURED_SCHEMES),
    of_mixpert("mixpert-levels-cholesky", "cholesky", 60, "--size", "paper", "--levels", MIXPERT_LEVELS),
    of_mixpert("mixpert-levels-perceptron", "perceptron", 40, "--size", "paper", "--levels", MIXPERT_LEVELS),
    of_mixpert("mixpert-cholesky-search", "cholesky", 90, "--size", "16384", "--search", "exhaustive", "--validate", "20"),
    of_mixpert("mixpert-perceptron-4096", "perceptron", 60, "--size", "4096", "--search", "exhaustive", "--validate", "20"),
    Case("programs", "mixpert-processes", ("python3", "-m", "mixpert.processes", "--device", "cuda", "--size", "8192x32768",
                                           "--levels", "native,auto,fp16x3,bf16x6,tf32,fp16", "--most", "5", "--seconds", "0.5"), 60),
    of_application("programs-k-means", K_MEANS, 20),
    of_application("programs-feed-forward", FEED_FORWARD, 20),
    of_application("programs-language-models", LANGUAGE_MODELS, 30, "--distribution", "language-model"),
    of_errors("programs-errors-k-means", K_MEANS, 60),
    of_errors("programs-errors-feed-forward", FEED_FORWARD, 20),
    of_errors("programs-errors-language-models", LANGUAGE_MODELS, 30, "language-model"),
    Case("programs", "programs-trade", ("python3", "lab/studies/hopper/cublas_modes.py", "--sizes", "1024,2048,4096,8192"), 30),
]
CASES = {case.name: case for case in SGEMM + FP64 + PROGRAMS}
