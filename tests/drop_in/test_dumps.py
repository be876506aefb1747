"""KINTSUGI_DUMP: products whose sampled error passes a limit, as files that `kintsugi gemm` reads."""

import json
import os
import random
import shlex
import shutil
import subprocess

import numpy
import pytest
from conftest import CUBLAS_CALLS, LIBRARY, read_report
from test_sites import write_sites

PYTHON = os.environ.get("TESTED_PYTHON", shutil.which("python3", path="/usr/bin"))
PROGRAM = os.environ.get("TESTED_PROGRAM")
PREFIXES = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}

needs_program = pytest.mark.skipif(not PROGRAM, reason="configured without the program")

# Calls of gemm in memory that each call fills anew; operands and C before and after are saved.
GEMMS = r"""
import ctypes, json, sys, numpy
library = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
integer = lambda value: ctypes.byref(ctypes.c_int(value))
saved = {}
for number, call in enumerate(json.load(open("calls.json"))):
    generator, kind = numpy.random.default_rng(call["seed"]), call["type"]
    def filled(lines, ld):
        parts = generator.standard_normal((2, lines, ld))
        return (parts[0] + 1j * parts[1] if kind[0] == "c" else parts[0]).astype(kind)
    m, n, k, ops = (call[name] for name in ("m", "n", "k", "ops"))
    column = call["order"] == "column"
    (ra, ca), (rb, cb) = ((m, k) if ops[0] == "N" else (k, m)), ((k, n) if ops[1] == "N" else (n, k))
    shapes = {"a": (ra, ca), "b": (rb, cb), "c": (m, n)}
    lds = {name: (shape[0] if column else shape[1]) + call["pad"] for name, shape in shapes.items()}
    matrices = {name: filled(shape[1] if column else shape[0], lds[name]) for name, shape in shapes.items()}
    view = lambda name: (matrices[name].T if column else matrices[name])[:shapes[name][0], :shapes[name][1]]
    for name in "abc":
        saved[f"{number}{name}"] = view(name).copy()
    scalars = [numpy.array([value], dtype=kind) for value in (call["alpha"], call["beta"])]
    at = lambda array: ctypes.c_void_p(array.ctypes.data)
    if column:
        letters = [ctypes.c_char_p(op.encode()) for op in ops]
        getattr(library, call["prefix"] + "gemm_")(*letters, integer(m), integer(n), integer(k), at(scalars[0]), at(matrices["a"]), integer(lds["a"]),
                                                   at(matrices["b"]), integer(lds["b"]), at(scalars[1]), at(matrices["c"]), integer(lds["c"]))
    else:
        complex_scalars = kind[0] == "c"
        real = ctypes.c_float if kind == "f4" else ctypes.c_double
        passed = [at(scalar) if complex_scalars else real(scalar[0]) for scalar in scalars]
        enums = [{"N": 111, "T": 112, "C": 113}[op] for op in ops]
        getattr(library, "cblas_" + call["prefix"] + "gemm")(101, *enums, m, n, k, passed[0], at(matrices["a"]), lds["a"], at(matrices["b"]), lds["b"],
                                                              passed[1], at(matrices["c"]), lds["c"])
    saved[f"{number}r"] = view("c").copy()
numpy.savez("saved.npz", **saved)
"""


def random_call(generator):
    kind = generator.choice(list(PREFIXES))
    sizes = {name: generator.randint(1, 12) for name in "mnk"}
    return sizes | {"type": kind, "prefix": PREFIXES[kind], "seed": generator.randint(0, 1 << 30), "pad": generator.randint(0, 3),
                    "ops": "".join(generator.choice("NTC") for _ in range(2)), "order": generator.choice(["column", "row"]),
                    "alpha": generator.choice([1, -1.7]), "beta": generator.choice([0, 1, 0.3])}


