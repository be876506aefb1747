"""kintsugi-clang --kintsugi-replace: calls of BLAS become calls of libkintsugi with the level of a sites file, without a drop-in."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from conftest import BLAS, CLANG, PROGRAMS, SOURCE, compile, names, run, table
from drop_in.conftest import Preloaded

LIBRARY = pathlib.Path(os.environ["TESTED_LIBRARY"])
KINTSUGI = [f"-L{LIBRARY.parent}", "-lkintsugi", f"-Wl,-rpath,{LIBRARY.parent}"]
SCHEMES = {"s": "fp16x3", "d": "ozaki2:moduli=6", "c": "fp16x3", "z": "ozaki2:moduli=9"}
CALLEES = {letter: [f"{letter}gemm_", f"{letter}gemm_64_", f"cblas_{letter}gemm", f"cblas_{letter}gemm_64"] for letter in SCHEMES}
EVERY_CALL = {f"replaced.c:call_{callee}:{callee}#1": {"scheme": SCHEMES[letter]} for letter, callees in CALLEES.items() for callee in callees}
NATIVE = {"policy": "native"}
GEMM = "void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*, " \
       "const double*, const int*, const double*, double*, const int*);\n"
CALL = 'dgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n)'


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith("KINTSUGI_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("KINTSUGI_CONFIG", "")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


def write_rules(folder, rules):
    file = folder / "sites.json"
    file.write_text(json.dumps({"format": "kintsugi.sites", "format_version": 1, "sites": rules}))
    return file


def replace(folder, rules, *words, **keywords):
    return compile(f"--kintsugi-replace={write_rules(folder, rules)}", *words, **keywords)


def build(folder, rules, sources, *flags, name="program"):
    """Compiles each source to an object of its own, and links them."""
    objects = []
    for source in sources:
        objects.append(folder / f"{name}.{source}.o")
        replace(folder, rules, *flags, "-c", PROGRAMS / source, "-o", objects[-1])
    compile(*flags, *objects, "-o", folder / name, BLAS, "-lstdc++", *KINTSUGI)
    return folder / name


def build_calls(folder, rules, *flags):
    """programs/replaced.c with a BLAS that counts its calls, linked statically: no preload could reach it."""
    compile("-w", "-c", PROGRAMS / "blas_stubs.c", "-o", folder / "stubs.o", with_pass=False)
    run("ar", "rcs", folder / "libstubs.a", folder / "stubs.o")
    replace(folder, rules, *flags, "-I", SOURCE / "include", PROGRAMS / "replaced.c", "-o", folder / "replaced", f"-L{folder}", "-lstubs",
            *KINTSUGI)
    return folder / "replaced"


def check(file, rules_file):
    return subprocess.run([os.environ["TESTED_PROGRAM"], "sites", file, "--check", rules_file], capture_output=True, text=True, timeout=60)


def compiled(file):
    return {site["site"]: site.get("compiled") for site in table(file)}


# ---------------------------------------------------------------- products

@pytest.mark.parametrize("flags", [["-O0"], ["-O1"], ["-O3"], ["-O2", "-flto"], ["-O2", "-flto=thin"], ["-O0", "-fno-pic", "-no-pie"]],
                         ids=" ".join)
def test_random_products_have_the_bits_of_the_scheme(tmp_path, flags):
    """Operands, orders, leading dimensions and scalars of all kinds; C with its padding is that of kintsugi_gemm()."""
    program = build_calls(tmp_path, EVERY_CALL, *flags)
    assert compiled(program) == EVERY_CALL
    for seed in (1, 2):
        result = run(program, seed, 400, *SCHEMES.values())
        assert (result.stdout, result.stderr) == ("0 differences, 0 calls of BLAS\n", "")
    other = run(program, 1, 400, "fp16", "ozaki2:moduli=5", "fp16", "ozaki2:moduli=8").stdout
    assert int(other.split()[0]) > 200, "the comparison sees another scheme"


def test_policies_and_accuracies(tmp_path, monkeypatch):
    """The policy auto leaves small products to BLAS, emulate never; a rule is nearer than the environment."""
    exact = build_calls(tmp_path, {name: {"accuracy": "exact"} for name in EVERY_CALL})
    assert run(exact, 3, 80, *["superaccumulator"] * 4).stdout == "0 differences, 0 calls of BLAS\n"
    emulated = build_calls(tmp_path, {name: {"policy": "emulate"} for name in EVERY_CALL})
    monkeypatch.setenv("KINTSUGI_POLICY", "native")
    assert run(emulated, 3, 80, *SCHEMES.values()).stdout.endswith(", 0 calls of BLAS\n")
    automatic = build_calls(tmp_path, {name: {"policy": "auto"} for name in EVERY_CALL})
    result = run(automatic, 3, 80, *SCHEMES.values())
    assert re.search(r", [1-9]\d* calls of BLAS\n", result.stdout) and result.stderr == ""


def test_wrong_arguments_reach_blas(tmp_path):
    result = run(build_calls(tmp_path, EVERY_CALL, "-O2"), "wrong")
    assert (result.stdout, result.stderr) == ("112 calls of BLAS\n", "")


def test_xerbla_of_the_program(tmp_path):
    """BLAS reports a wrong argument to the program's own xerbla_, as without the pass."""
    (tmp_path / "wrong.c").write_text(GEMM + """#include <stdio.h>
void xerbla_(const char* routine, const int* number, long length) { printf("%.5s %d\\n", routine, *number); }
int main(void) { const int n = -1; const double one = 1, zero = 0, a[1] = {1}; double c[1]; """ + CALL + "; }")
    for rules in ({}, {"wrong.c:main:dgemm_#1": {"scheme": "ozaki2"}}):
        replace(tmp_path, rules, "wrong.c", "-o", "wrong", BLAS, *KINTSUGI, cwd=tmp_path)
        result = run(tmp_path / "wrong")
        assert (result.stdout, result.stderr) == ("DGEMM 3\n", "")


