"""Programs of several files in C and C++, at every level, with and without LTO: sites, bits, debug lines, and which result feeds which call.

The pass sees one file at a time, so the report's pointers connect sites of different files.
"""

import collections
import json
import os
import random
import shutil

import pytest
from conftest import BLAS, compile, names, run, table

FILES, SITES, MATRICES, CALLS = 3, 6, 5, 40

HEAD = """#ifdef __cplusplus
extern "C"
#endif
void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
"""
FUNCTION = """
void site_%(site)d(const double* a, const double* b, double beta, double* c) {
  cblas_dgemm(102, 111, 111, 3, 3, 3, 0.5, a, 3, b, 3, beta, c, 3);  /* site %(site)d */
}
"""
MAIN = """#include <stdio.h>
#include <stdlib.h>
%(declarations)s
static void (*const sites[])(const double*, const double*, double, double*) = {%(sites)s};
static const int calls[][5] = {%(calls)s};
int main(void) {
  double* matrices[%(matrices)d];
  for (int i = 0; i < %(matrices)d; ++i) {
    matrices[i] = (double*)malloc(9 * sizeof(double));
    for (int j = 0; j < 9; ++j) matrices[i][j] = 1.0 / (i + 2 * j + 1);
  }
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; ++i)
    sites[calls[i][0]](matrices[calls[i][1]], matrices[calls[i][2]], calls[i][3], matrices[calls[i][4]]);
  for (int i = 0; i < %(matrices)d; ++i)
    for (int j = 0; j < 9; ++j) printf("%%a\\n", matrices[i][j]);
}
"""
BUILDS = [("c", "-O0", None), ("c", "-O1", "-flto"), ("c", "-O2", "-flto=thin"), ("c", "-O3", None), ("c", "-O2", "-flto"),
          ("cpp", "-O0", "-flto"), ("cpp", "-O1", None), ("cpp", "-O2", "-flto"), ("cpp", "-O3", "-flto=thin")]


def random_calls(generator):
    """(site, a, b, beta, c) with every site at least once, C beside A and B."""
    calls = []
    for site in [*range(SITES), *(generator.randrange(SITES) for _ in range(CALLS))]:
        a, b, c = generator.randrange(MATRICES), generator.randrange(MATRICES), generator.randrange(MATRICES)
        while c in (a, b):
            c = generator.randrange(MATRICES)
        calls.append((site, a, b, generator.randrange(2), c))
    return calls


def expected_inputs(calls):
    """{(reading site, site whose result it reads): calls}"""
    found, writers = collections.Counter(), {}
    for site, a, b, beta, c in calls:
        found.update((site, feeding) for feeding in {writers[x] for x in (a, b, *([c] if beta else [])) if x in writers})
        writers[c] = site
    return dict(found)


class Program:
    def __init__(self, folder, language, calls):
        self.folder, self.language = folder, language
        self.place = {}
        for number in range(FILES):
            own = range(number, SITES, FILES)
            self.place |= {site: f"part_{number}.{language}" for site in own}
            (folder / f"part_{number}.{language}").write_text(HEAD + "".join(FUNCTION % {"site": site} for site in own))
        declarations = "".join(f"void site_{site}(const double*, const double*, double, double*);\n" for site in range(SITES))
        (folder / f"main.{language}").write_text(MAIN % {
            "declarations": declarations, "sites": ", ".join(f"site_{site}" for site in range(SITES)), "matrices": MATRICES,
            "calls": ", ".join("{%d, %d, %d, %d, %d}" % call for call in calls)})

    def build(self, name, *flags, **keywords):
        """Compiles each file to an object of its own, and links them."""
        objects = []
        for stem in ("main", *(f"part_{number}" for number in range(FILES))):
            objects.append(f"{name}.{stem}.o")
            compile(*flags, "-c", f"{stem}.{self.language}", "-o", objects[-1], cwd=self.folder, **keywords)
        compile(*flags, *objects, "-o", name, BLAS, "-lstdc++", cwd=self.folder, **keywords)
        return self.folder / name

    def name_of(self, site):
        arguments = "PKdS0_dPd" if self.language == "cpp" else ""
        function = f"_Z6site_{site}{arguments}" if arguments else f"site_{site}"
        return f"{self.place[site]}:{function}:cblas_dgemm#1"

    def line_of(self, site):
        lines = (self.folder / self.place[site]).read_text().splitlines()
        return 1 + next(number for number, line in enumerate(lines) if f"/* site {site} */" in line)


def number_of(name):
    return int(name.split("site_")[1][0])


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: " ".join(filter(None, build)))
def test_sites_bits_lines_and_flow(tmp_path, sites, build):
    language, level, lto = build
    flags = [level, "-g", *([lto] if lto else [])]
    calls = random_calls(random.Random(" ".join(flags) + language))
    program = Program(tmp_path, language, calls)
    passed, plain = program.build("passed", *flags), program.build("plain", *flags, with_pass=False)
    assert names(passed) == sorted(program.name_of(site) for site in range(SITES)) and names(plain) == []
    assert run(passed).stdout == run(plain).stdout
    for row in table(passed):
        assert row["line"] == program.line_of(number_of(row["site"])) and row["inputs"] == [], "no file sees the others' calls"
    if dumper := shutil.which("llvm-dwarfdump-14"):
        assert "No errors" in run(dumper, "--verify", passed).stdout
    stdout, found = sites.run(passed, {})
    assert stdout == run(plain).stdout
    assert {(number_of(name), number_of(edge["site"])): edge["calls"] for name, site in found.items()
            for edge in site["inputs"]} == expected_inputs(calls)


def test_tuner_reads_the_flow(tmp_path):
    calls = random_calls(random.Random(5))
    program = Program(tmp_path, "c", calls)
    words = ["tune-program", "--limit", 1, "--levels", "native@1,exact@2", "--cost", "weights", "--min-share", 0, "-o", "sites.json", "--json",
             "--", program.build("program", "-O2", "-flto")]
    document = json.loads(run(os.environ["TESTED_PROGRAM"], *words, cwd=tmp_path).stdout)
    assert {(number_of(site["site"]), number_of(edge["site"])): edge["calls"] for site in document["sites"]
            for edge in site["inputs"]} == expected_inputs(calls)
