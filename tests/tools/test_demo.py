"""kintsugi demo: what it measures, says and draws. The bits of OpenBLAS are this machine's affair; ours are promised."""

import os
import pathlib
import re
import struct
import subprocess
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest
from conftest import SOURCE, schema
from test_json import accept

TINY = ["--memory", "host", "--sizes", "24,33"]


@pytest.fixture
def document(program):
    found = program.ok("demo", *TINY, "--json", "-o", "demo.html").json()
    jsonschema.Draft7Validator.check_schema(schema("demo"))
    return found


def test_the_document(program, document):
    accept({**document, "runs": [{}, {}]}, "demo")
    assert document["memory"] == "host" and document["page"] == "demo.html"
    assert [run["settings"]["threads"] for run in document["runs"]] == [1, 2]
    for run in document["runs"]:
        accept(run, "bench")
        rows = [(row["problem"]["n"], row["name"]) for row in run["rows"]]
        assert rows == [(n, name) for n in (24, 33) for name in ("fp64", "exact", "native")]
        for row in run["rows"]:
            assert row["problem"]["type"] == "fp64" and re.fullmatch("[0-9a-f]{16}", row["bits"])


def test_our_bits_are_the_same_with_two_threads(document):
    one, two = ({(row["problem"]["n"], row["name"]): row["bits"] for row in run["rows"]} for run in document["runs"])
    for n in (24, 33):
        assert one[n, "fp64"] == two[n, "fp64"] and one[n, "exact"] == two[n, "exact"]
    assert one[24, "exact"] != one[33, "exact"], "another C has another hash"


def test_exact_is_correctly_rounded_and_the_sentences_say_what_the_rows_do(document):
    rows = {row["name"]: row for row in document["runs"][1]["rows"] if row["problem"]["n"] == 33}
    assert rows["exact"]["check"]["correctly_rounded_fraction"] == 1
    share = rows["native"]["check"]["correctly_rounded_fraction"]
    assert 0 < share < 1
    bits, rounding = document["findings"]
    assert f"{100 * share:.3g} %" in rounding and "exact rounded 100 %" in rounding
    ratio = 1 / rows["exact"]["ratios"]["native"]
    assert f"{ratio:.3g} times as long" in rounding
    changed = [str(n) for n in (24, 33)
               if len({row["bits"] for run in document["runs"] for row in run["rows"]
                       if row["name"] == "native" and row["problem"]["n"] == n}) > 1]
    assert ("different bits with 1 and 2 threads at n = " + ", ".join(changed) in bits) if changed else "same bits" in bits


def generated(program, side):
    program.ok("generate", "uniform", "1x1", "--type", "fp64", "--side", side, "-o", f"{side}.npy")
    return program.load(f"{side}.npy")


def test_the_hash_is_that_of_the_bytes(program):
    """The hash of a product of two numbers."""
    rows = program.ok("bench", "exact", "--type", "fp64", "--distribution", "uniform", "--shapes", "1x1x1", "--repeat", "1",
                      "--json").json()["rows"]
    a, b = (float(generated(program, side)[0, 0]) for side in "ab")
    value = 0xcbf29ce484222325
    for byte in struct.pack("<d", a * b):
        value = (value ^ byte) * 0x100000001b3 % 2**64
    assert {row["bits"] for row in rows} == {f"{value:016x}"}


def test_the_text_and_the_page(program):
    result = program.ok("demo", *TINY, "-o", "demo.html")
    assert "bits of C" in result.stdout and "Pictures: demo.html" in result.stdout
    assert "no GPU" not in result.stdout, "the host was asked for"
    root = ElementTree.fromstring((program.folder / "demo.html").read_text())
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    assert titles == ["uniform, fp64: rate against m = n = k", "fp64: largest error of the checked elements",
                      "fp64: correctly rounded elements", "All rates"]
    drawn = list(root.iter("{http://www.w3.org/2000/svg}svg"))
    assert len(drawn) == 4
    series = {node.text for chart in drawn for node in chart.iter("{http://www.w3.org/2000/svg}title")}
    assert {"exact · cpu · threads: 1", "exact · cpu · threads: 2"} <= series
    table = next(node for node in root.iter() if node.tag.endswith("}tbody"))
    assert len(table) == 12


def test_on_a_device_a_wrong_product_is_not_timed(program):
    """The driver and cuBLAS of tests/fakes compute nothing: the first result is judged, named, and ends the program."""
    fakes = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests" / "fakes"
    result = program("demo", "--sizes", "16", "-o", "demo.html", environment={"LD_LIBRARY_PATH": str(fakes)})
    if "since no GPU can be used" in result.stdout:
        pytest.skip("built without device code")
    assert result.status == 1 and result.stdout == "" and program.files() == ["home"]
    assert result.stderr.startswith("kintsugi: fp32: 16x16x16: ") and "nothing was timed" in result.stderr


def test_without_a_gpu_it_says_why(program):
    environment = {"LD_LIBRARY_PATH": "", "CUDA_VISIBLE_DEVICES": ""}
    engines = program.ok("engines", "--json", environment=environment).json()["engines"]
    (cuda,) = [engine for engine in engines if engine["name"] == "cuda"]
    if cuda["available"]:
        pytest.skip("there is a GPU that cannot be hidden")
    text = program.ok("demo", "--sizes", "8", environment=environment).stdout
    assert text.startswith("On the CPU, since no GPU can be used: ")
    assert " ".join(cuda["reason"].split()) in " ".join(text.split())
    message = program.bad("demo", "--memory", "device", environment=environment)
    assert message == f"--memory: device: the engine cuda cannot be used: {cuda['reason']}"


@pytest.mark.parametrize("words,message", [
    (["--sizes", "ten"], "--sizes: "),
    (["--sizes", "0"], "--sizes: "),
    (["-o", "nowhere/demo.html"], "nowhere/demo.html"),
    (["--memory", "disk"], "--memory"),
])
def test_bad_input(program, words, message):
    assert message in program.bad("demo", *words)


def test_the_help_has_an_example(program):
    assert "kintsugi demo -o demo.html" in program.ok("demo", "--help").stdout


def test_the_quickstart_runs_it():
    text = (SOURCE / "quickstart").read_text()
    assert "build/kintsugi demo -o build/quickstart.html" in text


def test_the_quickstart_has_help_and_refuses_what_it_does_not_know():
    script = SOURCE / "quickstart"
    help_text = subprocess.run([script, "--help"], capture_output=True, text=True)
    assert help_text.returncode == 0 and "example: ./quickstart --no-install" in help_text.stdout
    assert "-DKINTSUGI_DEVICE_CODE=on" in help_text.stdout
    bad = subprocess.run([script, "--nothing"], capture_output=True, text=True)
    assert bad.returncode == 2 and "unknown argument '--nothing'" in bad.stderr and bad.stdout == ""
