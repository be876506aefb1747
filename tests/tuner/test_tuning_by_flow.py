"""The compiler's data flow in kintsugi tune-program: edges that memory does not show, groups of sites, and the runs that they save."""

import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest
from conftest import BLAS, PROGRAMS, SOURCE, Sites, compile, run, table

PROGRAM = os.environ.get("TESTED_PROGRAM")
WEIGHTS = ["--cost", "weights", "--levels", "native@1,fp16x3@0.45,tf32@0.3,fp16@0.15", "--error-samples", 0]
# Programs with eight sites each, and limits from tight to loose.
LARGE = {"encoder": ["48", "32", "Y.npy"], "blocked_lu": ["96", "16", "Y.npy"]}
LIMITS = [4e-7, 1e-5, 1e-4, 2e-4, 1e-3]


def build(folder, name, *flags, with_pass=True):
    output = folder / (name if with_pass else f"{name}-plain")
    is_c = (PROGRAMS / f"{name}.c").exists()
    compile(*(flags or ["-O2"]), *([] if is_c else ["-std=c++17"]), "-I", SOURCE, PROGRAMS / f"{name}.{'c' if is_c else 'cpp'}", "-o", output,
            BLAS, "-lm", with_pass=with_pass)
    return output


def tune(folder, words, limit, *flags, **keywords):
    command = [PROGRAM, "tune-program", "--limit", limit, *WEIGHTS, *flags, "--json", "--", *words]
    document = json.loads(run(*command, cwd=folder, **keywords).stdout)
    schema = json.loads((SOURCE / "docs/schema/tune-program.schema.json").read_text())
    jsonschema.Draft7Validator(schema | {"additionalProperties": False}).validate(document)
    return document


def short(name):
    return name.split(":", 1)[1].replace(":cblas_sgemm", "")


# ---------------------------------------------------------------- edges

# {site: sites that it reads, by operand}
MOVED = {"copied#1": set(), "copied#2": {("A", "copied#1")}, "computed#1": set(), "computed#2": {("B", "computed#1")},
         "in_functions#1": set(), "in_functions#2": {("A", "in_functions#1")}, "by_a_sum#1": set(), "by_a_sum#2": {("A", "by_a_sum#1")},
         "too_late#1": set(), "too_late#2": set(), "of_something_else#1": set(), "of_something_else#2": set(),
         "layer#1": set(), "last#1": {("A", "layer#1")}}


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_the_pass_follows_copied_and_computed_elements(tmp_path, level):
    file = build(tmp_path, "moved", level)
    assert {short(site["site"]): {(edge["operand"], short(edge["site"])) for edge in site["inputs"]} for site in table(file)} == MOVED
    assert run(file).stdout == run(build(tmp_path, "moved", level, with_pass=False)).stdout


def test_reports_have_the_edges_of_the_pass(tmp_path):
    _, found = Sites(tmp_path).run(build(tmp_path, "moved"), {})
    assert {short(name): {(edge["operand"], short(edge["site"])) for edge in site["may_read"]} for name, site in found.items()} == MOVED
    assert all(site["inputs"] == [] for site in found.values()), "no call reads the memory of another's result"
    _, found = Sites(tmp_path).run(build(tmp_path, "moved", with_pass=False), {})
    assert {json.dumps(site["may_read"]) for site in found.values()} == {"null"}


def test_the_tuner_says_what_has_found_an_edge(tmp_path):
    """Copies are seen by the compiler alone, pointers that the compiler cannot follow by memory alone."""
    moved = tune(tmp_path, [build(tmp_path, "moved")], 1)
    edges = {(short(site["site"]), short(edge["site"])): (edge["flow"], edge["calls"], edge["operands"])
             for site in moved["sites"] for edge in site["inputs"]}
    assert edges == {(reader, writer): ("static", 0, operand) for reader, inputs in MOVED.items() for operand, writer in inputs}
    flow = tune(tmp_path, [build(tmp_path, "flow")], 1, "-o", "flow.json")
    edges = {(short(site["site"]), short(edge["site"])): (edge["flow"], edge["operands"]) for site in flow["sites"] for edge in site["inputs"]}
    assert edges["multiply_chain#2", "multiply_chain#1"] == ("both", "A") and edges["multiply_chain#3", "multiply_chain#2"] == ("both", "B")
    plain = tune(tmp_path, [build(tmp_path, "flow", with_pass=False)], 1, "-o", "plain.json")
    assert {edge["flow"] for site in plain["sites"] for edge in site["inputs"]} == {"memory"}
    assert {site["role"] for site in plain["sites"]} == {None} and plain["result"]["groups_tried"] == 0


def test_callers_do_not_hide_the_edges(tmp_path):
    document = tune(tmp_path, [build(tmp_path, "moved")], 1, "--frames", 3)
    last, = (site for site in document["sites"] if ":last:" in site["site"])
    assert " < " in last["site"] and [edge["flow"] for edge in last["inputs"]] == ["static"]
    assert last["inputs"][0]["site"].split(" < ")[0].endswith("layer:cblas_sgemm#1")


