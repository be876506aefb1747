"""The compiler pass: it finds all calls of GEMM, their names are stable, results do not change."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest
from conftest import BLAS, CLANG, PROGRAMS, SOURCE, compile, names, run, table
from drop_in.conftest import Preloaded

LEVELS = ["-O0", "-O1", "-O2", "-O3"]
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}

# By hand, from the sources.
CPP_SITES = sorted([
    "first.cpp:_ZN12_GLOBAL__N_17ProductC2ERKSt6vectorIdSaIdEE:dgemm_#1", "first.cpp:_ZN12_GLOBAL__N_17guardedEPKdPd:dgemm_#1",
    "first.cpp:_ZZ4mainENK3$_0clEPd:dgemm_#1", "inline:_Z6squareILi4EEvPKdPd:dgemm_#1", "second.cpp:_ZL7guardedPKdPd:dgemm_#1"])
FLOW_SITES = sorted([*(f"flow.c:multiply_chain:cblas_sgemm#{i}" for i in (1, 2, 3)), "flow.c:multiply_powers:cblas_sgemm#1",
                     *(f"flow.c:multiply_either:cblas_sgemm#{i}" for i in (1, 2))])


def build(folder, sources, *flags, name="program", **keywords):
    """Compiles each source to an object of its own, and links them."""
    objects = []
    for source in sources:
        objects.append(folder / f"{name}.{source}.o")
        compile(*flags, "-c", PROGRAMS / source, "-o", objects[-1], **keywords)
    compile(*flags, *objects, "-o", folder / name, BLAS, "-lstdc++", **keywords)
    return folder / name


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sources, expected", [(["first.cpp", "second.cpp"], CPP_SITES), (["flow.c"], FLOW_SITES)])
def test_all_sites_are_found_and_results_stay(tmp_path, sources, expected, level):
    program = build(tmp_path, sources, level)
    plain = build(tmp_path, sources, level, name="plain", with_pass=False)
    assert names(program) == expected and names(plain) == []
    assert run(program, env=ONE_THREAD).stdout == run(plain, env=ONE_THREAD).stdout


@pytest.mark.parametrize("flags", [["-flto"], ["-flto=thin", "-O1"], ["-ffunction-sections", "-Wl,--gc-sections"],
                                   ["-fno-pic", "-no-pie"], ["-O2", "-Wl,--strip-all"]], ids=" ".join)
def test_linking(tmp_path, sites, flags):
    program = build(tmp_path, ["first.cpp", "second.cpp"], "-O2", *flags)
    assert names(program) == CPP_SITES
    assert set(sites.run(program, {})[1]) == set(CPP_SITES)


def test_every_name_of_gemm(tmp_path):
    """Also in C without prototypes, in which the calls have other types than the functions."""
    callees = [f"{letter}gemm{end}" for letter in "sdcz" for end in ("_", "_64_", "64_")]
    callees += [f"cblas_{letter}gemm{end}" for letter in "sdcz" for end in ("", "_64", "64_")]
    callees += [f"cublas{name}{end}" for name in (*(f"{x}gemm{y}" for x in "SDCZ" for y in ("_v2", "StridedBatched")), "GemmEx",
                                                  "GemmStridedBatchedEx") for end in ("", "_64")]
    others = ["dgemm", "dgemm3m_", "my_dgemm_", "cblas_dgemmt", "cblas_hgemm", "cublasSgemm", "cublasSgemm3m", "dgemv_"]
    lines = [f"void {name}(); void call_{name}(void) {{ {name}(1, 2, 3); }}" for name in callees + others]
    (tmp_path / "all.c").write_text("\n".join(lines))
    compile("-w", "-c", "all.c", "-o", "all.o", cwd=tmp_path)
    assert names(tmp_path / "all.o") == sorted(f"all.c:call_{name}:{name}#1" for name in callees)


def test_calls_through_pointers_are_no_sites(tmp_path):
    (tmp_path / "pointer.c").write_text("void dgemm_(); void call(void (*f)()) { f(); } void (*address)() = dgemm_;")
    compile("-w", "-c", "pointer.c", "-o", "pointer.o", cwd=tmp_path)
    assert names(tmp_path / "pointer.o") == []


def test_files_of_one_name_are_told_apart(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "util.c").write_text(f"void dgemm_(); static void f(void) {{ dgemm_(); }} void {folder}(void) {{ f(); }}")
    (tmp_path / "main.c").write_text("void dgemm_() {} void one(); void two(); int main() { dgemm_(); one(); two(); }")
    compile("-w", "one/util.c", "two/util.c", "main.c", "-o", "program", cwd=tmp_path)
    found = names(tmp_path / "program")
    assert len(set(found)) == 3 and "main.c:main:dgemm_#1" in found
    assert all(re.fullmatch(r"util\.c~[0-9a-f]{8}:f:dgemm_#1|main.*", name) for name in found)


def test_calls_of_cublas_have_names_that_stay(tmp_path):
    """apps/perceptron_cublas over the fakes, under the drop-in for cuBLAS: unchanged results, and rules by name."""
    if not os.environ.get("TESTED_CUBLAS"):
        pytest.skip("configured without the drop-in for cuBLAS")
    fakes = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests/fakes"
    libraries = [fakes / "libcublas.so.13", fakes / "libcuda.so.1", f"-Wl,-rpath,{fakes}"]
    for level, name in (("-O0", "one"), ("-O2", "other")):
        compile(level, "-std=c++20", SOURCE / "lab/apps/perceptron_cublas.cpp", "-o", tmp_path / name, *libraries)
    under = Preloaded(tmp_path)
    under.environment |= {"FAKE_CUDA_MULTIPLY": "1", "FAKE_CUDA_NAME": "NVIDIA H200", "LD_PRELOAD": os.environ["TESTED_CUBLAS"]}
    words = ("12", "10", "14", "Y.npy")
    (tmp_path / "sites.json").write_text('{"format": "kintsugi.sites", "format_version": 1, "sites": {}}')
    found = []
    for name in ("one", "other"):
        under.ok(tmp_path / name, *words, preload=False, sites="sites.json", report="report.json")
        found.append({site["site"]: site["function"] for site in json.loads((tmp_path / "report.json").read_text())["sites"]})
    assert found[0] == found[1] == {f"perceptron_cublas.cpp:{function}:cublasSgemm_v2#1": function for function in found[0].values()}
    assert [sum(layer in function for function in found[0].values()) for layer in ("first_layer", "second_layer", "last_layer")] == [1, 1, 1]
    rules = {name: {"policy": "native"} for name in found[0]}
    (tmp_path / "rules.json").write_text(json.dumps({"format": "kintsugi.sites", "format_version": 1, "sites": rules}))
    assert under.ok(tmp_path / "one", *words, preload=False, sites="rules.json").stderr == "", "every site has a rule"


# ---------------------------------------------------------------- names, tables, data flow

def test_names_and_flow_do_not_depend_on_the_level_or_the_build(tmp_path):
    tables = [table(build(tmp_path, ["flow.c"], level)) for level in [*LEVELS, "-O2"]]
    assert all(one == tables[0] for one in tables)
    with_lines = table(build(tmp_path, ["flow.c"], "-O2", "-g"))
    assert [site | {"line": 0} for site in with_lines] == tables[0]
    assert [site["line"] for site in tables[0]] == [0] * 6


def inputs(file, source):
    """{site: (operand, site whose result it may hold)} without the source file's name."""
    return {site["site"].removeprefix(f"{source}:"): {(edge["operand"], edge["site"].removeprefix(f"{source}:")) for edge in site["inputs"]}
            for site in table(file)}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_results_that_feed_calls(tmp_path, level):
    chain, powers, either = (f"multiply_{name}:cblas_sgemm#" for name in ("chain", "powers", "either"))
    assert inputs(build(tmp_path, ["flow.c"], level), "flow.c") == {
        f"{chain}1": set(), f"{chain}2": {("A", f"{chain}1")}, f"{chain}3": {("A", f"{chain}1"), ("B", f"{chain}2")},
        f"{powers}1": {("B", f"{powers}1"), ("B", f"{chain}3")},
        f"{either}1": set(), f"{either}2": {("A", f"{chain}1"), ("A", f"{either}1")}}


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_results_that_feed_calls_of_other_functions(tmp_path, level):
    """Through arguments, a returned pointer and members of a struct; memory that nothing reads later has no edge."""
    found = inputs(build(tmp_path, ["flow_across.c"], level), "flow_across.c")
    square, cube, product, first, second = (f"{name}:cblas_dgemm#1" for name in ("square", "cube", "product", "step_first", "step_second"))
    assert found == {square: set(), cube: {("A", square)}, product: {("A", cube), ("A", product)}, first: set(), second: {("A", first)}}


