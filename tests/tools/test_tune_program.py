"""kintsugi tune-program: errors, costs, the search, its files, and that an interrupted one goes on."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import jsonschema
import numpy
import pytest
from conftest import PROGRAM, schema
from test_json import accept, closed

APPS = pathlib.Path(os.environ["TESTED_BUILD"]) / "apps"
# Weights that have the order of the schemes' rates on a matrix unit; costs in them do not depend on the clock.
WEIGHTS = ["--cost", "weights", "--levels", "native@1,fp16x3@0.45,tf32@0.3,fp16@0.15"]
PERCEPTRON = [APPS / "perceptron", 48, 40, 56, "Y.npy"]
CHOLESKY = [APPS / "blocked_cholesky", 96, 24, "L.npy"]

pytestmark = pytest.mark.skipif(
    os.environ.get("TESTED_SANITIZED") == "1" or not (APPS / "perceptron").exists(),
    reason="needs the programs of apps/, and a preload before which no sanitizer's run-time has to be loaded")


def tune(program, limit, *flags, words=PERCEPTRON, weights=WEIGHTS):
    document = program.ok("tune-program", "--limit", limit, *weights, *flags, "--json", "--", *words).json()
    accept(document, "tune-program")
    return document


def run_with(program, words, rules, **variables):
    """Runs a program under the drop-in with a sites file."""
    path = program.folder / "own-sites.json"
    path.write_text(json.dumps({"format": "kintsugi.sites", "format_version": 1, "sites": rules}))
    return program("run", "--blas", "--", *words, environment={"KINTSUGI_SITES": str(path), **variables})


# ---------------------------------------------------------------- files

def test_what_it_writes(program):
    document = tune(program, 1e-5, "--output", "Y.npy", "-o", "tuned.json", "--validate", 2)
    assert [file for file in program.files() if file.startswith("tuned")] == [
        "tuned.json", "tuned.report.html", "tuned.report.json", "tuned.state.json"]
    configuration = json.loads((program.folder / "tuned.json").read_text())
    jsonschema.Draft7Validator(closed(schema("sites"))).validate(configuration)
    assert set(configuration["sites"]) == {site["site"] for site in document["sites"]}
    assert configuration["tuned"]["held"] and configuration["tuned"]["limit"] == 1e-5
    assert json.loads((program.folder / "tuned.report.json").read_text()) == document
    text = (program.folder / "tuned.report.html").read_text()
    ElementTree.fromstring(text.replace("<!DOCTYPE html>", ""))
    assert text.count("<svg") == 3 and "lower second_layer" in text


def test_the_configuration_is_what_was_measured(program):
    document = tune(program, 1e-5, "--output", "Y.npy")
    tuned = program("run", "--blas", "--", *PERCEPTRON, environment={"KINTSUGI_SITES": "sites.json"})
    assert tuned.status == 0 and tuned.stderr == ""
    y = program.load("Y.npy").astype("f8")
    assert run_with(program, PERCEPTRON, {}).status == 0
    reference = program.load("Y.npy").astype("f8")
    error = numpy.linalg.norm(y - reference) / numpy.linalg.norm(reference)
    assert document["result"]["error"] == pytest.approx(error, rel=1e-12) and 0 < error <= 1e-5


def test_text_for_people(program):
    shown = program.ok("tune-program", "--limit", "1e-3", *WEIGHTS, "--", *PERCEPTRON).stdout
    assert "perceptron:first_layer@0x" in shown and "combinations were tried" in shown
    assert "Configuration: sites.json" in shown


# ---------------------------------------------------------------- errors

@pytest.mark.parametrize("metric", ["frobenius", "max"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_errors_are_numpys(program, metric, seed):
    """Every step of an exhaustive search, by the program's file."""
    levels = ["--levels", "native,fp16x3,fp16", "--cost", "weights"]
    document = tune(program, 1, "--metric", metric, "--output", "Y.npy", "--search", "exhaustive", weights=levels)
    sites = [site["site"] for site in document["sites"]]
    step = document["steps"][(seed * 7) % len(document["steps"])]
    assert run_with(program, PERCEPTRON, {}).status == 0
    reference = program.load("Y.npy").astype("f8")
    rules = {site: {"policy": "native"} if level == "native" else {"scheme": level}
             for site, level in zip(sites, step["levels"])}
    assert run_with(program, PERCEPTRON, rules).status == 0
    difference = program.load("Y.npy").astype("f8") - reference
    error = (numpy.linalg.norm(difference) / numpy.linalg.norm(reference) if metric == "frobenius" else
             abs(difference).max() / abs(reference).max())
    assert step["error"] == pytest.approx(error, rel=1e-12)


