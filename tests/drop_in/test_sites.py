"""Call sites: their names, what the sites file makes of them, the report, and which result feeds which call."""

import json
import os
import pathlib
import random
import shutil
import subprocess

import jsonschema
import numpy
import pytest
from conftest import CALLS, LIBRARY, SOURCE, read_report

# Calls from three functions; each prints the bits of its result.
PROGRAM = r"""
#include <stdio.h>
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
static float a[9] = {1.1f, 2.2f, 3.3f, 4.4f, 5.5f, 6.6f, 7.7f, 8.8f, 9.9f}, b[9], c[9];
static const int n = 3;
static const float one = 1, zero = 0;
__attribute__((noinline)) void first(void) { sgemm_("N", "T", &n, &n, &n, &one, a, &n, a, &n, &zero, b, &n); puts(""); }
__attribute__((noinline)) static void second(void) {
  for (volatile int i = 0; i < 2; ++i) sgemm_("N", "N", &n, &n, &n, &one, b, &n, a, &n, &zero, c, &n);
}
void third(void) { second(); puts(""); }
int main(void) {
  first();
  third();
  sgemm_("N", "N", &n, &n, &n, &one, a, &n, c, &n, &one, b, &n);
  for (int i = 0; i < 9; ++i) printf("%a %a\n", b[i], c[i]);
  return 0;
}
"""
NATIVE = {"policy": "native"}


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "calls.c").write_text(PROGRAM)
    subprocess.run([os.environ["TESTED_CC"], "-O1", "-o", folder / "calls", folder / "calls.c", "-Wl,--no-as-needed",
                    LIBRARY, f"-Wl,-rpath,{pathlib.Path(LIBRARY).parent}"], check=True)
    return folder / "calls"