FLOW = """#include <stdlib.h>
void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
static void multiply_first(const double* a, double* c) { cblas_dgemm(102, 111, 111, 4, 4, 4, 1, a, 4, a, 4, 0, c, 4); }
static void multiply_second(const double* a, double* c) { cblas_dgemm(102, 111, 111, 4, 4, 4, 1, a, 4, a, 4, 0, c, 4); }
static double kept[16];
struct Pair { double *x, *y; };
static double* choose(double* one, double* other, int is_first) { return is_first ? one : other; }
void g(void);
"""


@pytest.mark.parametrize("body, feeds", [
    ("multiply_first(a, b); multiply_second(b, c);", True),
    ("multiply_second(b, c); multiply_first(a, b);", False),
    ("for (int i = 0; i < 3; ++i) { multiply_second(b, c); multiply_first(a, b); }", True),
    ("multiply_first(a, b); multiply_second(c, b);", False),
    ("multiply_first(a, kept); g(); multiply_second(kept, c);", True),
    ("double* p = choose(b, c, flag); multiply_first(a, p); multiply_second(b, a);", True),
    ("double* p = choose(a, c, flag); multiply_first(a, p); multiply_second(b, a);", False),
    ("struct Pair pair = {b, c}; multiply_first(a, pair.x); multiply_second(pair.x, pair.y);", True),
    ("struct Pair pair = {b, c}; multiply_first(a, pair.x); multiply_second(pair.y, a);", False),
    ("struct Pair pair = {b, c}; multiply_first(a, b); multiply_second(pair.x, c);", True),
    ("double* all = malloc(3 * 128); multiply_first(all, all + 16); multiply_second(all + 16, all + 32);", True),
    ("double* all = malloc(3 * 128); multiply_first(all, all + 16); multiply_second(all, all + 32);", False),
    ("if (flag) multiply_first(a, b); else multiply_second(b, c);", False),
], ids=range(13))
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_flow_from_one_function_to_another(tmp_path, body, feeds, level):
    (tmp_path / "calls.c").write_text(
        FLOW + f"void f(int flag) {{ double *a = malloc(128), *b = malloc(128), *c = malloc(128); {body} free(a); free(b); free(c); }}\n")
    compile(level, "-c", "calls.c", "-o", "calls.o", cwd=tmp_path)
    found = inputs(tmp_path / "calls.o", "calls.c")
    first, second = "multiply_first:cblas_dgemm#1", "multiply_second:cblas_dgemm#1"
    assert (("A", first) in found[second]) == feeds and found[first] <= {("A", second), ("B", second)}


