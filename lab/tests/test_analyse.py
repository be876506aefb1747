"""kintsugi-lab analyse mixpert."""

import pytest


@pytest.fixture(scope="module")
def quick():
    return ["analyse", "mixpert", "--samples", "20000", "--tiles", "5", "--sizes", "64,96"]


def test_help(program):
    for words in (["analyse"], ["analyse", "mixpert"]):
        text = program.ok(*words, "--help").stdout
        assert "Example:\n  kintsugi-lab analyse mixpert" in text
    assert "--json" in text


def test_text(program, quick):
    text = program.ok(*quick).stdout
    for words in ("7.153e-07", "9.537e-07", "exponent=pair", "fail Eq. 9", "packing"):
        assert words in text


def test_json(program, quick, validate):
    result = program.ok(*quick, "--json").json()
    validate(result, "analysis")
    products = result["products"]
    assert products["expectation"] == pytest.approx(2.82e-7, rel=0.01)
    assert products["worst"] == pytest.approx(7.15e-7, rel=0.001)
    assert products["worst_nearest"] == 2.0**-20
    assert products["simulated_nearest"]["largest"] <= 2.0**-20 * 1.02
    narrow, wide = result["ranges"][0], result["ranges"][-1]
    assert narrow["failing"] == 0 and wide["failing"] == 1
    assert narrow["segments"] < wide["segments"]
    last = result["pairs"][-1]
    assert last["operand"] < 5e-7 and last["pair"] > 0.5
    assert [row["size"] for row in result["overheads"]] == [64, 96]


def test_same_seed_same_errors(program, quick):
    first, second = (program.ok(*quick, "--seed", "3", "--json").json() for _ in range(2))
    for part in ("products", "ranges", "pairs"):
        assert first[part] == second[part]


@pytest.mark.parametrize("words", [["--samples", "0"], ["--sizes", "0"], ["--sizes", "x"], ["--seed", "-1"]])
def test_bad_input(program, words):
    program.bad("analyse", "mixpert", *words)