@pytest.mark.parametrize("rule, reason", [({"scheme": "fp16x3"}, "fp16x3"), ({"scheme": "ozaki9"}, 'there is no scheme "ozaki9"')])
def test_a_level_that_cannot_be_had_is_native(tmp_path, rule, reason):
    """With one line a site."""
    (tmp_path / "fails.c").write_text(GEMM + """#include <stdio.h>
static void one_site(const double* a, double* c) { const int n = 3; const double one = 1, zero = 0; """ + CALL + """; }
int main(void) {
  double a[9], c[9]; for (int i = 0; i < 9; ++i) a[i] = 1.0 / (i + 3);
  for (int i = 0; i < 3; ++i) one_site(a, c);
  for (int i = 0; i < 9; ++i) printf("%a\\n", c[i]);
}""")
    results = []
    for rules in ({}, {"fails.c:one_site:dgemm_#1": rule}):
        replace(tmp_path, rules, "-O1", "fails.c", "-o", "fails", BLAS, *KINTSUGI, cwd=tmp_path)
        results.append(run(tmp_path / "fails"))
    assert results[0].stdout == results[1].stdout and results[0].stderr == ""
    assert results[1].stderr.startswith("kintsugi: call site fails.c:one_site:dgemm_#1 is native: ") and reason in results[1].stderr
    assert results[1].stderr.count("\n") == 1


def test_results_of_blas_functions_that_have_some(tmp_path):
    """f2c declares subroutines with a result, 0."""
    (tmp_path / "f2c.c").write_text(GEMM.replace("void", "int", 1) + """#include <stdio.h>
int main(void) { const int n = 1; const double one = 1, zero = 0, a[1] = {3}; double c[1]; int result = """ + CALL + """;
printf("%d %g\\n", result, c[0]); }""")
    for level in ("-O0", "-O2"):
        replace(tmp_path, {"f2c.c:main:dgemm_#1": {"accuracy": "exact"}}, level, "f2c.c", "-o", "f2c", BLAS, *KINTSUGI, cwd=tmp_path)
        assert run(tmp_path / "f2c").stdout == "0 9\n"


# ---------------------------------------------------------------- programs

