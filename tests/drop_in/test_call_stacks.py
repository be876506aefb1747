"""Sites that are told apart by their callers: names at random trees of calls, in programs and libraries at any address, and their rules."""

import collections
import os
import pathlib
import random
import subprocess

import pytest
from conftest import LIBRARY
from test_sites import write_sites

# A library that wraps BLAS, with the only call of it.
WRAPPER = r"""
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
static float c[4];
void wrapper(void) {
  static const int n = 2;
  static const float one = 1, zero = 0, a[4] = {1.1f, 2.2f, 3.3f, 4.4f};
  sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n);
  __asm__ volatile("" ::: "memory");
}
"""
FRAMES = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"]


def random_tree(generator):
    """For each of the functions main, f1, ... the functions that it calls, in order: later ones or the wrapper."""
    count = generator.randint(3, 7)
    calls = [[generator.choice([*range(i + 1, count), "wrapper"]) for _ in range(generator.randint(1, 3))] for i in range(count)]
    calls[0].append(generator.choice([*range(1, count)]))
    return calls


def source_of(calls):
    name = lambda i: "wrapper" if i == "wrapper" else f"f{i}" if i else "main"
    text = "void wrapper(void);\n" + "".join(f"void f{i}(void);\n" for i in range(1, len(calls)))
    for i, callees in reversed(list(enumerate(calls))):
        body = "".join(f'  {name(callee)}();\n  __asm__ volatile("nop");\n' for callee in callees)
        text += f"__attribute__((noinline)) {'int main(void)' if i == 0 else f'void f{i}(void)'} {{\n{body}{'  return 0;' if i == 0 else ''}\n}}\n"
    return text


def paths(calls, i=0, path=()):
    """Every way to the wrapper: pairs of function and number of the call in it, from main on."""
    for number, callee in enumerate(calls[i]):
        here = (*path, (f"f{i}" if i else "main", number))
        if callee == "wrapper":
            yield here
        else:
            yield from paths(calls, callee, here)


def expected_sites(calls, frames):
    """{functions of a site's frames: (sites of these functions, their calls)}"""
    seen, counts = collections.defaultdict(set), collections.Counter()
    for path in paths(calls):
        nearest = path[::-1][:frames - 1]
        functions = ("wrapper", *(function for function, _ in nearest))
        seen[functions].add(nearest)
        counts[functions] += 1
    return {functions: (len(sites), counts[functions]) for functions, sites in seen.items()}


def build(folder, calls, *flags):
    compiler = os.environ["TESTED_CC"]
    (folder / "wrapper.c").write_text(WRAPPER)
    (folder / "program.c").write_text(source_of(calls))
    rpath = f"-Wl,-rpath,{pathlib.Path(LIBRARY).parent}:{folder}"
    subprocess.run([compiler, *FRAMES, "-shared", "-fPIC", "-o", folder / "libwrapper.so", folder / "wrapper.c", "-Wl,--no-as-needed", LIBRARY,
                    rpath], check=True)
    subprocess.run([compiler, *FRAMES, *flags, "-o", folder / "program", folder / "program.c", f"-L{folder}", "-lwrapper", rpath], check=True)
    return folder / "program"


def sites_of(report):
    found = collections.defaultdict(lambda: (0, 0))
    for site in report["sites"]:
        functions = (site["function"], *(caller["function"] for caller in site["callers"]))
        sites, calls = found[functions]
        found[functions] = (sites + 1, calls + site["calls"])
    return dict(found)


@pytest.mark.parametrize("seed", range(5))
def test_random_trees_of_calls(preloaded, seed):
    """The program lies at another address in every run, as a position-independent one; the other one has a fixed address."""
    generator = random.Random(seed)
    calls = random_tree(generator)
    program = build(preloaded.folder, calls, *(["-no-pie", "-fno-pie"] if seed % 2 else ["-pie", "-fPIE"]))
    for frames in (1, 2, 3, 64):
        sites = write_sites(preloaded, {}, **({"frames": frames} if frames > 1 else {}))
        one, other = (preloaded.report(program, sites=sites) for _ in range(2))
        assert sites_of(one) == expected_sites(calls, frames), frames
        assert [site["site"] for site in one["sites"]] == [site["site"] for site in other["sites"]]
        for site in one["sites"]:
            frames_of_name = [f"{site['module']}:{site['function']}@{site['offset']:#x}",
                              *(f"{caller['module']}:{caller['function']}@{caller['offset']:#x}" for caller in site["callers"])]
            assert site["site"] == " < ".join(frames_of_name)
            assert [caller["ordinal"] for caller in site["callers"]] == list(range(2, len(frames_of_name) + 1))


def test_the_longest_name_that_fits_counts(preloaded):
    """main calls f1 twice and f2, which call the wrapper: a rule for the wrapper, one for it in f1, and one for one way there."""
    program = build(preloaded.folder, [[1, 1, 2], ["wrapper"], ["wrapper"]])
    whole = preloaded.report(program, sites=write_sites(preloaded, {}, frames=64))["sites"]
    in_f1 = [site["site"] for site in whole if site["callers"][0]["function"] == "f1"]
    wrapper, f1, _ = in_f1[0].split(" < ")
    rules = {wrapper: {"scheme": "fp16"}, f"{wrapper} < {f1}": {"scheme": "fp16x3"}, in_f1[1]: {"policy": "native"}}
    # The longest name of a rule has three frames, so that "frames" need not be said.
    ran = {site["site"]: site for site in preloaded.report(program, sites=write_sites(preloaded, rules))["sites"]}
    assert ran.keys() == {site["site"] for site in whole}
    assert ran[in_f1[0]]["emulated_calls"] == {"fp16x3": 1} and ran[in_f1[1]]["native_calls"] == 1
    (in_f2,) = [site for name, site in ran.items() if name not in in_f1]
    assert in_f2["emulated_calls"] == {"fp16": 1} and in_f2["rule"] == {"scheme": "fp16"}


def test_rules_without_a_report(preloaded):
    """Without a report native sites are forwarded early, by the same names."""
    program = build(preloaded.folder, [[1, 2], ["wrapper"], ["wrapper"]])
    names = [site["site"] for site in preloaded.report(program, sites=write_sites(preloaded, {}, frames=64))["sites"]]
    assert preloaded.ok(program, sites=write_sites(preloaded, dict.fromkeys(names, {"policy": "native"}))).stderr == ""
    said = preloaded.ok(program, sites=write_sites(preloaded, {names[0]: {"scheme": "fp16"}})).stderr
    assert said == f"kintsugi: {names[1]} is not in the sites file: its calls are native\n"