def test_the_worst_site_counts_without_a_file(program):
    """The last layer alone is lowered, so that only its own output differs: by what the file differs."""
    flags = ["--search", "exhaustive", "--error-samples", 0]
    weights = ["--cost", "weights", "--levels", "native@1,tf32@0.3,fp16@0.15"]
    whole = tune(program, 1, *flags, weights=weights)
    file = tune(program, 1, *flags, "--output", "Y.npy", "-o", "other.json", weights=weights)
    of_levels = lambda document: {tuple(step["levels"]): step["error"] for step in document["steps"]}
    assert of_levels(whole)["native", "native", "fp16"] == pytest.approx(of_levels(file)["native", "native", "fp16"], rel=1e-12)
    assert all(error >= of_levels(file)[levels] * (1 - 1e-12) for levels, error in of_levels(whole).items())


def test_errors_relative_to_exact_products(program):
    document = tune(program, 1e-5, "--reference", "exact", "--output", "Y.npy")
    assert document["steps"][0]["levels"] == ["native"] * 3 and 0 < document["steps"][0]["error"] < 1e-6


def test_an_exact_level_has_no_error_against_the_exact_reference(program):
    document = tune(program, 1e-7, "--reference", "exact", weights=["--levels", "exact@1,fp16@0.1", "--cost", "weights"])
    assert document["result"]["levels"] == ["exact"] * 3 and document["result"]["error"] == 0


def test_a_users_command(program):
    (program.folder / "error.sh").write_text("cat number\n")
    (program.folder / "number").write_text("0.25\n")
    document = tune(program, 0.5, "--metric", "command", "--command", "sh error.sh")
    assert {step["error"] for step in document["steps"]} == {0.25}
    assert document["result"]["levels"] == ["fp16"] * 3
    assert "0.25" in program("tune-program", "--limit", "0.1", "--metric", "command", "--command", "sh error.sh", *WEIGHTS,
                             "--", *PERCEPTRON).stderr
    for text, expected in [("many", 'printed "many" in place of one number'), ("", 'printed ""')]:
        (program.folder / "number").write_text(text)
        assert expected in program.bad("tune-program", "--limit", 1, "--metric", "command", "--command", "cat number", *WEIGHTS,
                                       "-o", f"other{len(text)}.json", "--", *PERCEPTRON)


def test_a_run_that_fails_is_beyond_the_limit(program):
    """A program that ends with status 3 where its last product is not that of a native run."""
    (program.folder / "strict.sh").write_text('"$@" && cp Y.npy last.npy && if [ -e first.npy ]; then cmp -s Y.npy first.npy || exit 3; '
                                              "else cp Y.npy first.npy; fi\n")
    document = tune(program, 0.5, words=["sh", "strict.sh", *PERCEPTRON])
    assert document["result"]["levels"] == ["native"] * 3
    assert {step["error"] for step in document["steps"][1:]} == {"inf"}


# ---------------------------------------------------------------- search

def by_search(program, name, words, limit, *flags):
    return {search: tune(program, limit, *flags, "--error-samples", 0, "--search", search, "-o", name, words=words)
            for search in ("exhaustive", "greedy", "estimated")}


@pytest.mark.parametrize("words, limits", [(PERCEPTRON, [3e-7, 1e-6, 3e-4, 4.5e-4, 1e-3]), (CHOLESKY, [2e-7, 1e-5, 2e-4, 5e-4])],
                         ids=["perceptron", "cholesky"])