@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O3", "-g"], ["-O2", "-flto"], ["-O1", "-flto=thin"],
                                   ["-O2", "-ffunction-sections", "-Wl,--gc-sections"]], ids=" ".join)
def test_several_files_in_cpp_compute_as_under_the_drop_in(tmp_path, sites, flags):
    annotated = [tmp_path / "first.o", tmp_path / "second.o"]
    for target in annotated:
        compile("-O1", "-c", PROGRAMS / f"{target.stem}.cpp", "-o", target)
    compile(*annotated, "-o", tmp_path / "annotated", BLAS, "-lstdc++")
    rules = {name: {"scheme": "ozaki2:moduli=3"} for name in names(tmp_path / "annotated")}
    expected = sites.run(tmp_path / "annotated", rules)[0]
    program = build(tmp_path, rules, ["first.cpp", "second.cpp"], *flags)
    assert run(program).stdout == expected != run(tmp_path / "annotated").stdout
    assert compiled(program) == rules
    assert check(program, write_rules(tmp_path, rules)).returncode == 0


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_exceptions_of_the_original_call(tmp_path, level):
    """The program's own cblas_dgemm throws, and runs since the scheme is for FP32."""
    outputs = []
    for rule in (NATIVE, {"scheme": "fp16x3"}):
        rules = {f"throws.cpp:{function}:cblas_dgemm#1": rule for function in ("_ZL4callv", "_ZL6caughtv")}
        replace(tmp_path, rules, level, "-c", PROGRAMS / "throws.cpp", "-o", tmp_path / "throws.o")
        compile(level, "-c", PROGRAMS / "plain.cpp", "-o", tmp_path / "plain.o", with_pass=False)
        compile(tmp_path / "throws.o", tmp_path / "plain.o", "-o", tmp_path / "program", BLAS, "-lstdc++", *KINTSUGI)
        outputs.append(run(tmp_path / "program"))
    assert outputs[0].stdout == outputs[1].stdout and outputs[0].stdout.split()[::2] == ["caught", "caught"]
    assert outputs[0].stderr == "" and outputs[1].stderr.count("is native: ") == 2


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_native_sites_are_the_plain_call(tmp_path, level):
    """The machine code of a file whose sites are native, or not named, is that of clang, byte by byte."""
    code = []
    for file, with_pass in (("plain", False), ("native", True)):
        word = [f"--kintsugi-replace={write_rules(tmp_path, {'flow.c:multiply_chain:cblas_sgemm#1': NATIVE})}"] if with_pass else []
        compile(level, *word, "-c", PROGRAMS / "flow.c", "-o", tmp_path / f"{file}.o", with_pass=with_pass)
        run("objcopy", "-O", "binary", "--only-section=.text", tmp_path / f"{file}.o", tmp_path / file)
        code.append((tmp_path / file).read_bytes())
    assert code[0] == code[1] != b""
    assert set(map(str, compiled(tmp_path / "native.o").values())) == {str(NATIVE)}
    assert "kintsugi_" not in run("nm", tmp_path / "native.o").stdout.replace("kintsugi_site", "")


def test_files_of_one_name_have_rules_by_hash(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "util.c").write_text(GEMM + f"void {folder}(int n, double* a, double* c) {{ double one = 1, zero = 0; {CALL}; }}")
    found = {}
    for rules in ({}, None):
        rules = {name: {"accuracy": "exact"} for name in found if ":one:" in name} if rules is None else rules
        for folder in ("one", "two"):
            replace(tmp_path, rules, "-Werror", "-c", f"{folder}/util.c", "-o", f"{folder}.o", cwd=tmp_path)
        run("ld", "-r", "one.o", "two.o", "-o", "both.o", cwd=tmp_path)
        found = compiled(tmp_path / "both.o")
    assert sorted(value == {"accuracy": "exact"} for value in found.values()) == [False, True]
    assert all(("~" in name) and (value == {"accuracy": "exact"}) == (":one:" in name) for name, value in found.items())


