"""Loop nests that multiply matrices: which are found, why others are not, and who multiplies."""

import re

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
    assert list(found) == [name] and found[name]["source"]["callee"] == "loop"
    assert found[name]["calls"] == 1 and found[name]["native_calls"] == 0


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