def test_searches_are_near_the_optimum_with_few_runs(program, words, limits):
    """The exhaustive search's state serves the others: their steps are counted, and not run again."""
    for limit in limits:
        found = by_search(program, "both.json", words, limit)
        best = found["exhaustive"]["result"]
        assert best["error"] <= limit and best["combinations_tried"] == best["combinations"] == 4 ** len(found["greedy"]["sites"])
        for search in ("greedy", "estimated"):
            result = found[search]["result"]
            assert result["error"] <= limit and best["cost"] <= result["cost"] <= 1.05 * best["cost"], (search, limit)
            assert result["combinations_tried"] <= best["combinations_tried"] / 4, (search, limit)
            assert result["runs_of_the_program"] == 0


# Prints an error for the levels in the sites file of the run: a sum of one random number a site and level.
SYNTHETIC = """
import json, random, sys
errors = random.Random(int(sys.argv[1]))
sites = json.load(open("random.work/sites.json"))["sites"]
table = {site: dict(zip(("native", "fp16x3", "tf32", "fp16"), sorted(errors.random() ** 3 for _ in range(4)))) for site in sorted(sites)}
print(sum(table[site][rule.get("scheme", "native")] for site, rule in sites.items()))
"""


@pytest.mark.parametrize("seed", range(4))
def test_the_limit_is_kept_whatever_the_errors(program, seed):
    (program.folder / "synthetic.py").write_text(SYNTHETIC)
    command = ["--metric", "command", "--command", f"{sys.executable} synthetic.py {seed}"]
    words = [APPS / "perceptron", 4, 4, 4, "Y.npy"]
    all_steps = tune(program, 10, *command, "--error-samples", 0, "--search", "exhaustive", "-o", "random.json", words=words)["steps"]
    smallest = all_steps[0]["error"]
    assert smallest == min(step["error"] for step in all_steps)
    for factor in (1.001, 1.5, 3):
        found = by_search(program, "random.json", words, smallest * factor, *command)
        best = found["exhaustive"]
        within = [step["cost"] for step in best["steps"] if step["error"] <= smallest * factor]
        assert best["result"]["cost"] == min(within)
        for search in ("greedy", "estimated"):
            result, steps = found[search]["result"], found[search]["steps"]
            assert result["error"] <= smallest * factor and best["result"]["cost"] <= result["cost"]
            costs = [step["cost"] for step in steps if step["accepted"]]
            assert costs == sorted(costs, reverse=True) and result["cost"] == costs[-1]


def test_sites_feed_each_other(program):
    sites = {site["function"]: site for site in tune(program, 1e-3)["sites"]}
    names = {site["site"]: function for function, site in sites.items()}
    assert {function: [names[edge["site"]] for edge in site["inputs"]] for function, site in sites.items()} == {
        "first_layer": [], "second_layer": ["first_layer"], "last_layer": ["second_layer"]}


def test_errors_of_calls_on_their_own_operands(program):
    """Native calls have errors of their own, and those at the final levels; the last layer inherits an error that its own calls do not have."""
    document = tune(program, 1, "--levels", "native@1,fp16@0.1", "--min-share", 0.35, weights=["--cost", "weights"])
    sites = {site["function"]: site for site in document["sites"]}
    assert {function: site["level"] for function, site in sites.items()} == {"first_layer": "native", "second_layer": "fp16", "last_layer": "native"}
    for site in sites.values():
        assert site["call_error"]["calls"] == site["native_call_error"]["calls"] == 1
        assert 0 < site["native_call_error"]["relative"] == site["native_call_error"]["largest"] < 1e-6
    assert sites["second_layer"]["call_error"]["relative"] > 1e-5
    assert sites["last_layer"]["call_error"]["relative"] < 1e-6 < 1e-5 < sites["last_layer"]["error"]
    text = (program.folder / "sites.report.html").read_text()
    assert f"{sites['second_layer']['call_error']['relative']:.3g}" in text
    again = tune(program, 1, "--levels", "native@1,fp16@0.1", "--min-share", 0.35, weights=["--cost", "weights"])
    assert again["result"]["runs_of_the_program"] == 0 and again["sites"] == document["sites"]