def write_sites(preloaded, sites, **members):
    path = preloaded.folder / "sites.json"
    document = {"format": "kintsugi.sites", "format_version": 1, "sites": sites, **members}
    schema = json.loads((SOURCE / "docs/schema/sites.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(document)
    path.write_text(json.dumps(document))
    return str(path)


def profile(preloaded, program):
    """The report's sites by function."""
    report = preloaded.report(program, sites=write_sites(preloaded, {}))
    return {site["function"]: site for site in report["sites"]}


def test_sites_have_the_names_of_functions_and_the_same_in_every_run(preloaded, compiled):
    one, other = profile(preloaded, compiled), profile(preloaded, compiled)
    assert list(one) == list(other) and set(one) == {"first", "second", "main"}
    for function, site in one.items():
        assert site["site"] == other[function]["site"] == f"calls:{function}@{site['offset']:#x}"
    assert [site["ordinal"] for site in sorted(one.values(), key=lambda site: site["offset"])] == [1, 2, 3]
    assert {function: site["calls"] for function, site in one.items()} == {"first": 1, "second": 2, "main": 1}


def test_a_stripped_program_has_offsets(preloaded, compiled):
    if not shutil.which("strip"):
        pytest.skip("no strip")
    stripped = preloaded.folder / "calls"
    subprocess.run(["strip", "-o", stripped, compiled], check=True)
    offsets = {site["offset"] for site in profile(preloaded, compiled).values()}
    report = preloaded.report(stripped, sites=write_sites(preloaded, {}))
    assert {site["site"] for site in report["sites"]} == {f"calls:?@{offset:#x}" for offset in offsets}


def test_results_that_feed_calls(preloaded, compiled):
    sites = profile(preloaded, compiled)
    names = {site["site"]: function for function, site in sites.items()}
    read = {function: {names[edge["site"]]: edge["calls"] for edge in site["inputs"]} for function, site in sites.items()}
    assert read == {"first": {}, "second": {"first": 2}, "main": {"second": 1, "first": 1}}


def test_rules_run_at_their_sites(preloaded, compiled):
    sites = profile(preloaded, compiled)
    rules = {sites["first"]["site"]: {"scheme": "fp16"}, sites["second"]["site"]: {"accuracy": "exact", "policy": "emulate"},
             sites["main"]["site"]: NATIVE}
    report = preloaded.report(compiled, sites=write_sites(preloaded, rules))
    ran = {site["function"]: (site["rule"], site["emulated_calls"], site["native_calls"]) for site in report["sites"]}
    assert ran["first"] == ({"scheme": "fp16"}, {"fp16": 1}, 0) and ran["main"] == (NATIVE, {}, 1)
    assert ran["second"][0] == {"accuracy": "exact", "policy": "emulate"} and sum(ran["second"][1].values()) == 2


def test_rules_change_the_bits_of_their_site_alone(preloaded, compiled):
    alone = preloaded.ok(compiled, preload=False, policy="native").stdout
    sites = profile(preloaded, compiled)
    native = preloaded.ok(compiled, sites=write_sites(preloaded, {}), policy="emulate")
    assert native.stdout == alone and native.stderr == "", "unknown sites are native under every policy"
    rules = {site["site"]: NATIVE for site in sites.values()} | {sites["main"]["site"]: {"scheme": "fp16"}}
    c = [line.split()[1:] for line in preloaded.ok(compiled, sites=write_sites(preloaded, rules)).stdout.splitlines()]
    assert c == [line.split()[1:] for line in alone.splitlines()]
    assert preloaded.ok(compiled, sites=write_sites(preloaded, rules)).stdout != alone


def test_an_unknown_site_is_said_once(preloaded, compiled):
    sites = profile(preloaded, compiled)
    result = preloaded.ok(compiled, sites=write_sites(preloaded, {sites["first"]["site"]: NATIVE, sites["main"]["site"]: NATIVE}))
    assert result.stderr == f"kintsugi: {sites['second']['site']} is not in the sites file: its calls are native\n"


def test_a_rule_that_cannot_be_kept_is_said_once(preloaded, compiled):
    sites = profile(preloaded, compiled)
    rules = {site["site"]: NATIVE for site in sites.values()} | {sites["second"]["site"]: {"scheme": "fp16x4"}}
    result = preloaded.ok(compiled, sites=write_sites(preloaded, rules))
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"kintsugi: {sites['second']['site']}: its calls are native, since its rule makes no plan: ")
    assert "fp16x4" in line


@pytest.mark.parametrize("document, expected", [
    ("{", "is no JSON"), ("{}", "format is not kintsugi.sites"),
    ('{"format": "kintsugi.sites", "format_version": 2, "sites": {}}', "format_version is not 1"),
    ('{"format": "kintsugi.sites", "format_version": 1, "sites": {"x": {"speed": "1"}}}', "accepted: scheme, accuracy, policy"),
    ('{"format": "kintsugi.sites", "format_version": 1, "sites": {"x": {"accuracy": "2"}}}', 'accuracy = "2" is not accepted'),
    ('{"format": "kintsugi.sites", "format_version": 1, "sites": {"x": {"policy": "force"}}}', "accepted: auto, emulate, native"),
    ('{"format": "kintsugi.sites", "format_version": 1, "sites": {"x": {"policy": "native", "scheme": "fp16"}}}', "neither"),
])
def test_a_bad_file_switches_emulation_off(preloaded, compiled, document, expected):
    (preloaded.folder / "bad.json").write_text(document)
    alone = preloaded.ok(compiled, preload=False, policy="native")
    result = preloaded.ok(compiled, sites="bad.json")
    (line,) = result.stderr.splitlines()
    assert result.stdout == alone.stdout and "bad.json" in line and expected in line and line.endswith("; emulation is off")


@pytest.mark.parametrize("variables, expected", [({"scheme": "fp16"}, "KINTSUGI_SCHEME"), ({"policy": "force"}, "force")])
def test_settings_that_cannot_stand_beside_it(preloaded, compiled, variables, expected):
    result = preloaded.ok(compiled, sites=write_sites(preloaded, {}), **variables)
    assert expected in result.stderr and result.stderr.endswith("; emulation is off\n")


def test_a_table_lists_sites(preloaded, compiled):
    lines = preloaded.ok(compiled, sites=write_sites(preloaded, {}), report="-").stderr.splitlines()
    assert sum("not in the sites file" in line for line in lines) == 3


# ---------------------------------------------------------------- routines in one process, by ctypes

PREFIXES = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
ROUTINES = r"""
import ctypes, json, sys, numpy
library = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
integer = lambda value: ctypes.byref(ctypes.c_int(value))
pool = numpy.fromfile("pool.bin", dtype=numpy.uint8)
at = lambda offset: ctypes.c_void_p(pool.ctypes.data + offset)
for call in json.load(open("calls.json")):
    kind, letter = call["type"], ctypes.c_char_p
    scalars = [numpy.array([value], dtype=kind) for value in (1, call["beta"])]
    pointers = [ctypes.c_void_p(scalar.ctypes.data) for scalar in scalars]
    m, n, k, lda, ldb, ldc = (integer(call[name]) for name in ("m", "n", "k", "lda", "ldb", "ldc"))
    a, b, c = (at(call[name]) for name in "abc")
    if call["routine"] == "gemm":
        getattr(library, call["prefix"] + "gemm_")(letter(b"N"), letter(b"N"), m, n, k, pointers[0], a, lda, b, ldb, pointers[1], c, ldc)
    else:
        getattr(library, call["prefix"] + "syrk_")(letter(call["uplo"].encode()), letter(b"N"), n, k, pointers[0], a, lda, pointers[1], c, ldc)
    numpy.save("last.npy", pool)
"""


def random_call(generator):
    kind = generator.choice(list(PREFIXES))
    routine = generator.choice(["gemm", "syrk"])
    m, n, k = (generator.randint(1, 9) for _ in range(3))
    m = n if routine == "syrk" else m
    lda, ldb, ldc = m + generator.randint(0, 4), k + generator.randint(0, 4), m + generator.randint(0, 4)
    size = numpy.dtype(kind).itemsize
    # A, B and C apart, since BLAS forbids their overlap.
    a, b, c = (16 * generator.randint(0, 40) + 4096 * index for index in range(3))
    return {"type": kind, "prefix": PREFIXES[kind], "routine": routine, "m": m, "n": n, "k": k, "lda": lda, "ldb": ldb, "ldc": ldc,
            "a": a, "b": b, "c": c, "beta": generator.choice([0, 1]), "uplo": generator.choice("UL"), "size": size}


def last_output(call, pool):
    """C of the last call, from the memory that it left."""
    kind = numpy.dtype(call["type"])
    first = numpy.frombuffer(pool.tobytes()[call["c"]:], dtype=kind, count=call["ldc"] * (call["n"] - 1) + call["m"])
    c = numpy.lib.stride_tricks.as_strided(first, (call["m"], call["n"]), (kind.itemsize, call["ldc"] * kind.itemsize))
    return c if call["routine"] == "gemm" else numpy.triu(c) if call["uplo"] == "U" else numpy.tril(c)


@pytest.mark.parametrize("seed", range(8))
def test_outputs_are_what_the_last_call_left(preloaded, seed):
    """ctypes calls every function from one place of libffi: one site, whose output is the last call's."""
    generator = random.Random(seed)
    calls = [random_call(generator) for _ in range(20)]
    numpy.random.default_rng(seed).integers(0, 60, 1 << 15, dtype=numpy.uint8).tofile(preloaded.folder / "pool.bin")
    (preloaded.folder / "calls.json").write_text(json.dumps(calls))
    (preloaded.folder / "run.py").write_text(ROUTINES)
    (preloaded.folder / "outputs").mkdir()
    sites = write_sites(preloaded, {}, outputs=str(preloaded.folder / "outputs"))
    report = preloaded.report(os.environ.get("TESTED_PYTHON", shutil.which("python3", path="/usr/bin")), "run.py", LIBRARY, sites=sites)
    (site,) = [site for site in report["sites"] if "ffi" in site["module"]]
    found = numpy.load(preloaded.folder / "outputs" / site["output"])
    expected = last_output(calls[-1], numpy.load(preloaded.folder / "last.npy"))
    assert found.dtype == expected.dtype and numpy.array_equal(found, expected, equal_nan=True)
    assert site["calls"] == len(calls)


def test_nothing_is_looked_up_without_the_setting(preloaded, compiled):
    assert "sites" not in preloaded.report(compiled)


def test_threads_and_forks(preloaded):
    """Sites are found by several threads at once, with a fork in between, which must not meet a lock of another thread."""
    code = ("import os, signal, numpy\nfrom concurrent.futures import ThreadPoolExecutor\n"
            "def product(i):\n    a = numpy.ones((20 + i % 7, 30), dtype='f4' if i % 2 else 'f8')\n    return (a @ numpy.ones((30, 9), dtype=a.dtype)).sum()\n"
            "with ThreadPoolExecutor(4) as pool:\n    sums = pool.map(product, range(200))\n"
            "    for _ in range(5):\n        child = os.fork()\n        if child == 0:\n            signal.alarm(60)\n"
            "            product(3)\n            os._exit(0)\n        assert os.waitpid(child, 0)[1] == 0\n"
            "    assert list(sums) == [(20 + i % 7) * 270 for i in range(200)]\n")
    preloaded.ok("/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3", "-c", code, sites=write_sites(preloaded, {}),
                 report=str(preloaded.folder / "report.json"))
    if not (preloaded.folder / "report.json").exists():
        pytest.skip("this numpy has its own BLAS")
    report = read_report(preloaded.folder / "report.json")
    assert sum(site["calls"] for site in report["sites"]) == sum(problem["calls"] for problem in report["problems"]) == 200


# ---------------------------------------------------------------- which result feeds which call, at random

# Makes the products of its input from four call sites.
RANDOM_CALLS = r"""
#include <stdio.h>
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
static float pool[1 << 14];
static const float zero = 0;
static char op_a[2], op_b[2];
static int m, n, k, lda, ldb, ldc, a, b, c;
static float beta;
#define SITE(name) __attribute__((noinline)) void name(void) { \
  sgemm_(op_a, op_b, &m, &n, &k, &zero, pool + a, &lda, pool + b, &ldb, &beta, pool + c, &ldc); __asm__ volatile("nop"); }
SITE(s0) SITE(s1) SITE(s2) SITE(s3)
int main(void) {
  void (*sites[])(void) = {s0, s1, s2, s3};
  for (int site; scanf("%d %1s %1s %d %d %d %d %d %d %d %d %d %f", &site, op_a, op_b, &m, &n, &k, &lda, &ldb, &ldc, &a, &b, &c,
                       &beta) == 13;)
    sites[site]();
  return 0;
}
"""


class Area:
    """Elements of a column-major matrix in the pool."""

    def __init__(self, first, rows, columns, ld):
        self.ld, self.is_contiguous = ld, columns == 1 or ld == rows
        self.elements = {first + j * ld + i for j in range(columns) for i in range(rows)}
        self.span = (first, first + (columns - 1) * ld + rows)

    def overlaps(self, other):
        if self.ld == other.ld:
            return bool(self.elements & other.elements)
        return self.span[0] < other.span[1] and other.span[0] < self.span[1]

    def covers(self, other):
        if self.is_contiguous:
            return self.span[0] <= other.span[0] and other.span[1] <= self.span[1]
        return self.ld == other.ld and other.elements <= self.elements


def expected_inputs(calls):
    found, outputs = {}, []
    for call in calls:
        site, op_a, op_b, m, n, k, lda, ldb, ldc, a, b, c, beta = call
        output = Area(c, m, n, ldc)
        inputs = [Area(a, *((m, k) if op_a == "N" else (k, m)), lda), Area(b, *((k, n) if op_b == "N" else (n, k)), ldb)]
        inputs += [output] if beta else []
        for feeding in {other for area, other in outputs if any(area.overlaps(one) for one in inputs)}:
            found[site, feeding] = found.get((site, feeding), 0) + 1
        outputs = [(area, other) for area, other in outputs if not output.covers(area)] + [(output, site)]
    return found


def random_product(generator):
    m, n, k = (generator.randint(1, 8) for _ in range(3))
    op_a, op_b = generator.choice("NT"), generator.choice("NT")
    ld = lambda rows: generator.choice([rows, 8, 8, 16])
    # C beside A and B, which may overlap each other.
    a, b, c = generator.randint(0, 300), generator.randint(0, 300), generator.randint(0, 300)
    return (generator.randint(0, 3), op_a, op_b, m, n, k, ld(m if op_a == "N" else k), ld(k if op_b == "N" else n), ld(m), a, b, c,
            generator.choice([0, 1]))


@pytest.mark.parametrize("seed", range(10))
def test_random_flow(preloaded, tmp_path, seed):
    """alpha = 0 in every call, so that C may overlap A and B."""
    source = tmp_path / "random_calls.c"
    source.write_text(RANDOM_CALLS)
    program = tmp_path / "random_calls"
    subprocess.run([os.environ["TESTED_CC"], "-O1", "-o", program, source, "-Wl,--no-as-needed", LIBRARY,
                    f"-Wl,-rpath,{pathlib.Path(LIBRARY).parent}"], check=True)
    generator = random.Random(seed)
    calls = [random_product(generator) for _ in range(25)]
    (tmp_path / "calls").write_text("\n".join(" ".join(str(word) for word in call) for call in calls) + "\n")
    report = preloaded.report("sh", "-c", f"{program} < calls", sites=write_sites(preloaded, {}))
    number = {site["site"]: int(site["function"][1:]) for site in report["sites"]}
    found = {(number[site["site"]], number[edge["site"]]): edge["calls"] for site in report["sites"] for edge in site["inputs"]}
    assert found == expected_inputs(calls)


def test_every_name_at_a_site_of_its_own(preloaded):
    """All routines and batches with random matrices, against naive loops: recorded, then as rules have them.

    Measured calls give the program the same results, and exact ones have no error.
    """
    outputs = preloaded.folder / "outputs"
    outputs.mkdir()
    words = [CALLS, "random", "--seed", "11", "--cases", "1000"]
    report = preloaded.report(*words, "--forwarded", sites=write_sites(preloaded, {}, outputs=str(outputs)))
    sites = report["sites"]
    assert sum(site["calls"] for site in sites) == sum(problem["calls"] for problem in report["problems"]) >= 1000
    # Names that the next BLAS lacks are composed of its products, and trsm of substitution too.
    assert len(sites) > 400 and {name for site in sites for name in site["emulated_calls"]} <= {"substitution"}
    for path in outputs.iterdir():
        numpy.load(path)
    rules = [{"policy": "emulate"}, {"accuracy": "exact", "policy": "emulate"}, {"policy": "auto", "accuracy": "exact"}]
    chosen = {site["site"]: random.Random(site["site"]).choice(rules) for site in sites}
    ran = {site["site"]: site for site in preloaded.report(*words, sites=write_sites(preloaded, chosen, error_samples=2))["sites"]}
    assert ran.keys() == chosen.keys()
    for name, rule in chosen.items():
        assert ran[name]["rule"] == rule and ran[name]["failed_calls"] == 0
        assert ran[name]["native_calls"] == 0 or "accuracy" not in rule
        error, problems = ran[name]["error"], ran[name]["problems"]
        is_measured = "trsm" not in problems[0]["symbol"] and any(problem["m"] > 0 and problem["n"] > 0 for problem in problems)
        assert (error is not None) == is_measured, name
        assert error is None or error["relative"] == 0 or "accuracy" not in rule, name
