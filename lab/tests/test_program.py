"""The program kintsugi-lab: help, destinations of output, interruptions, unknown names; and where kintsugi's commands went."""

import json
import re
import signal

import pytest
from conftest import COMMANDS
from test_output import bytes_of, interrupt


def test_help(program):
    text = program.ok("--help").stdout
    assert all(f"\n  {command} " in text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands(program, command):
    text = program.ok(command, "--help").stdout
    assert f"kintsugi-lab {command}" in text.split("Example:")[1]
    assert all(len(line) <= 140 for line in text.splitlines())
    assert program.ok("help", command).stdout == text


def test_documents_and_pages_on_standard_output(program, validate):
    words = ["accuracy", "--schemes", "fp16", "--shapes", "4x4x4,4x4x8"]
    document = json.loads(bytes_of(program, *words, "-o", "-"))
    validate(document, "accuracy")
    assert len(document["rows"]) == 2
    program.ok(*words, "-o", "r.json")
    program.ok("report", "r.json", "-o", "page.html")
    assert bytes_of(program, "report", "r.json", "-o", "-") == (program.folder / "page.html").read_bytes()
    assert "-" not in program.files()


def test_pages_of_complex_products(program):
    program.ok("bench", "exact", "--type", "c32", "--shapes", "8x12x16", "--repeat", "1", "-o", "bench.json")
    program.ok("report", "bench.json", "-o", "bench.html")
    assert "<td>c32</td>" in (program.folder / "bench.html").read_text()


def test_read_only_files_are_not_replaced(program):
    (program.folder / "r.json").write_text("kept")
    (program.folder / "r.json").chmod(0o444)
    expected = "r.json: is read-only and is not replaced; choose another file, or chmod u+w it"
    assert program.bad("accuracy", "--schemes", "fp16", "-o", "r.json") == expected
    assert (program.folder / "r.json").read_text() == "kept"


@pytest.mark.parametrize("columns", [60, 100])
def test_the_list_fits_the_columns(program, columns):
    narrow = program.ok("reproduce", "--list", environment={"COLUMNS": str(columns)}).stdout
    rules = [line for line in narrow.splitlines() if re.fullmatch(r"[- ]+", line) and "--" in line]
    assert rules and all(len(rule) <= columns for rule in rules)


@pytest.mark.parametrize("words,message", [
    ([], "command: one is needed; kintsugi-lab --help lists them"),
    (["help", "reprodcue"], 'COMMAND: there is no command "reprodcue"; did you mean reproduce? '),
    (["accuracy", "--schemes", "fp16x4", "--json"], '--schemes: "fp16x4" is not known; did you mean fp16x3? Accepted: '),
    (["reproduce", "--list", "--quick"], "--quick: excludes --list"),
    (["reproduce", "--list", "-o", "r"], "--output: excludes --list"),
    (["reproduce", "h2sgemm-fig22", "-o", "r"], 'FIGURE: "h2sgemm-fig22" is not known; did you mean h2sgemm-fig2? '),
])
def test_bad_words(program, words, message):
    assert program.bad(*words).startswith(message)


# More rows than a test waits for.
LONG = ["accuracy", "--schemes", "fp16", "--shapes", "64x64x64", "--seeds", ",".join(str(seed) for seed in range(1, 5000))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_is_continued(program, number):
    _, lines = interrupt(program, [*LONG, "-o", "r.json"], number)
    assert "kintsugi-lab: stopping after this step, when its results are saved; ^C again stops at once" in lines
    told = re.fullmatch(r"kintsugi-lab: interrupted; r.json has (\d+) of 4999 rows, and running the same command again "
                        r"continues it", lines[-1])
    rows = json.loads((program.folder / "r.json").read_text())["rows"]
    assert told and len(rows) == int(told[1]) > 0
    interrupt(program, [*LONG, "-o", "r.json"], number)
    again = json.loads((program.folder / "r.json").read_text())["rows"]
    assert again[: len(rows)] == rows and len(again) > len(rows)


def test_an_interrupted_sweep_without_a_file(program):
    stdout, lines = interrupt(program, [*LONG, "--json"])
    assert lines[-1] == "kintsugi-lab: interrupted; no -o names a file, so nothing is kept" and stdout == ""