# One function calls BLAS for two others, whose results differ in what they tolerate.
WRAPPED = r"""
#include <stdio.h>
#include <stdlib.h>
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
static float a[64], c[64], large[64], small[64];
__attribute__((noinline)) static void multiply(float* into) {
  static const int n = 8;
  static const float one = 1, zero = 0;
  sgemm_("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, into, &n);
  __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) static void coarse(void) { multiply(small); __asm__ volatile(""); }
__attribute__((noinline)) static void fine(void) { multiply(large); __asm__ volatile(""); }
int main(void) {
  for (int i = 0; i < 64; ++i) a[i] = (float)((i * 37) % 64) / 63;
  coarse();
  fine();
  FILE* file = fopen("error", "w");
  double reference = 0;
  for (int l = 0; l < 8; ++l) reference += (double)a[8 * l] * (double)a[l];
  fprintf(file, "%g\n", (large[0] - reference) / reference + 1e-4 * (small[0] - reference) / reference);
  return fclose(file);
}
"""


def test_frames_tell_callers_apart(program):
    (program.folder / "wrapped.c").write_text(WRAPPED)
    subprocess.run([os.environ["TESTED_CC"], "-O2", "-o", program.folder / "wrapped", program.folder / "wrapped.c", "-lblas"], check=True)
    command = ["--metric", "command", "--command", "cat error", "--levels", "native@1,fp16@0.1"]
    flat = tune(program, 1e-5, *command, words=["./wrapped"], weights=["--cost", "weights"])
    assert [site["level"] for site in flat["sites"]] == ["native"] and flat["sites"][0]["callers"] == []
    told_apart = tune(program, 1e-5, *command, "--frames", 2, words=["./wrapped"], weights=["--cost", "weights"])
    levels = {site["callers"][0]: site["level"] for site in told_apart["sites"]}
    assert levels == {"coarse": "fp16", "fine": "native"}
    assert "lower multiply < coarse" in {step["what"] for step in told_apart["steps"]}
    assert json.loads((program.folder / "sites.json").read_text())["frames"] == 2
    ran = program("run", "--blas", "--", "./wrapped", environment={"KINTSUGI_SITES": "sites.json"})
    assert ran.status == 0 and ran.stderr == "" and abs(float((program.folder / "error").read_text())) == told_apart["result"]["error"]


def test_measured_time_is_minimised(program):
    document = tune(program, 1e-3, weights=["--repeat", 2])
    costs = [step["cost"] for step in document["steps"] if step["accepted"]]
    assert costs == sorted(costs, reverse=True) and document["result"]["cost"] <= document["result"]["first_cost"]


def test_what_need_not_be_exact_is_native(program):
    """By time: an exact product takes several times as long on any CPU. Neither plans nor the engine's start may count."""
    words = [APPS / "perceptron", 480, 420, 540, "Y.npy"]
    document = tune(program, 1e-6, "--reference", "exact", words=words, weights=["--levels", "exact,native", "--repeat", 9])
    assert document["result"]["levels"] == ["native"] * 3 and document["result"]["combinations_tried"] == 4


def test_levels_that_do_not_take_the_type_are_left_out(program):
    document = tune(program, 1e-3, weights=["--levels", "native,ozaki-int8:slices=3,fp64x9,fp16", "--cost", "weights"])
    assert [[level["name"] for level in site["levels"]] for site in document["sites"]][0][-1] == "fp16"
    assert all("fp64x9" not in str(site["levels"]) for site in document["sites"])


def test_small_sites_are_not_searched(program):
    document = tune(program, 1e-3, "--min-share", 0.35)
    assert [site["searched"] for site in document["sites"]] == [False, True, False]
    assert document["result"]["levels"] == ["native", "fp16", "native"] and document["result"]["combinations"] == 4


# ---------------------------------------------------------------- validation, state

def test_validation_has_inputs_of_other_seeds(program):
    document = tune(program, 1e-3, "--validate", 4, "--output", "Y.npy")
    errors = [one["error"] for one in document["validation"]]
    assert [one["seed"] for one in document["validation"]] == [1, 2, 3, 4] and len(set(errors)) == 4
    assert errors[0] == document["result"]["error"], "1 is the programs' own seed"


