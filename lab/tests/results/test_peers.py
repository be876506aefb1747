"""lab/studies/peers.py: exact sums and the tables of docs/results/peers.md."""

import fractions
import importlib.util
import json
import os
import pathlib

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
RESULTS = SOURCE / "docs" / "results"


def load():
    spec = importlib.util.spec_from_file_location("peers", SOURCE / "lab" / "studies" / "peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_tables_of_the_recorded_figures():
    document = json.loads((RESULTS / "hopper" / "peers-fp64.json").read_text())
    tables = load().tables(document)
    page = (RESULTS / "peers.md").read_text()
    assert all(f"{title}\n\n{table}" in page for title, table in tables.items())
    rows = sum(len(case["rows"]) for case in document["cases"])
    lines = [line for table in tables.values() for line in table.splitlines() if line.startswith("| ")]
    assert sum(line.count(" (") for line in lines) == rows


def test_written_tables_take_the_place_of_those_of_the_page():
    peers = load()
    page = "Rates.\n\nDGEMM:\n\n| | 1 |\n|---|---|\n| a | 2 |\n\nAfter.\n"
    written = peers.with_tables(page, {"DGEMM:": "| | 1 |\n|---|---|\n| a | 3 |"})
    assert written == page.replace("| 2 |", "| 3 |")
    with pytest.raises(SystemExit, match="no table 'ZGEMM:'"):
        peers.with_tables(page, {"ZGEMM:": ""})


@pytest.mark.parametrize("is_complex", (False, True))
def test_references_are_exact_sums_rounded_once(is_complex):
    numpy = pytest.importorskip("numpy")
    peers = load()
    a = peers.random_matrix(numpy, 5, 60, 2, is_complex, 1)
    b = peers.random_matrix(numpy, 60, 4, 2, is_complex, 2)

    def exact(x, y, part):
        numbers = [[fractions.Fraction(float(v)) for v in vector] for vector in (x, y)]
        if not is_complex:
            return sum(p * q for p, q in zip(*numbers))
        (re_x, im_x), (re_y, im_y) = [(vector[::2], vector[1::2]) for vector in numbers]
        if part == 0:
            return sum(p * q - r * s for p, q, r, s in zip(re_x, re_y, im_x, im_y))
        return sum(p * s + r * q for p, q, r, s in zip(re_x, re_y, im_x, im_y))

    known = peers.references(numpy, a, b, [0, 3], [1, 2], is_complex)
    assert len(known) == (8 if is_complex else 4)
    for (i, j, part), (value, magnitude) in known.items():
        row = a[:, [2 * i, 2 * i + 1]].ravel() if is_complex else a[:, i]
        assert value == float(exact(row, b[j], part))
        assert magnitude >= abs(value)
