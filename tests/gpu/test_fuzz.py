"""gpu_fuzz on the host's engines: tests its generator and its judge, and that it finds results that were spoilt on purpose."""

import json
import os
import pathlib
import re
import subprocess

import pytest

PROGRAM = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests" / "gpu_fuzz"
# Matrices without special values, since this file tests the program and not the library.
TAME = "values_a=uniform values_b=phi:1 values_c=uniform special_a=0 special_b=0 special_c=0 alpha=1.5 beta=-0.5"

pytestmark = pytest.mark.skipif(os.environ["TESTED_SANITIZED"] == "1", reason="the sanitizers' build leaves it out")


def run(*words, timeout=600):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=timeout)


def test_tame_cases_pass(tmp_path):
    file = tmp_path / "fuzz.json"
    result = run("--host", "--cases", 400, "--threads", 2, "--with", TAME, "--json", file)
    assert result.returncode == 0, result.stdout
    document = json.loads(file.read_text())
    assert document["format"] == "kintsugi.fuzz" and document["ending"] == "done"
    assert document["calls"] == 400 and document["violations"] == 0 and document["seed"] == 1
    assert document["elements"] > 10_000 and document["refused"] < 100


@pytest.mark.parametrize("how, kinds", [("element", {"bound", "rounding", "guard"}), ("padding", {"guard"}), ("operand", {"operand"}),
                                        ("workspace", {"workspace"}), ("replay", {"bits"})])
def test_spoilt_results_are_found(tmp_path, how, kinds):
    file = tmp_path / "fuzz.json"
    result = run("--host", "--cases", 60, "--threads", 1, "--with", TAME + " workspace=exact via=plan graph=1 limit=0",
                 "--sabotage", how, "--json", file)
    assert result.returncode == 1, result.stdout
    document = json.loads(file.read_text())
    assert document["violations"] > 10
    # A spoilt result also differs from that of the same call without a workspace and a graph.
    found = {element["class"].split(":")[0] for element in document["classes"]}
    assert kinds & found and found <= kinds | {"bits"}
    assert result.stdout.count("FAILED") <= 40


def test_a_spoilt_element_outside_the_sample_is_found():
    case = TAME + " m=150 n=170 k=140 type=c64 policy=emulate seed=SEED"
    for seed in range(1, 6):
        words = ("--host", "--case", case.replace("SEED", str(seed)))
        assert run(*words).returncode == 0
        assert run(*words, "--sabotage", "inner").returncode == 1


def test_a_printed_case_can_be_repeated():
    spoilt = run("--host", "--cases", 20, "--threads", 1, "--with", TAME, "--sabotage", "padding")
    line = re.search(r"--case '(.*)'", spoilt.stdout)[1]
    alone = run("--host", "--case", line, "--sabotage", "padding")
    assert alone.returncode == 1 and line in alone.stdout
    assert run("--host", "--case", line).returncode == 0


def test_a_case_that_does_not_end_is_named(tmp_path):
    file = tmp_path / "fuzz.json"
    result = run("--host", "--cases", 5, "--threads", 1, "--sabotage", "hang", "--hang", 1, "--json", file)
    assert result.returncode == 3 and "does not end: gpu_fuzz --host --case '" in result.stdout
    assert json.loads(file.read_text())["ending"] == "hang"


def test_bits_do_not_depend_on_other_threads():
    result = run("--host", "--same-bits", "--threads", 4, "--seconds", 3, "--with", TAME + " policy=emulate accuracy=exact scheme=")
    assert result.returncode == 0, result.stdout


def test_wrong_options_are_refused():
    result = run("--cases")
    assert result.returncode == 2 and "needs a value" in result.stderr
    assert run("--fast").returncode == 2
    assert run("--host", "--case", "colour=blue").returncode == 2
    assert run("--help").returncode == 0