def test_a_limit_that_does_not_hold_with_other_inputs(program):
    known = [one["error"] for one in tune(program, 1, "--validate", 6, "--output", "Y.npy", "-o", "known.json")["validation"]]
    assert max(known) > known[0]
    result = program("tune-program", "--limit", known[0] * 1.0001, *WEIGHTS, "--output", "Y.npy", "--validate", 6, "--", *PERCEPTRON)
    found = json.loads((program.folder / "sites.report.json").read_text())
    if found["result"]["levels"] == ["fp16"] * 3:
        assert result.status == 1 and "did not hold" in result.stderr
        assert not json.loads((program.folder / "sites.json").read_text())["tuned"]["held"]


def test_an_interrupted_search_goes_on(program):
    """A program that takes long is interrupted in the midst of the search, by a signal to the tuner alone."""
    (program.folder / "slow.sh").write_text('sleep 0.3; echo run >> runs; "$@"\n')
    flags = ["--limit", "1e-3", *WEIGHTS, "--error-samples", "0", "--json", "--", "sh", "slow.sh", *PERCEPTRON]
    words = [PROGRAM, "tune-program", *[str(flag) for flag in flags]]
    process = subprocess.Popen(words, cwd=program.folder, env=program.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    runs, state = program.folder / "runs", program.folder / "sites.state.json"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (state.exists() and len(json.loads(state.read_text())["runs"]) >= 3):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and "goes on from sites.state.json" in message.decode()
    kept = len(json.loads(state.read_text())["runs"])
    before = len(runs.read_text().split())
    document = program.ok("tune-program", *flags).json()
    assert document["result"]["runs_of_the_program"] == len(runs.read_text().split()) - before
    assert document["result"]["combinations_tried"] - kept == document["result"]["runs_of_the_program"]
    again = program.ok("tune-program", *flags).json()
    assert again["result"]["runs_of_the_program"] == 0 and again["steps"] == document["steps"]


def test_a_state_of_other_arguments_is_not_used(program):
    tune(program, 1e-3)
    assert tune(program, 1e-3, "--metric", "max")["result"]["runs_of_the_program"] > 0


# ---------------------------------------------------------------- bad input

@pytest.mark.parametrize("flags, expected", [
    (["--limit", 0], "--limit: 0 is not above 0"), (["--limit", 1, "--metric", "command"], "--command: is missing"),
    (["--limit", 1, "--command", "true"], "needs --metric command"), (["--limit", 1, "--levels", "fp16@fast"], "fast"),
    (["--limit", 1, "--metric", "maxi"], "max"), (["--limit", 1, "-o", "nowhere/sites.json"], "nowhere"),
    (["--limit", 1, "--output", "Z.npy"], "--output: the program wrote no Z.npy")])
def test_bad_flags(program, flags, expected):
    assert expected in program.bad("tune-program", *flags, "--", *PERCEPTRON)


def test_too_many_combinations(program):
    levels = ",".join(["native"] + [f"h2sgemm:sb={shift}" for shift in range(1, 17)])
    assert "4913 times, more than 4096" in program.bad("tune-program", "--limit", 1, "--search", "exhaustive", "--levels", levels, "--",
                                                       *PERCEPTRON)


def test_programs_that_cannot_be_tuned(program):
    assert "no-such-program" in program.bad("tune-program", "--limit", 1, "--", "no-such-program")
    assert "made no call of BLAS" in program.bad("tune-program", "--limit", 1, "--", "true")
    message = program.bad("tune-program", "--limit", 1, "--", APPS / "perceptron", 0, 1, 1, "Y.npy")
    assert "ended with status 2" in message and 'SAMPLES = "0" is not in 1 ... 65536' in message


def test_a_program_whose_results_differ_from_run_to_run(program):
    """The seed is the number of seconds since 1970 and more."""
    (program.folder / "random.sh").write_text('KINTSUGI_TUNE_SEED=$(date +%s%N) "$@"\n')
    result = program("tune-program", "--limit", "1e-3", "--", "sh", "random.sh", *PERCEPTRON)
    assert result.status == 1 and "differ from run to run" in result.stderr
