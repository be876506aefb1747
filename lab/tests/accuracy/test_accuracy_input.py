"""Files that kintsugi-lab accuracy continues, and bad input that it refuses."""

import json
import os
import resource

import pytest
from accuracy_sweep import TINY, key, measured, without_times


def test_a_second_run_skips_what_is_there(program, measured):
    whole = measured(*TINY)
    text = (program.folder / "r.json").read_text()
    said = program.ok("accuracy", *TINY, "-o", "r.json").stdout
    assert "6 rows, 6 of them were there already" in said
    assert json.loads((program.folder / "r.json").read_text())["rows"] == whole["rows"], "times included"
    # After an interruption: the rows that are there stay as they are, the others come to them.
    part = json.loads(text)
    part["rows"] = part["rows"][2:4]
    part["rows"][0]["time"]["seconds"] = 123.5
    (program.folder / "r.json").write_text(json.dumps(part))
    again = measured(*TINY)
    assert again["rows"][0]["time"]["seconds"] == 123.5
    order = lambda row: str(key(row))
    assert sorted(without_times(again)["rows"], key=order) == sorted(without_times(whole)["rows"], key=order)
    # A wider sweep takes them over, too.
    assert len(measured(*TINY, "--seeds", "1,2")["rows"]) == 12


@pytest.mark.parametrize(
    "change,message",
    [
        ({"version": "0.0.9"}, 'r.json: its version is "0.0.9" and ours is '),
        ({"commit": "x"}, 'r.json: its commit is "x" and ours is '),
        ({"format_version": 2}, "r.json: its format_version is 2 and ours is 1"),
        ({"format": "kintsugi.gemm"}, "r.json: exists and was not written by kintsugi-lab accuracy"),
        ({"rows": [{}]}, "r.json: cannot be continued by kintsugi-lab accuracy"),
    ],
)
def test_other_files_are_refused(program, measured, change, message):
    document = measured(*TINY)
    text = json.dumps({**document, **change})
    (program.folder / "r.json").write_text(text)
    assert program.bad("accuracy", *TINY, "-o", "r.json").startswith(message)
    assert (program.folder / "r.json").read_text() == text, "it is left as it was"


def test_rows_of_another_sweep_are_refused(program, measured):
    measured(*TINY)
    message = program.bad("accuracy", *TINY, "--seeds", "2", "-o", "r.json")
    assert message.startswith("r.json: has a row that is not in this sweep")
    message = program.bad("accuracy", *TINY, "--max-elements", "2", "-o", "r.json")
    assert message.startswith("r.json: its max_elements is 4096 and ours is 2")


@pytest.mark.parametrize(
    "flags,message",
    [
        (["--schemes", "fp16,nonsense"], '--schemes: "nonsense" is not known; accepted: '),
        (["--engines", "abacus"], '--engines: "abacus" is not known; accepted: '),
        (["--accumulators", "h300"], '--accumulators: "h300" is not known; did you mean h200? Accepted: first, all, '),
        (["--distributions", "gaussian"], "--distributions: "),
        (["--shapes", "3x4"], '--shapes: "3x4" is not of the form MxNxK, such as 128x128x64'),
        (["--shapes", "3x0x4"], '--shapes: "3x0x4" is not a number from 1 up'),
        (["--schemes", "native", "--shapes", "1000000000x1x1000000000"], "--shapes: "),
        (["--shapes", "9223372036854775807x1x1"], "--shapes: 9223372036854775807 x 1 elements of float32 are "),
        (["--shapes", "3x99999999999999999999x4"], '--shapes: "3x99999999999999999999x4" is not a number from 1 up'),
        (["--k", "-1"], '--k: "-1" is not a number from 1 up'),
        (["--seeds", "-1"], '--seeds: "-1" is not an integer'),
        (["--seeds", "one"], '--seeds: "one" is not an integer'),
        (["--types", "fp16"], '--types: "fp16" is not known; accepted: fp32, fp64'),
        (["--types", "fp64", "--schemes", "fp16"], "--schemes: no engine of reference runs fp16 on fp64 with an accu"),
        (["--types", "fp64", "--schemes", "native", "--distributions", "span:2046"], "--distributions: "),
        (
            ["--shapes", "100000x100000x1", "--max-elements", "10000000000"],
            "--max-elements: the exact values of 1e+10 elements of 100000x100000x1 are ",
        ),
        (["--max-elements", "1,2"], "--max-elements: 1, 2 is not one value"),
        (["--max-elements", "0"], '--max-elements: "0" is not a number from 1 up'),
        (["--engines", "cpu", "--schemes", "fp16", "--accumulators", "v100"], "--schemes: no engine of cpu runs fp16"),
        (["--plan", "none.json"], "none.json: "),
        (["--nonsense"], "--nonsense: is not known here"),
    ],
)
def test_bad_input(program, flags, message):
    assert program.bad("accuracy", *flags, "-o", "r.json").startswith(message)
    assert program.files() == ["home"]


@pytest.mark.skipif(os.environ.get("TESTED_SANITIZED") == "1", reason="the sanitizers map more than the limit")
def test_too_little_memory(program):
    """A million exact elements of 1.7 KB in an address space of 1.5 GiB."""
    limit = 3 << 29
    flags = ["--schemes", "fp16", "--shapes", "1000x1000x1", "--max-elements", "1000000", "--json"]
    message = program.bad(
        "accuracy", *flags, preexec=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    )
    assert message == "memory: there is not enough for matrices of this size"


@pytest.mark.parametrize(
    "text,message",
    [
        ("[", "plan.json: is not a JSON object"),
        ('{"shape": []}', 'plan.json: "shape" is not a member of a sweep'),
        ('{"k": [1.5]}', 'plan.json: "k" holds 1.5, which is neither a word nor a whole number'),
        ('{"k": []}', 'plan.json: "k" is empty'),
        ('{"histogram": 1}', '--histogram: "1" is not known; accepted: true, false'),
    ],
)
def test_bad_plans(program, text, message):
    (program.folder / "plan.json").write_text(text)
    assert program.bad("accuracy", "--plan", "plan.json", "-o", "r.json") == message


def test_where_the_results_go(program):
    assert program.bad("accuracy", *TINY) == "-o: a file for the results is needed, unless --json is given"
    assert "does not exist" in program.bad("accuracy", *TINY, "-o", "absent/r.json")
