"""Loop nests that multiply matrices: which are found, why others are not, and who multiplies."""

import itertools
import json
import os
import re

import numpy
import pytest
from conftest import PROGRAMS, compile, names, run

FOUND = ["in_memory", "in_variable", "sum_in_the_middle", "set_to_zero", "transposed", "every_second"]
SITES = sorted(f"loops.c:{function}:loop#1" for function in FOUND)


def build(folder, level, **keywords):
    compile(level, PROGRAMS / "loops.c", "-o", folder / "program", **keywords)
    return folder / "program"


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_nests_are_found_and_results_stay(tmp_path, sites, level):
    plain = run(build(tmp_path, level, with_pass=False)).stdout
    program = build(tmp_path, level)
    assert names(program) == ([] if level == "-O0" else SITES)
    assert run(program).stdout == plain
    assert sites.preloaded.ok(program, sites=sites.file({})).stdout == plain, "without rules the loops run"
    others = sites.preloaded.ok(program, sites=sites.file({SITES[0]: {"policy": "native"}}))
    assert others.stdout == plain and others.stderr == "", "nothing is said of loops without a rule"


@pytest.mark.parametrize("name", SITES)
def test_rules_multiply_in_place_of_loops(tmp_path, sites, name):
    """Empty and overlapping products, and those of a C without contiguous rows or columns, still run as loops."""
    program = build(tmp_path, "-O2")
    plain = run(program).stdout.splitlines()
    rules = {name: {"scheme": "fp16x3" if "variable" in name else "ozaki2"}}
    if "every_second" in name:
        assert sites.preloaded.ok(program, sites=sites.file(rules)).stdout.splitlines() == plain
        return
    stdout, found = sites.run(program, rules)
    assert [line.split()[::2] for line in stdout.splitlines()] == [line.split()[::2] for line in plain], "all but the last bits"
    assert found[name]["source"]["callee"] == "loop" and found[name]["calls"] == 1 and found[name]["native_calls"] == 0
    others = {site: one for site, one in found.items() if site != name}
    assert others and all(one["native_calls"] == one["calls"] and one["seconds"] > 0 for one in others.values()), "loops that ran"


def test_loops_are_tuned(tmp_path, sites):
    """Profiled by the program's own loops, whose results are the reference; only a loose limit lowers them."""
    program = build(tmp_path, "-O2")
    for limit, expected in ((1e-12, "native"), (1, "fp16")):
        words = ["tune-program", "--limit", limit, "--levels", "native@1,ozaki2:moduli=6@0.5,fp16@0.1", "--cost", "weights", "--min-share", 0,
                 "-o", tmp_path / f"sites-{expected}.json", "--json", "--", program]
        document = json.loads(run(os.environ["TESTED_PROGRAM"], *words, cwd=tmp_path).stdout)
        levels = {site["site"]: site["level"] for site in document["sites"]}
        assert set(levels) == {site for site in SITES if "every_second" not in site}, "all that BLAS could multiply"
        assert levels["loops.c:in_variable:loop#1"] == expected
        assert all(site["profiled_seconds"] > 0 and site["multiplications"] > 0 for site in document["sites"])
        assert all(0 < site["native_call_error"]["relative"] < 1e-6 for site in document["sites"]), "loops have errors of their own"
        (error,) = [site["call_error"]["relative"] for site in document["sites"] if "in_variable" in site["site"]]
        assert (error > 1e-5) == (expected == "fp16")


def loop(body, header="size_t k = 0; k < n; ++k", before="", after=""):
    return ("#include <stddef.h>\nvoid g(void);\nvoid f(size_t n, const double* a, const double* b, double* c, volatile double* v) {\n"
            "  for (size_t i = 0; i < n; ++i)\n    for (size_t j = 0; j < n; ++j) {\n"
            f"      {before}\n      for ({header}) {body}\n      {after}\n    }}\n}}\n")


PRODUCT = "c[i * n + j] += a[i * n + k] * b[k * n + j];"