def test_references_to_beta(tmp_path):
    """Fortran's beta is a pointer; C is read unless it refers to a zero."""
    (tmp_path / "beta.c").write_text("""
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*);
static const double zero = 0;
void f(const int* n, const double* a, double* c, double* d, const double* beta) {
  const double local = 0; double other = 0; if (*n > 1) other = *beta;
  dgemm_("N", "N", n, n, n, a, a, n, a, n, &zero, c, n);
  dgemm_("N", "N", n, n, n, a, a, n, a, n, beta, c, n);
  dgemm_("N", "N", n, n, n, a, a, n, a, n, &local, c, n);
  dgemm_("N", "N", n, n, n, a, a, n, a, n, &other, c, n);
}""")
    compile("-O1", "-c", "beta.c", "-o", "beta.o", cwd=tmp_path)
    reads = [sorted(edge["site"][-1] for edge in site["inputs"]) for site in table(tmp_path / "beta.o")]
    assert reads == [[], ["1"], [], ["1", "2", "3"]]


def test_debug_lines(tmp_path):
    program = build(tmp_path, ["first.cpp", "second.cpp"], "-O0", "-g")
    for site in table(program):
        if site["file"]:
            assert "dgemm_(" in (PROGRAMS / site["file"]).read_text().splitlines()[site["line"] - 1]
    dumper = shutil.which("llvm-dwarfdump-14")
    if not dumper:
        pytest.skip("no llvm-dwarfdump-14")
    plain = build(tmp_path, ["first.cpp", "second.cpp"], "-O0", "-g", name="plain", with_pass=False)
    lines = [set(re.findall(r"^0x\w+ +(\d+) .*is_stmt", run(dumper, "--debug-line", file).stdout, re.MULTILINE))
             for file in (program, plain)]
    assert lines[0] == lines[1] and len(lines[0]) > 20
    assert "No errors" in run(dumper, "--verify", build(tmp_path, ["first.cpp", "second.cpp"], "-O2", "-g")).stdout


def test_remarks(tmp_path):
    (tmp_path / "tail.c").write_text("void dgemm_(void); void f(void) { __attribute__((musttail)) return dgemm_(); }\n"
                                     "void g(void) { dgemm_(); }\n")
    said = compile("-O1", "-c", "tail.c", "-o", "tail.o", "-Rpass=kintsugi", "-Rpass-missed=kintsugi", cwd=tmp_path).stderr
    assert "call site tail.c:g:dgemm_#1 [-Rpass=kintsugi]" in said
    assert "the call of dgemm_ must be a tail call" in said and "[-Rpass-missed=kintsugi]" in said
    assert names(tmp_path / "tail.o") == ["tail.c:g:dgemm_#1"]