def test_a_tuned_program_is_compiled_as_it_was_tuned(tmp_path):
    """kintsugi tune-program's file for the program with names is that for the compiler; the result has the same bits."""
    source = SOURCE / "lab/apps/perceptron.cpp"
    compile("-std=c++20", "-O1", source, "-o", tmp_path / "named", BLAS)
    run(os.environ["TESTED_PROGRAM"], "tune-program", "--limit", "1e-3", "--output", "Y.npy", "--cost", "weights", "--levels",
        "native@1,fp16x3@0.45,fp16@0.15", "-o", "sites.json", "--", "./named", 24, 16, 20, "Y.npy", cwd=tmp_path)
    under = Preloaded(tmp_path)
    under.ok(tmp_path / "named", 24, 16, 20, "drop-in.npy", sites="sites.json")
    compile("--kintsugi-replace=sites.json", "-std=c++20", "-O2", source, "-o", "compiled", BLAS, *KINTSUGI, cwd=tmp_path)
    run(tmp_path / "compiled", 24, 16, 20, "compiled.npy", cwd=tmp_path)
    assert (tmp_path / "compiled.npy").read_bytes() == (tmp_path / "drop-in.npy").read_bytes()
    assert check(tmp_path / "compiled", tmp_path / "sites.json").returncode == 0
    assert check(tmp_path / "named", tmp_path / "sites.json").returncode == 1


# ---------------------------------------------------------------- what is said

def test_rules_that_no_site_has(tmp_path):
    """The compiler names those of its file, kintsugi sites those of all files."""
    (tmp_path / "some.c").write_text(GEMM + f"void f(int n, double* a, double* c) {{ double one = 1, zero = 0; {CALL}; }}")
    rules = {"some.c:f:dgemm_#1": {"accuracy": "exact"}, "some.c:f:dgemm_#2": {"accuracy": "exact"}, "some.c:g:dgemm_#1": NATIVE,
             "other.c:f:dgemm_#1": {"scheme": "ozaki2"}}
    said = replace(tmp_path, rules, "-c", "some.c", "-o", "some.o", cwd=tmp_path).stderr
    assert said.count("warning: kintsugi:") == 1 and "accuracy exact for some.c:f:dgemm_#2, which this source file does not contain" in said
    result = check(tmp_path / "some.o", tmp_path / "sites.json")
    assert result.returncode == 1 and len(result.stdout.splitlines()) == 2 and "differences: 2" in result.stderr
    assert "other.c:f:dgemm_#1: the program has no such call site" in result.stdout
    for scheme, reason in (("fp61", "fp61"), ("fp16", "does not take fp64 operands")):
        replace(tmp_path, {"some.c:f:dgemm_#1": {"scheme": scheme}}, "-c", "some.c", "-o", "wrong.o", cwd=tmp_path)
        refused = check(tmp_path / "wrong.o", tmp_path / "sites.json")
        assert refused.returncode == 1 and f"some.c:f:dgemm_#1 cannot be {scheme}: " in refused.stdout and reason in refused.stdout
    other = write_rules(tmp_path, {"some.c:f:dgemm_#1": {"scheme": "ozaki2"}})
    assert "some.c:f:dgemm_#1 is compiled to accuracy exact, and the file has ozaki2" in check(tmp_path / "some.o", other).stdout


@pytest.mark.parametrize("source, rule, reason", [
    ("void cublasSgemm_v2(); void f(void) { cublasSgemm_v2(1, 2, 3); }", "cublasSgemm_v2", "calls of cuBLAS are not replaced"),
    ("void dgemm_(void); void f(void) { __attribute__((musttail)) return dgemm_(); }", "dgemm_", "the call must be a tail call"),
    ("void dgemm_(); void f(void) { dgemm_(1, 2); }", "dgemm_", "the call has too few arguments"),
    ("void cblas_sgemm(); void f(float* a) { cblas_sgemm(102, 111, 111, 1, 1, 1, 1.0, a, 1, a, 1, 0.0, a, 1); }", "cblas_sgemm",
     "an argument has another type than BLAS's"),
    ("void f(int n, double (*a)[9], double (*b)[9], double (*c)[9]) { for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) "
     "{ double s = 0; for (int k = 0; k < n; ++k) s += a[i][k] * b[k][j]; c[i][j] = s; } }", "loop", "loops are not replaced")],
    ids=["cublas", "musttail", "few", "types", "loop"])