@pytest.mark.parametrize("code, reason", [
    (loop("if (a[i * n + k] != 0) " + PRODUCT), "there is a condition in them"),
    (loop(PRODUCT, header="size_t k = 0; k < i; ++k"), "numbers of iterations are not known before them"),
    (loop("{ g(); " + PRODUCT + " }"), "they call a function"),
    (loop("{ *v = 1; " + PRODUCT + " }"), "volatile"),
    (loop("c[i * n + j] -= a[i * n + k] * b[k * n + j];"), "a factor is no element of a matrix"),
    (loop("c[i * n + j] += 2 * (a[i * n + k] * b[k * n + j]);"), "a factor is no element of a matrix"),
    (loop("c[i * n + j] *= a[i * n + k] * b[k * n + j];"), "no sum of products"),
    (loop("c[i * n + j] += a[i * i + k] * b[k * n + j];"), "does not grow by the same"),
    (loop("c[i * n + j] += a[i * n + j] * b[k * n + j];"), "not those of a row, a column and an element"),
    (loop(PRODUCT, after="c[i * n + j] = 0;"), "they store twice"),
    (loop(PRODUCT, before="c[i * n + j] = 1;"), "they store twice"),
    (loop("{ if (a[k] == 5) break; " + PRODUCT + " }"), "does not end at its head alone"),
], ids=range(12))
def test_remarks_say_why_a_nest_is_no_product(tmp_path, code, reason):
    (tmp_path / "nest.c").write_text(code)
    said = compile("-O2", "-c", "nest.c", "-o", "nest.o", "-Rpass-missed=kintsugi", cwd=tmp_path).stderr
    assert names(tmp_path / "nest.o") == []
    (line,) = re.findall(r"the loops are no product of matrices that can be proved: .*", said)
    assert reason in line


def test_the_pattern_of_those_remarks_is_a_product(tmp_path):
    (tmp_path / "nest.c").write_text(loop(PRODUCT))
    compile("-O2", "-c", "nest.c", "-o", "nest.o", cwd=tmp_path)
    assert names(tmp_path / "nest.o") == ["nest.c:f:loop#1"]


# ---------------------------------------------------------------- all orders of loops, storages and factors

def variants():
    """Functions of c[M x N] += a[M x K] b[K x N]: orders of the loops, which matrices are stored transposed, order of the factors."""
    for order in itertools.permutations("ijk"):
        for a_t, b_t, c_t, swapped in itertools.product((False, True), repeat=4):
            a, b, c = (f"a[{'k * lda + i' if a_t else 'i * lda + k'}]", f"b[{'j * ldb + k' if b_t else 'k * ldb + j'}]",
                       f"c[{'j * ldc + i' if c_t else 'i * ldc + j'}]")
            loops = " ".join(f"for (long {x} = 0; {x} < {'mnk'['ijk'.index(x)]}_; ++{x})" for x in order)
            name = f"f_{''.join(order)}_{a_t:d}{b_t:d}{c_t:d}{swapped:d}"
            yield name, (f"static void {name}(long m_, long n_, long k_, const double* a, long lda, const double* b, long ldb, double* c, long ldc) "
                         f"{{ {loops} {c} += {b + ' * ' + a if swapped else a + ' * ' + b}; }}"), (a_t, b_t, c_t)


def test_all_orders_of_loops(tmp_path, sites):
    """Each function's C is a small integer matrix, which every order of summation gives exactly, and the drop-in too."""
    functions = list(variants())
    m, n, k, ld = 5, 6, 7, 9
    calls = [f"  fill(); {name}({m}, {n}, {k}, a, {ld}, b, {ld}, c, {ld}); show(\"{name}\");" for name, _, _ in functions]
    (tmp_path / "orders.c").write_text(
        "#include <stdio.h>\nstatic double a[81], b[81], c[81];\n"
        "static void fill(void) { for (int i = 0; i < 81; ++i) a[i] = i * 7 % 11 - 5, b[i] = i * 5 % 13 - 6, c[i] = i % 3; }\n"
        "static void show(const char* name) { printf(\"%s\", name); for (int i = 0; i < 81; ++i) printf(\" %g\", c[i]); puts(\"\"); }\n"
        + "\n".join(code for _, code, _ in functions) + "\nint main(void) {\n" + "\n".join(calls) + "\n}\n")
    compile("-O1", "orders.c", "-o", "orders", cwd=tmp_path)
    assert names(tmp_path / "orders") == sorted(f"orders.c:{name}:loop#1" for name, _, _ in functions)
    plain = run(tmp_path / "orders").stdout
    stdout, found = sites.run(tmp_path / "orders", {name: {"accuracy": "exact", "policy": "emulate"} for name in names(tmp_path / "orders")})
    assert stdout == plain
    assert len(found) == len(functions) == 96 and all(site["calls"] == 1 and site["native_calls"] == 0 for site in found.values())
    stored = numpy.arange(81).reshape(9, 9)
    fills = [(stored * 7 % 11 - 5), (stored * 5 % 13 - 6), stored % 3]
    for line, (name, _, transposed) in zip(plain.splitlines(), functions):
        a, b, c = (matrix.T if is_transposed else matrix for matrix, is_transposed in zip(fills, transposed))
        expected = c.copy()
        expected[:m, :n] += a[:m, :k] @ b[:k, :n]
        result = numpy.array(line.split()[1:], dtype=float).reshape(9, 9)
        assert numpy.array_equal(result.T if transposed[2] else result, expected), name