def test_a_second_run_finds_nothing_more(tmp_path):
    compile("-O1", "-emit-llvm", "-c", PROGRAMS / "flow.c", "-o", tmp_path / "flow.bc")
    compile("-O1", "-c", tmp_path / "flow.bc", "-o", tmp_path / "flow.o")
    assert names(tmp_path / "flow.o") == FLOW_SITES


@pytest.mark.parametrize("wrapper", ["", "++"])
def test_help_has_an_example(wrapper):
    assert f"example:\n  kintsugi-clang{wrapper} -O2" in run(CLANG + wrapper, "--help").stdout


def test_a_file_without_a_table(tmp_path):
    program = build(tmp_path, ["flow.c"], with_pass=False)
    assert "has no table of call sites" in run(os.environ["TESTED_PROGRAM"], "sites", program).stdout


# ---------------------------------------------------------------- with the drop-in

def test_a_rule_changes_its_site_alone(tmp_path, sites):
    program = build(tmp_path, ["flow.c"], "-O2")
    native, found = sites.run(program, {})
    assert set(found) == set(FLOW_SITES)
    last = "flow.c:multiply_either:cblas_sgemm#2"
    changed, found = sites.run(program, {name: {"policy": "native"} for name in FLOW_SITES} | {last: {"scheme": "fp16"}})
    assert found[last]["emulated_calls"] == {"fp16": 1} and found[last]["source"] == {"file": "flow.c", "line": 0, "callee": "cblas_sgemm"}
    assert all(site["emulated_calls"] == {} for name, site in found.items() if name != last)
    parts = [text.splitlines() for text in (native, changed)]
    assert parts[0][:108] == parts[1][:108] and parts[0][108:144] != parts[1][108:144], "its C is the fourth of five matrices"
    calls = {name: site["calls"] for name, site in found.items()}
    assert calls["flow.c:multiply_powers:cblas_sgemm#1"] == 3


def test_rules_outlast_a_build(tmp_path, sites):
    rules = {name: {"scheme": "fp16"} for name in FLOW_SITES}
    outputs = [sites.run(build(tmp_path, ["flow.c"], level), rules) for level in ("-O0", "-O3")]
    assert outputs[0][0] == outputs[1][0]
    assert all(site["rule"] == {"scheme": "fp16"} and site["native_calls"] == 0 for _, found in outputs for site in found.values())


def test_exceptions_leave_no_site_set(tmp_path, sites):
    for level in ("-O0", "-O2"):
        compile(level, "-c", PROGRAMS / "throws.cpp", "-o", tmp_path / "throws.o")
        compile(level, "-c", PROGRAMS / "plain.cpp", "-o", tmp_path / "plain.o", with_pass=False)
        compile(tmp_path / "throws.o", tmp_path / "plain.o", "-o", tmp_path / "program", BLAS, "-lstdc++")
        stdout, found = sites.run(tmp_path / "program", {})
        assert stdout.split() == ["caught", "0x1p+0", "caught", "0x1p+2"]
        (name,) = found
        assert name.startswith("program:_Z14multiply_plaini@0x") and found[name]["calls"] == 2


def test_tune_program(tmp_path):
    program = tmp_path / "perceptron"
    compile("-std=c++20", "-O1", SOURCE / "lab/apps/perceptron.cpp", "-o", program, BLAS)
    words = [program, 24, 16, 20, "Y.npy"]
    run(os.environ["TESTED_PROGRAM"], "tune-program", "--limit", "1e-3", "--output", "Y.npy", "--cost", "weights", "--levels",
        "native@1,fp16x3@0.45,fp16@0.15", "-o", "sites.json", "--", *words, cwd=tmp_path)
    document = json.loads((tmp_path / "sites.json").read_text())
    layers = {f"perceptron.cpp:{layer}_layer:sgemm_#1" for layer in ("first", "second", "last")}
    assert set(document["sites"]) == layers


@pytest.mark.parametrize("seed", range(3))
def test_damaged_tables_are_refused(tmp_path, seed):
    """`kintsugi sites` reads whatever bytes the section has, and then says what is wrong with them."""
    program = build(tmp_path, ["flow.c"])
    good, generator = program.read_bytes(), random.Random(seed)
    first, last = good.index(b"KSIT"), good.rindex(b"KSIT") + 32
    messages = set()
    for _ in range(60):
        damaged = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(first, last)] = generator.choice([0, 1, 127, 255])
        (tmp_path / "damaged").write_bytes(damaged)
        result = subprocess.run([os.environ["TESTED_PROGRAM"], "sites", "--json", tmp_path / "damaged"], capture_output=True, timeout=60)
        assert result.returncode in (0, 2), result.stderr
        messages.add(result.stderr)
    assert any(b"has no record of this version at byte" in message for message in messages)