def run_gemms(preloaded, calls, check=True, **settings):
    (preloaded.folder / "calls.json").write_text(json.dumps(calls))
    (preloaded.folder / "run.py").write_text(GEMMS)
    result = (preloaded.ok if check else preloaded)(PYTHON, "run.py", LIBRARY, **settings)
    return result, numpy.load(preloaded.folder / "saved.npz") if check else None


def dumps_of(folder):
    return sorted(folder.iterdir(), key=lambda path: int(path.name.split("-")[1]))


def check_dump(folder):
    """The replayed command succeeds, and says the exact result that the files hold. Returns description and matrices."""
    document = json.loads((folder / "call.json").read_text())
    files = {path.stem: numpy.load(path) for path in folder.glob("*.npy")}
    words = shlex.split(document["replay"])
    assert words[:4] == ["kintsugi", "gemm", "a.npy", "b.npy"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KINTSUGI_")} | {"KINTSUGI_CONFIG": ""}

    def gemm(*options):
        result = subprocess.run([PROGRAM, *options], cwd=folder, capture_output=True, text=True, env=environment, timeout=300)
        assert result.returncode == 0, (options, result.stderr)
    gemm(*words[1:])
    at = next(i for i, word in enumerate(words) if word in ("--policy", "--scheme"))
    gemm(*words[1:at], "--accuracy", "exact", "-o", "again.npy")
    assert numpy.array_equal(numpy.load(folder / "again.npy"), files["exact"])
    wide = [files[name].astype(numpy.clongdouble) for name in ("result", "exact")]
    error = float(numpy.sqrt((abs(wide[0] - wide[1])**2).sum() / (abs(wide[1])**2).sum()))
    assert document["error"] == pytest.approx(error, rel=1e-6) and document["error"] > document["limit"]
    return document, files


@needs_program
@pytest.mark.parametrize("seed", range(4))
def test_random_products(preloaded, seed):
    """A limit of 0: every product that is not exact. FP64 by a scheme of FP32 is native, so also the next BLAS's are written."""
    generator = random.Random(seed)
    calls = [random_call(generator) for _ in range(12)]
    result, saved = run_gemms(preloaded, calls, scheme="fp16x3", policy="emulate", dump="0:dumps")
    dumps = {}
    for folder in dumps_of(preloaded.folder / "dumps"):
        document, files = check_dump(folder)
        assert f"{folder.relative_to(preloaded.folder)} has its matrices" in result.stderr
        for number, call in enumerate(calls):
            swaps = call["order"] == "row"  # BLAS computes the transposed product
            if not numpy.array_equal(files["result"].T if swaps else files["result"], saved[f"{number}r"]):
                continue
            dumps[number] = document
            first, second = "ba" if swaps else "ab"
            for name, original in (("a", first), ("b", second), ("c", "c")):
                if name == "c" and call["beta"] == 0:
                    assert "c" not in files and "--beta" not in document["replay"]
                    continue
                expected = saved[f"{number}{original}"]
                assert numpy.array_equal(files[name], expected.T if swaps else expected), (call, name)
            assert (document["m"], document["n"], document["k"]) == (call["n"] if swaps else call["m"], call["m"] if swaps else call["n"], call["k"])
            assert document["program"] == ("fp16x3" if call["type"] in ("f4", "c8") else "BLAS")
    exact = 12 - len(dumps)
    assert exact < 6 and len(dumps) == len(dumps_of(preloaded.folder / "dumps"))


@needs_program
def test_the_replay_has_what_the_site_asks_for(preloaded):
    """All calls are of one site of libffi, whose rule names a scheme: the replay gives the same bits."""
    calls = [{"type": "f4", "prefix": "s", "m": 20, "n": 9, "k": 15, "seed": number, "pad": 1, "ops": "TN", "order": "row", "alpha": -1.7, "beta": 0.3}
             for number in range(3)]
    run_gemms(preloaded, calls, sites=write_sites(preloaded, {}), report="report.json")
    (name,) = [site["site"] for site in read_report(preloaded.folder / "report.json")["sites"] if "ffi" in site["module"]]
    result, _ = run_gemms(preloaded, calls, sites=write_sites(preloaded, {name: {"scheme": "fp16"}}), dump="1e-6:dumps", report="report.html")
    folders = dumps_of(preloaded.folder / "dumps")
    assert len(folders) == 3 and result.stderr.count("9 x 20 x 15 (transposed) by fp16: error") == 3
    for folder in folders:
        document, files = check_dump(folder)
        words = shlex.split(document["replay"])
        assert "--scheme" in words and "--policy" not in words
        subprocess.run([PROGRAM, *words[1:], "-o", "again.npy"], cwd=folder, check=True, capture_output=True, timeout=300)
        assert numpy.array_equal(numpy.load(folder / "again.npy"), files["result"])
    page = (preloaded.folder / "report.html").read_text()
    assert "largest sampled error" in page and f"{json.loads((folders[0] / 'call.json').read_text())['error']:.1e}"[:2] in page


def test_variables_of_cublas_are_named(preloaded):
    result, _ = run_gemms(preloaded, [random_call(random.Random(1))], verify_speed="1")
    assert result.stderr == "kintsugi: KINTSUGI_VERIFY_SPEED is for calls of cuBLAS; those of BLAS do not change\n"


def test_a_limit_that_no_product_passes(preloaded):
    calls = [random_call(random.Random(5))] * 6
    run_gemms(preloaded, calls, accuracy="exact", dump="0:dumps", report="report.json")
    assert not dumps_of(preloaded.folder / "dumps")
    (problem,) = [problem for problem in read_report(preloaded.folder / "report.json")["problems"] if problem["calls"] == 6]
    assert problem["error"] == {"calls": 6, "relative": 0, "largest": 0}, "equal calls are one problem"


def test_only_the_first_products_are_written(preloaded):
    calls = [{"type": "f4", "prefix": "s", "m": 9, "n": 8 + number, "k": 7, "seed": number, "pad": 0, "ops": "NN", "order": "column", "alpha": 1, "beta": 0}
             for number in range(20)]
    result, _ = run_gemms(preloaded, calls, scheme="fp16x3", policy="emulate", dump="1e-12:dumps")
    assert len(dumps_of(preloaded.folder / "dumps")) == 16
    assert result.stderr.count("KINTSUGI_DUMP: 16 products are written, further ones are not") == 1


@pytest.mark.parametrize("value, message", [
    ("1e-6", 'KINTSUGI_DUMP = "1e-6" is not accepted; accepted: LIMIT:FOLDER, as in 1e-6:dumps'), ("x:dumps", "is not accepted"), ("1e-6:", "is not accepted"),
    ("-1:dumps", "is not accepted"), ("nan:dumps", "is not accepted"), ("1e-6:no/such/folder", 'the folder "no/such/folder" cannot be made: No such file')])
def test_bad_values(preloaded, value, message):
    result, _ = run_gemms(preloaded, [random_call(random.Random(1))], policy="emulate", dump=value)
    assert message in result.stderr and "emulation is off" in result.stderr


@needs_program
def test_products_of_cublas(preloaded):
    """The host multiplies emulated products, the fake cuBLAS others: scalars and matrices in all of its forms."""
    if not CUBLAS_CALLS:
        pytest.skip("configured without the drop-in for cuBLAS")
    preloaded.environment |= {"FAKE_CUDA_MULTIPLY": "1", "OMP_WAIT_POLICY": "passive"}
    result = preloaded(CUBLAS_CALLS, "errors", scheme="fp16x3", policy="emulate", dump="1e-12:dumps", preload=False)
    folders = dumps_of(preloaded.folder / "dumps")
    assert folders, result.stdout + result.stderr
    for folder in folders:
        document, _ = check_dump(folder)
        assert document["symbol"].startswith("cublas")
