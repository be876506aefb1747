"""Calls from many sites in random order, without a report: native sites are forwarded by their address alone, the others are emulated."""

import random

import pytest
from conftest import BLAS, compile, run

SITES, CALLS = 60, 400

HEAD = """#include <stdio.h>
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
enum { order = 3 };
static const int n = order;
static const float one = 1, zero = 0;
static float a[order * order], c[order * order];
"""
FUNCTION = 'static void call_%d(void) { sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n); *(volatile float*)c += 0; }\n'
MAIN = """static void (*const calls[])(void) = {%s};
static const int turns[] = {%s};
int main(void) {
  for (int i = 0; i < order * order; ++i) a[i] = 1.0f / (i + 3);
  for (unsigned i = 0; i < sizeof turns / sizeof *turns; ++i) {
    calls[turns[i]]();
    float sum = 0;
    for (int j = 0; j < order * order; ++j) sum += c[j];
    printf("%%a\\n", sum);
  }
}
"""


def source(turns):
    functions = "".join(FUNCTION % site for site in range(SITES))
    return HEAD + functions + MAIN % (", ".join(f"call_{site}" for site in range(SITES)), ", ".join(map(str, turns)))


@pytest.mark.parametrize("with_pass", [True, False], ids=["compiled with the pass", "by return address"])
@pytest.mark.parametrize("seed", range(3))
def test_each_call_has_the_rule_of_its_site(tmp_path, sites, seed, with_pass):
    generator = random.Random(seed)
    turns = [*range(SITES), *(generator.randrange(SITES) for _ in range(CALLS))]
    (tmp_path / "many.c").write_text(source(turns))
    compile("-O1", "many.c", "-o", "program", BLAS, cwd=tmp_path, with_pass=with_pass)
    native = run(tmp_path / "program", cwd=tmp_path).stdout.split()
    assert len(set(native)) == 1
    found = {site["function"]: name for name, site in sites.run(tmp_path / "program", {})[1].items()}
    assert set(found) == {f"call_{site}" for site in range(SITES)}
    emulated = {site for site in range(SITES) if generator.random() < 0.3}
    rules = {found[f"call_{site}"]: {"scheme": "fp16"} if site in emulated else {"policy": "native"} for site in range(SITES)}
    result = sites.preloaded.ok(tmp_path / "program", sites=sites.file(rules))
    changed = {turn for turn, value in enumerate(result.stdout.split()) if value != native[0]}
    assert changed == {turn for turn, site in enumerate(turns) if site in emulated} and result.stderr == ""
