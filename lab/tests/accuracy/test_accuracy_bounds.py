"""A-priori bounds in the rows of kintsugi-lab accuracy: windows, fitted schemes, parameters, broken bounds."""

import json

from accuracy_sweep import ONE_THREAD, TINY, described, measured


def test_the_window_decides_whether_the_bound_is_held(program):
    flags = ["--schemes", "fp16x3,fp16x3-wide", "--distributions", "span:16,span:17,span:28,span:29", "--shapes", "8x8x8"]
    rows = program.ok("accuracy", *flags, "--json").json()["rows"]
    window = {(row["distribution"], row["scheme"]): row["bound"]["in_window"] for row in rows}
    for span in (16, 17, 28, 29):
        assert window[f"span:{span}", "fp16x3"] == (span <= 16)
        assert window[f"span:{span}", "fp16x3-wide"] == (span <= 28)


def test_every_bound_holds(program):
    """All schemes on all engines, with all accumulators and types."""
    flags = ["--engines", "reference,cpu", "--accumulators", "all", "--m", "9", "--n", "9", "--k", "1,65"]
    distributions = "uniform,uniform01,phi:1,integer:9,powers-of-two:6,cancellation:20,offset:-4,span:16"
    flags += ["--types", "fp32,fp64", "--distributions", distributions]
    rows = program("accuracy", *flags, "--json", environment=ONE_THREAD).json()["rows"]
    held = [row["bound"]["held"] for row in rows if row["bound"]]
    assert held.count(True) > 100 and held.count(False) == 0
    # Integer formats promise their bound for every finite operand, and these are.
    schemes = described(program)
    for row in rows:
        if row["bound"] and schemes[row["scheme"]]["split_a"]["format"] == "int8":
            assert row["bound"]["held"] is True


def test_special_operands_have_no_bound(program):
    flags = ["--distributions", "special:0.5", "--shapes", "8x8x8", "--types", "fp32,fp64", "--json"]
    rows = program.ok("accuracy", "--schemes", ",".join(described(program)), *flags).json()["rows"]
    assert {(row["bound"]["in_window"], row["bound"]["held"]) for row in rows} == {(False, None)}


def test_fitted_schemes_have_the_bound_of_what_ran(program):
    """The report's, where a scheme fits its split to the operands; the plan has that of what was asked for."""
    flags = ["--schemes", "h2sgemm:sb=eq6", "--distributions", "offset:10", "--shapes", "8x8x8", "--seeds", "1"]
    (row,) = program.ok("accuracy", *flags, "--json").json()["rows"]
    program.ok("generate", "offset:10", "8x8", "-o", "A.npy", "--side", "a", "--seed", "1")
    program.ok("generate", "offset:10", "8x8", "-o", "B.npy", "--side", "b", "--seed", "1")
    gemm = ["gemm", "A.npy", "B.npy", "--engine", "reference", "--scheme", "h2sgemm:sb=eq6", "--explain", "--json"]
    ran = program.ok(*gemm).json()["rows"][0]
    adapted = ran["report"]["adapted"]["bound_in_window"]
    assert {name: row["bound"][name] for name in adapted} == adapted
    assert adapted != ran["plan"]["candidates"][0]["bound_in_window"]
    assert row["bound"]["held"] is True


def test_bounds_of_parametrised_schemes_hold(program):
    """Slices, residual scales and blocks that no scheme has by default; residuals that overflow before the element."""
    schemes = ["split-n:a=3:b=1", "split-n:format=fp8_e5m2:scale=8:block=32", "split-n:format=bf16:a=4:b=2:terms=5"]
    schemes += ["split-n:format=fp32:scale=40", "h2sgemm:sb=24", "quantensor:slices=1", "quantensor:slices=3"]
    schemes += ["quantensor:scale=max", "quantensor:slices=1:scale=max", "quantensor:slices=3:scale=max"]
    flags = ["--types", "fp32,fp64", "--distributions", "uniform,offset:15,integer:127", "--m", "5", "--n", "7", "--k", "1,70"]
    result = program("accuracy", "--schemes", ",".join(schemes), *flags, "--json", environment=ONE_THREAD)
    assert {row["scheme"] for row in result.json()["rows"] if row["bound"]["held"]} == set(schemes)
    assert "rows are left out, the first: offset:15, split-n:format=fp8_e5m2:scale=8:block=32: " in result.stderr


def test_a_broken_bound_is_a_failure(program, measured):
    """The row of a file that says so: no scheme of ours gives one."""
    document = measured(*TINY)
    document["rows"][3]["bound"].update(held=False, largest_ratio=1.5)
    (program.folder / "r.json").write_text(json.dumps(document))
    result = program("accuracy", *TINY, "-o", "r.json")
    assert result.status == 1
    row = document["rows"][3]
    name = f"3x2x{row['problem']['k']} fp32 uniform seed 1, {row['scheme']} on reference h200"
    assert result.stderr == (
        f"kintsugi-lab: accuracy: 1 of 6 rows are beyond their scheme's a-priori bound, the first: {name}\n"
    )
