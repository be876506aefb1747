"""Sweeps of kintsugi-lab accuracy, and what their tests read from the rows."""

import json

import pytest

# Products of this size gain nothing from threads, which wait for each other where the machine is busy.
ONE_THREAD = {"KINTSUGI_THREADS": "1"}
TINY = ["--schemes", "fp16,fp16x3,native", "--m", "3", "--n", "2", "--k", "1,7"]


@pytest.fixture
def measured(program):
    """The document of a tiny sweep, in its file."""

    def run(*flags, status=0):
        result = program("accuracy", *flags, "-o", "r.json")
        assert result.status == status, result.stderr
        return json.loads((program.folder / "r.json").read_text())

    return run


def key(row):
    problem = tuple(row["problem"].values())
    return (*problem, *(row[name] for name in ("distribution", "seed", "scheme", "engine", "accumulator")))


def described(program):
    """The library's schemes by name."""
    return {scheme["name"]: scheme for scheme in program.ok("schemes", "--json").json()["schemes"]}


def without_times(document):
    for row in document["rows"]:
        row["time"] = None
        if row["baseline"]:
            row["baseline"]["time"] = None
    return document