def test_a_program_that_a_script_starts_has_records_too(tmp_path):
    (tmp_path / "start.sh").write_text('"$@"\n')
    document = tune(tmp_path, ["sh", "start.sh", build(tmp_path, "moved")], 1)
    assert any(edge["flow"] == "static" for site in document["sites"] for edge in site["inputs"])


# ---------------------------------------------------------------- roles and groups

def test_roles(tmp_path):
    """Queries, keys and values read no result; scores and context read two."""
    document = tune(tmp_path, [build(tmp_path, "encoder"), *LARGE["encoder"]], 1, "--output", "Y.npy")
    query, key, value, scores, context, output, up, down = (site["role"] for site in document["sites"])
    assert key == value and scores == context and output == up
    assert len({query, key, scores, output, down}) == 5
    flow = {int(site["site"][-1]): {int(edge["site"][-1]): edge["flow"] for edge in site["inputs"]} for site in document["sites"]}
    assert flow == {1: {}, 2: {}, 3: {}, 4: {1: "both", 2: "both"}, 5: {3: "both", 4: "static"}, 6: {5: "both"}, 7: {6: "static"}, 8: {7: "static"}}


@pytest.mark.parametrize("name", LARGE)
def test_groups_save_runs(tmp_path, name):
    """At most 0.7 of the runs of the search without records; the cost is at most 5 % higher, and the limit holds."""
    programs = [build(tmp_path, name), build(tmp_path, name, with_pass=False)]
    runs = [0, 0]
    for limit in LIMITS:
        found = [tune(tmp_path, [program, *LARGE[name]], limit, "--output", "Y.npy", "-o", f"{program.name}-{limit}.json") for program in programs]
        assert len(found[0]["sites"]) == len(found[1]["sites"]) == 8
        grouped, single = (document["result"] for document in found)
        assert grouped["error"] <= limit and grouped["cost"] <= 1.05 * single["cost"], limit
        assert grouped["groups_tried"] == sum(len(step["lowered"]) > 1 for step in found[0]["steps"]) > 0
        assert all(len(step["lowered"]) <= 1 for step in found[1]["steps"])
        runs = [total + result["runs_of_the_program"] for total, result in zip(runs, (grouped, single))]
    assert runs[0] <= 0.7 * runs[1], runs


def test_the_result_is_what_was_measured(tmp_path):
    """The program runs with the sites file, and its result has the error of the report."""
    program = build(tmp_path, "encoder")
    document = tune(tmp_path, [program, *LARGE["encoder"]], 2e-4, "--output", "Y.npy", "--validate", 2)
    accepted = [step for step in document["steps"] if step["accepted"]]
    assert accepted[-1]["levels"] == document["result"]["levels"] and accepted[-1]["error"] == document["result"]["error"] <= 2e-4
    assert document["validation"][0]["error"] == document["result"]["error"]
    costs = [step["cost"] for step in accepted]
    assert costs == sorted(costs, reverse=True) and document["result"]["cost"] == costs[-1]


def test_the_report_for_people(tmp_path):
    tune(tmp_path, [build(tmp_path, "encoder"), *LARGE["encoder"]], 1e-5, "--output", "Y.npy")
    text = (tmp_path / "sites.report.html").read_text()
    ElementTree.fromstring(text.replace("<!DOCTYPE html>", ""))
    assert "8 sites have 5 roles" in text and "stroke-dasharray" in text and "(static)" in text and "(both)" in text


def test_an_interrupted_search_goes_on(tmp_path):
    program = build(tmp_path, "encoder")
    whole = tune(tmp_path, [program, *LARGE["encoder"]], 2e-4, "--output", "Y.npy", "-o", "whole.json")
    (tmp_path / "slow.sh").write_text('sleep 0.3; echo run >> runs; "$@"\n')
    words = ["sh", "slow.sh", str(program), *LARGE["encoder"]]
    command = [PROGRAM, "tune-program", "--limit", "2e-4", *map(str, WEIGHTS), "--output", "Y.npy", "--json", "--", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    runs, state = tmp_path / "runs", tmp_path / "sites.state.json"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (state.exists() and len(json.loads(state.read_text() or "{}").get("runs", {})) >= 4):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and "goes on from sites.state.json" in message.decode()
    before, kept = len(runs.read_text().split()), len(json.loads(state.read_text())["runs"])
    document = tune(tmp_path, words, 2e-4, "--output", "Y.npy")
    assert document["result"]["runs_of_the_program"] == len(runs.read_text().split()) - before
    assert document["result"]["combinations_tried"] - kept == document["result"]["runs_of_the_program"]
    assert document["steps"] == whole["steps"] and document["result"]["levels"] == whole["result"]["levels"]
