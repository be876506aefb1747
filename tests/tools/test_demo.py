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

SVG = "{http://www.w3.org/2000/svg}"
TINY = ["--memory", "host", "--sizes", "24,33"]


@pytest.fixture
def document(program):
    found = program.ok("demo", *TINY, "--json", "-o", "demo.html").json()
    jsonschema.Draft7Validator.check_schema(schema("demo"))
    return found


def row_of(document, kind, name, n, threads):
    (row,) = [row for run in document["runs"] for row in run["rows"]
              if (row["problem"]["type"], row["name"], row["problem"]["n"], row["threads"]) == (kind, name, n, threads)]
    return row


def test_the_document(program, document):
    accept({**document, "runs": [{}, {}], "cancellation": [{}, {}, {}]}, "demo")
    assert document["memory"] == "host" and document["page"] == "demo.html"
    threads = max(2, document["machine"]["threads"])
    assert [(run["settings"]["type"], run["settings"]["threads"]) for run in document["runs"]] == [
        ("fp32", 1), ("fp64", 1), ("fp32", threads), ("fp64", threads)]
    for run in document["runs"]:
        accept(run, "bench")
        kind = run["settings"]["type"]
        rows = [(row["problem"]["n"], row["name"]) for row in run["rows"]]
        names = ["auto", kind] + ["exact"] * (kind == "fp64") + ["native"]
        assert rows == [(n, name) for n in (24, 33) for name in names]
        for row in run["rows"]:
            assert row["problem"]["type"] == kind and re.fullmatch("[0-9a-f]{16}", row["bits"])


def test_our_bits_are_the_same_with_all_threads(document):
    threads = document["runs"][-1]["settings"]["threads"]
    for n in (24, 33):
        for kind, name in (("fp32", "fp32"), ("fp64", "fp64"), ("fp64", "exact")):
            assert row_of(document, kind, name, n, 1)["bits"] == row_of(document, kind, name, n, threads)["bits"]
    assert row_of(document, "fp64", "exact", 24, 1)["bits"] != row_of(document, "fp64", "exact", 33, 1)["bits"]


def test_exact_is_correctly_rounded_and_the_sentences_say_what_the_rows_do(document):
    threads = document["runs"][-1]["settings"]["threads"]
    exact, native = (row_of(document, "fp64", name, 33, threads) for name in ("exact", "native"))
    assert exact["check"]["correctly_rounded_fraction"] == 1
    share = native["check"]["correctly_rounded_fraction"]
    assert 0 < share < 1
    bits, rounding, cancellation, *others = document["findings"]
    assert f"{100 * share:.3g} %" in rounding and "exact rounded 100 %" in rounding
    ratio = 1 / exact["ratios"]["native"]
    assert f"{ratio:.3g} times as long" in rounding
    changed = [str(n) for n in (24, 33) if row_of(document, "fp64", "native", n, 1)["bits"] !=
               row_of(document, "fp64", "native", n, threads)["bits"]]
    assert (f"different bits with 1 and {threads} threads at n = " + ", ".join(changed) in bits) if changed else "same bits" in bits
    # AMX's state where there is one, then what auto gains: FP32 and FP64, with one thread and with all.
    states = {row["matrix_unit"]["state"] for run in document["runs"] for row in run["rows"]
              if row["threads"] == 1 and row["matrix_unit"] is not None}
    if states:
        sentence = others.pop(0)
        assert all(state in sentence for state in states)
    assert [sentence.split(" (")[0] for sentence in others] == [
        f"{kind}, {words}, auto" for words in ("1 thread", f"{threads} threads") for kind in ("fp32", "fp64")]
    errors = {row["name"]: row["check"]["frobenius_relative"] for row in document["cancellation"][-1]["rows"]}
    assert f"{errors['native']:.1g}, that of exact {errors['exact']:.1g}." in cancellation
    auto = row_of(document, "fp64", "auto", 33, threads)
    assert f"{auto['ratios']['native']:.3g} times the speed of" in others[-1]
    assert f"{auto['check']['max_componentwise']:.2g} of |A||B|" in others[-1]


def test_exact_keeps_its_relative_error_where_elements_cancel(document):
    relative = {}
    for run in document["cancellation"]:
        accept(run, "bench")
        for row in run["rows"]:
            assert row["problem"]["n"] == 24 and row["problem"]["type"] == "fp64"
            relative[row["distribution"], row["name"]] = row["check"]["frobenius_relative"]
    assert [run["settings"]["distribution"] for run in document["cancellation"]] == ["uniform", "cancellation:20", "cancellation:40"]
    for run in document["cancellation"]:
        assert relative[run["settings"]["distribution"], "exact"] < 2**-53
    assert relative["uniform", "native"] < 1e-14 and relative["cancellation:40", "native"] > 1e-8


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
    assert titles == ["n = 33", "fp64: relative error where elements cancel", "uniform: rate against m = n = k",
                      "uniform, fp64: rate against m = n = k",
                      *[f"{kind}: {what}" for kind in ("fp32", "fp64")
                        for what in ("largest error of the checked elements", "correctly rounded elements")], "All products"]
    drawn = list(root.iter(SVG + "svg"))
    assert len(drawn) == 9
    series = {node.text for chart in drawn for node in chart.iter(SVG + "title")}
    assert {"exact · cpu · threads: 1", "exact · cpu · threads: 2"} <= series
    short, full = (node for node in root.iter() if node.tag.endswith("}tbody"))
    assert (len(short), len(full)) == (2 * (3 + 4), 2 * 2 * (3 + 4))


def test_the_page_has_one_name_for_the_baseline_and_numbers(program):
    result = program.ok("demo", *TINY, "-o", "demo.html")
    assert "x OpenBLAS" in result.stdout and "x native" not in result.stdout
    root = ElementTree.fromstring((program.folder / "demo.html").read_text())
    for chart in root.iter(SVG + "svg"):
        texts = [(float(node.get("y")), node.text) for node in chart.iter(SVG + "text")]
        assert "-0" not in [text for _, text in texts]
        rows = [y for y, text in texts if " · cpu" in text]
        names = {text.split(" · ")[0] for _, text in texts if " · cpu" in text}
        assert "OpenBLAS" in names and "native" not in names
        sizes = 3 if "bits that cancel in every element (0: uniform data)" in [text for _, text in texts] else 2
        for row in rows:
            assert len([text for y, text in texts if y == row and re.fullmatch(r"[0-9.]+(e-[0-9]+)?", text)]) == sizes


def test_charts_of_a_page_are_narrow(program):
    """Their text is then still legible on a telephone."""
    program.ok("demo", *TINY, "-o", "demo.html")
    root = ElementTree.fromstring((program.folder / "demo.html").read_text())
    assert all(int(chart.get("width")) <= 470 for chart in root.iter(SVG + "svg"))


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
