"""Speeds in the tables of README.md and docs/FEATURES.md: each is that of the recorded results that its row cites."""

import json
import lzma
import os
import pathlib
import re
import runpy

import pytest

SOURCE = pathlib.Path(os.environ.get("TESTED_SOURCE", pathlib.Path(__file__).parents[2]))
HOPPER = SOURCE / "docs" / "results" / "hopper"
CHART = runpy.run_path(str(SOURCE / "docs" / "pictures" / "make_speed_chart.py"))
# Heads of the tables, by page.
TABLES = {"README.md": "| your case | what you gain |", "docs/FEATURES.md": "| machine | operation | speed | source |"}
LINK = re.compile(r"\]\(([^()#]+)(?:#[^()]*)?\)")


def load(name):
    file = HOPPER / name
    return json.loads(lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_text())


def sgemm(name, distribution, sizes):
    """Speeds of `auto` beside SGEMM, least and greatest."""
    rates = CHART["fp32_rates"](load(name), distribution)
    found = [rates["auto"][n] / rates["cuBLAS"][n] for n in sizes]
    return min(found), max(found)


def peers(name, kind, *sizes):
    rates = CHART["peer_rates"](load("peers-fp64.json"), kind)
    return [rates[name][n] / rates["cuBLAS native"][n] for n in sizes]


def tflops(name, n):
    return [CHART["peer_rates"](load("peers-fp64.json"))[name][n] / 1e12]


def bench(name, row, least=0):
    return [found["ratios"]["native"] for found in load(name)["rows"] if found["name"] == row and found["problem"]["m"] >= least]


NARROW = sgemm("never-slower-h200.json", "uniform", (2048, 4096, 8192))
H100 = sgemm("never-slower.json", "uniform", (1024, 1536, 2048, 4096, 8192))
WIDE = sgemm("never-slower.json", "phi:8", (1024, 1536, 2048, 4096, 8192))
FP64 = peers("fp64", "f64", 4096, 8192, 16384)
PREPARED = bench("sgemm-prepared.json.xz", "auto")
FIGURES = {
    "README.md": [
        ("{:.1f} to {:.1f} times cuBLAS SGEMM at n = 2048 to 8192", NARROW),
        ("{:.1f} to {:.1f} times from n = 1024, on wide-range data {:.2g} to {:.2g}", (*H100, *WIDE)),
        ("{:.1f} times cuBLAS DGEMM at n = 4096, {:.1f} from 8192", FP64[:2]),
        ("correctly rounded FP64, {:.1f} times DGEMM at n = 8192", peers("exact", "f64", 8192)),
    ],
    "docs/FEATURES.md": [
        ("FP32, default, n = 2048 to 8192 | {:.1f} to {:.1f} times SGEMM", NARROW),
        ("FP32, default, n = 1024 to 8192 | {:.1f} to {:.1f} times SGEMM, {:.2g} to {:.2g} on data of wide range", (*H100, *WIDE)),
        ("default | {:.1f} to {:.1f} times SGEMM", (min(PREPARED), max(PREPARED))),
        ("n = 4096, 8192 | {:.1f} and {:.1f} times CGEMM", bench("fp64-cgemm.json.xz", "fp32", 4096)),
        ("n = 4096, 8192, 16384 | {:.1f}, {:.1f}, {:.1f} times DGEMM", FP64),
        ("complex FP64, n = 8192 | {:.1f} times ZGEMM", peers("fp64", "c64", 8192)),
        ("`exact`, n = 8192 | {:.0f} TFLOP/s, {:.1f} times DGEMM", tflops("exact", 8192) + peers("exact", "f64", 8192)),
    ],
}


def rows(page):
    text = (SOURCE / page).read_text()
    assert text.count(TABLES[page]) == 1
    return text[text.index(TABLES[page]):].split("\n\n")[0].splitlines()[2:]


@pytest.mark.parametrize("page", FIGURES)
def test_speeds_of_gpus_are_those_of_the_recorded_runs(page):
    found = rows(page)
    for sentence, values in FIGURES[page]:
        written = sentence.format(*values)
        assert any(written in row for row in found), f"{page}: the recorded results say: {written}"
    devices = [row for row in found if re.match(r"\| H[12]00", row)]
    assert len(devices) == len(FIGURES[page]), "a row about a device of which no recorded run is known here"


def test_the_error_of_fp64_is_what_the_readme_says():
    """"A tenth" is that of the sizes together: the mean of their ratios."""
    errors = [{row["name"]: row["error"] for row in case["rows"]} for case in load("peers-fp64.json")["cases"]
              if case["type"] == "f64" and case["phi"] == 0.5 and case["beta"] == 0 and case["shape"][0] >= 4096]
    shares = [found["fp64"] / found["cuBLAS native"] for found in errors]
    assert "a tenth of its error" in (SOURCE / "README.md").read_text() and round(sum(shares) / len(shares), 1) == 0.1


def figures(words):
    """Numbers of a row that are measured: those with a decimal point and those before "times", but for the first cell."""
    words = re.sub(r"\]\([^)]*\)", "", words.split("|", 2)[2])
    return re.findall(r"\b\d+\.\d+\b", words) + re.findall(r"\b(\d+)(?: to \d+)? times", words) + re.findall(r"\bto (\d+) times", words)


def rounds(figure, number):
    return round(float(number), len(figure.partition(".")[2])) == float(figure)


def unfounded(page, row):
    """Figures of a row that round no number in the Markdown pages that the row cites."""
    cited = [(SOURCE / page).parent / link for link in LINK.findall(row)]
    numbers = [number for file in cited if file.suffix == ".md" for number in re.findall(r"\d+(?:\.\d+)?", file.read_text())]
    return [figure for figure in figures(row) if not any(rounds(figure, number) for number in numbers)]


@pytest.mark.parametrize("page", TABLES)
def test_other_figures_stand_in_the_pages_that_are_cited(page):
    measured = [row for row in rows(page) if figures(row) and not re.match(r"\| H[12]00", row)]
    assert len(measured) >= 3
    assert [unfounded(page, row) for row in measured] == [[]] * len(measured)


def test_an_unfounded_figure_is_found():
    assert unfounded("README.md", "| a | 0.33 of it, 9 to 447 times ([log](lab/results/log/2026-11-22-cpu-amx.md)) |") == ["0.33"]