def test_calls_that_stay_native(tmp_path, source, rule, reason):
    (tmp_path / "stays.c").write_text(source)
    name = f"stays.c:f:{rule}#1"
    said = replace(tmp_path, {name: {"scheme": "bf16x6"}}, "-w", "-Wbackend-plugin", "-O1", "-c", "stays.c", "-o", "stays.o", cwd=tmp_path)
    assert "kintsugi_replace_gemm" not in run("nm", tmp_path / "stays.o").stdout
    assert compiled(tmp_path / "stays.o") == {name: None if rule.startswith("cublas") else NATIVE}
    assert check(tmp_path / "stays.o", tmp_path / "sites.json").returncode == 1
    said = subprocess.run([CLANG, f"--kintsugi-replace={tmp_path}/sites.json", "-O1", "-c", "stays.c", "-o", "stays.o"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60).stderr
    assert f"{name} stays native: {reason}" in said


@pytest.mark.parametrize("text, reason", [
    ("{", "is no JSON"), ("[]", "format is not kintsugi.sites"), ('{"format": "kintsugi.sites"}', "format_version is not 1"),
    ('{"format": "kintsugi.sites", "format_version": 1}', "sites is no object"),
    ({"a.c:f:dgemm_#1": []}, "is no object"), ({"a.c:f:dgemm_#1": {"schema": "fp16"}}, "schema is no member"),
    ({"a.c:f:dgemm_#1": {"scheme": ""}}, "scheme is no text"), ({"a.c:f:dgemm_#1": {"accuracy": "good"}}, 'accuracy = "good" is not accepted'),
    ({"a.c:f:dgemm_#1": {"scheme": "fp16", "policy": "auto"}}, "a scheme takes no policy"),
    ({"a:f@0x10": {"scheme": "fp16"}}, "is the name of a return address"),
    ({"a.c:f:dgemm_#1 < a:main@0x10": {"scheme": "fp16"}}, "names callers, which only a running program has")], ids=range(11))
def test_malformed_files(tmp_path, text, reason):
    file = write_rules(tmp_path, text)
    if isinstance(text, str):
        file.write_text(text)
    (tmp_path / "empty.c").write_text("int x;")
    result = subprocess.run([CLANG, f"--kintsugi-replace={file}", "-c", "empty.c", "-o", "empty.o"], cwd=tmp_path, capture_output=True,
                            text=True, timeout=60)
    assert result.returncode == 1 and re.search(rf'error: kintsugi: ".*sites.json": .*{re.escape(reason)}', result.stderr), result.stderr
    assert not (tmp_path / "empty.o").exists()


def test_the_sites_file_is_a_dependency(tmp_path):
    (tmp_path / "empty.c").write_text("int x;")
    replace(tmp_path, {}, "-MD", "-c", "empty.c", "-o", "empty.o", cwd=tmp_path)
    assert "sites.json" in (tmp_path / "empty.d").read_text()
    missing = subprocess.run([CLANG, "-c", "empty.c", "-o", "empty.o"], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                             env=os.environ | {"KINTSUGI_CLANG_REPLACE": "missing.json"})
    empty = subprocess.run([CLANG, "--kintsugi-replace=", "-c", "empty.c"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert empty.returncode == 2 and "--kintsugi-replace= names no sites file" in empty.stderr
    assert missing.returncode == 1 and '"missing.json": cannot be read: No such file' in missing.stderr


def test_records_of_release_0_2_are_read(tmp_path):
    """They have no levels."""
    compile("-c", PROGRAMS / "flow.c", "-o", tmp_path / "flow.o")
    expected = table(tmp_path / "flow.o")
    content = (tmp_path / "flow.o").read_bytes()
    (tmp_path / "flow.o").write_bytes(content.replace(b"KSIT\3", b"KSIT\2"))
    assert table(tmp_path / "flow.o") == expected and len(expected) == 6
