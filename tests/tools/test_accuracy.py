"""kintsugi accuracy: rows, exact numbers, bounds, continuation, bad input."""

import itertools
import json
import os
import resource
from fractions import Fraction

import numpy
import pytest
from test_json import accept

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


def test_rows_and_schema(program):
    flags = ["--distributions", "uniform,phi:2", "--seeds", "1,5", "--engines", "reference,cpu"]
    document = program.ok("accuracy", *TINY, *flags, "--json", environment=ONE_THREAD).json()
    accept(document, "accuracy")
    rows = document["rows"]
    assert len({key(row) for row in rows}) == len(rows) == 2 * 2 * 2 * 2 * 3
    assert document["settings"]["shapes"] == ["3x2x1", "3x2x7"]
    for row in rows:
        native = row["scheme"] == "native"
        assert (row["bound"] is None) == native and (row["baseline"] is None) == native
        assert row["errors"]["elements_checked"] == 6
        if not native:
            assert row["baseline"]["engine"] == row["engine"]
            assert row["accumulator"] == {"reference": "h200", "cpu": "fp32"}[row["engine"]]
            assert row["bound"]["held"] == (True if row["bound"]["in_window"] else None)


def test_all_accumulators_and_shapes(program):
    flags = ["--schemes", "fp16,native", "--accumulators", "all", "--shapes", "1x2x3,4x4x4", "--max-elements", "3"]
    document = program.ok("accuracy", *flags, "--json").json()
    engines = program.ok("engines", "--json").json()["engines"]
    (reference,) = [engine for engine in engines if engine["name"] == "reference"]
    names = [*reference["accumulators"]["fp16"], None]
    assert [row["accumulator"] for row in document["rows"]] == names * 2
    assert [row["problem"] for row in document["rows"]][:: len(names)] == [
        {"m": 1, "n": 2, "k": 3, "type": "fp32"},
        {"m": 4, "n": 4, "k": 4, "type": "fp32"},
    ]
    named = program.ok("accuracy", "--schemes", "fp16", "--accumulators", "v100", "--shapes", "2x2x2", "--json")
    assert named.json()["rows"][0]["accumulator"] == "v100"


def long_double_sum(row, column):
    """One after the other along k, in numpy's long double."""
    total = numpy.longdouble(0)
    for x, y in zip(row, column):
        total += numpy.longdouble(x) * numpy.longdouble(y)
    return total


def fractions(array):
    return [[Fraction(float(x)) for x in row] for row in array]


def test_numbers_are_those_of_exact_arithmetic(program):
    """The fp16 product of 3 x 5 and 5 x 2 with fp32 sums, by fractions and numpy's roundings."""
    flags = ["--schemes", "fp16", "--accumulators", "fp32", "--shapes", "3x2x5", "--seeds", "9"]
    (row,) = program.ok("accuracy", *flags, "--json").json()["rows"]
    program.ok("generate", "uniform", "3x5", "-o", "A.npy", "--seed", "9", "--side", "a")
    program.ok("generate", "uniform", "5x2", "-o", "B.npy", "--seed", "9", "--side", "b")
    a, b = program.load("A.npy"), program.load("B.npy")
    reference = ["--engine", "reference"]
    program.ok("gemm", "A.npy", "B.npy", "-o", "C.npy", "--scheme", "fp16", *reference, "--accumulator", "fp32")
    program.ok("gemm", "A.npy", "B.npy", "-o", "S.npy", "--policy", "native", *reference)
    exact_a, exact_b, computed = fractions(a), fractions(b), fractions(program.load("C.npy"))
    native = fractions(program.load("S.npy"))
    errors, relative, componentwise, squares, norm = [], [], [], Fraction(0), Fraction(0)
    from_native, from_long_double = [], []
    for i in range(3):
        for j in range(2):
            exact = sum(exact_a[i][l] * exact_b[l][j] for l in range(5))
            absolute = sum(abs(exact_a[i][l] * exact_b[l][j]) for l in range(5))
            error = abs(computed[i][j] - exact)
            errors.append(error)
            relative.append(error / abs(exact))
            componentwise.append(error / absolute)
            squares += error**2
            norm += exact**2
            from_native.append(abs(computed[i][j] - native[i][j]) / abs(native[i][j]))
            from_long_double.append(abs(float(computed[i][j]) / long_double_sum(a[i], b[:, j]) - 1))
    measured = row["errors"]
    close = lambda x: pytest.approx(float(x), rel=1e-12)
    assert measured["largest_error"] == close(max(errors))
    assert measured["max_relative"] == close(max(relative))
    assert measured["mean_relative"] == close(sum(relative) / 6)
    assert measured["max_componentwise"] == close(max(componentwise))
    assert measured["frobenius_relative"] == pytest.approx(float(squares / norm) ** 0.5, rel=1e-12)
    assert measured["contract_bound"] == 13 * 2.0**-24
    assert measured["le_gemm_mred"] == close(sum(from_native) / 6)
    if numpy.finfo(numpy.longdouble).nmant == 63:
        assert measured["mean_relative_long_double"] == pytest.approx(float(sum(from_long_double) / 6), rel=1e-9)
    else:
        assert measured["mean_relative_long_double"] is None


def test_fp64(program):
    """Operands, results, contract and exact reference are fp64; schemes that do not take it have no rows."""
    flags = ["--schemes", "fp16,split-n,native", "--m", "3", "--n", "2", "--k", "1,7", "--types", "fp32,fp64"]
    document = program.ok("accuracy", *flags, "--json").json()
    accept(document, "accuracy")
    assert document["settings"]["types"] == ["fp32", "fp64"]
    rows = [row for row in document["rows"] if row["problem"]["type"] == "fp64"]
    assert [(row["problem"]["k"], row["scheme"]) for row in rows] == list(itertools.product((1, 7), ("split-n", "native")))
    assert len(document["rows"]) == 2 * 3 + 2 * 2
    for row in rows:
        assert row["errors"]["contract_bound"] == (row["problem"]["k"] + 8) * 2.0**-53
        # Two fp16 slices have 22 bits of 53.
        assert row["errors"]["within_contract_bound"] == (row["scheme"] == "native")
    assert rows[1]["errors"]["correctly_rounded_fraction"] == 1, "native, k = 1: one rounding"
    # Without names those that take the type.
    taken = {row["scheme"] for row in program.ok("accuracy", "--types", "fp64", "--shapes", "2x2x2", "--json").json()["rows"]}
    assert taken == {name for name, scheme in described(program).items() if "fp64" in scheme["operands"]} | {"native"}


def test_histograms(program, measured):
    """The distribution of (C - S) / |S|, from the files of the same product."""
    flags = ["--schemes", "fp16,native", "--accumulators", "fp32", "--shapes", "16x12x5", "--seeds", "3"]
    document = program.ok("accuracy", *flags, "--histogram", "--json").json()
    accept(document, "accuracy")
    row, native_row = document["rows"]
    assert document["settings"]["histogram"] is True and native_row["histogram"] is None
    edges = row["histogram"]["edges"]
    assert edges == sorted(edges) and edges == [-x for x in reversed(edges)]
    assert edges[-1] == 1 and edges[len(edges) // 2] == pytest.approx(1e-10) and len(edges) == 2 * 81
    program.ok("generate", "uniform", "16x5", "-o", "A.npy", "--seed", "3", "--side", "a")
    program.ok("generate", "uniform", "5x12", "-o", "B.npy", "--seed", "3", "--side", "b")
    gemm = ["gemm", "A.npy", "B.npy", "--engine", "reference", "-o"]
    program.ok(*gemm, "C.npy", "--scheme", "fp16", "--accumulator", "fp32")
    program.ok(*gemm, "S.npy", "--policy", "native")
    computed, native = program.load("C.npy").astype("f8"), program.load("S.npy").astype("f8")
    places = numpy.searchsorted(edges, ((computed - native) / abs(native)).ravel(), side="right")
    counts = row["histogram"]["counts"]
    assert counts == numpy.bincount(places, minlength=len(edges) + 1).tolist()
    assert sum(count > 0 for count in counts) > 10 and sum(counts) == 16 * 12
    # In a plan it is a member; a file without it is not continued with it.
    (program.folder / "plan.json").write_text(json.dumps({"schemes": "fp16", "k": 4, "histogram": True}))
    assert all(row["histogram"] for row in measured("--plan", "plan.json")["rows"])
    message = program.bad("accuracy", "--schemes", "fp16", "--k", "4", "-o", "r.json")
    assert message.startswith("r.json: its histogram is true and ours is false; ")


def test_the_window_decides_whether_the_bound_is_held(program):
    flags = ["--schemes", "fp16x3,fp16x3-wide", "--distributions", "span:16,span:17,span:28,span:29", "--shapes", "8x8x8"]
    rows = program.ok("accuracy", *flags, "--json").json()["rows"]
    window = {(row["distribution"], row["scheme"]): row["bound"]["in_window"] for row in rows}
    for span in (16, 17, 28, 29):
        assert window[f"span:{span}", "fp16x3"] == (span <= 16)
        assert window[f"span:{span}", "fp16x3-wide"] == (span <= 28)


def described(program):
    """The library's schemes by name."""
    return {scheme["name"]: scheme for scheme in program.ok("schemes", "--json").json()["schemes"]}


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
    flags = ["--types", "fp32,fp64", "--distributions", "uniform,offset:15,integer:127", "--m", "5", "--n", "7", "--k", "1,70"]
    result = program("accuracy", "--schemes", ",".join(schemes), *flags, "--json", environment=ONE_THREAD)
    assert {row["scheme"] for row in result.json()["rows"] if row["bound"]["held"]} == set(schemes)
    assert "rows are left out, the first: offset:15, split-n:format=fp8_e5m2:scale=8:block=32: " in result.stderr


def test_parameters_may_choose_the_format(program):
    """An accumulator that the scheme's default format does not have."""
    flags = ["--schemes", "split-n:format=bf16:a=3:b=3", "--accumulators", "amx-bf16,v100", "--shapes", "4x4x4"]
    (row,) = program.ok("accuracy", *flags, "--json").json()["rows"]
    assert (row["scheme"], row["accumulator"]) == ("split-n:format=bf16:a=3:b=3", "amx-bf16")


def test_a_plan_is_a_file(program, measured):
    plan = {"description": "for its readers", "schemes": ["fp16x3", "native"], "m": 2, "n": 2, "k": [3, "4"], "seeds": [1]}
    (program.folder / "plan.json").write_text(json.dumps(plan))
    assert [row["problem"]["k"] for row in measured("--plan", "plan.json")["rows"]] == [3, 3, 4, 4]
    # A flag replaces the plan's list.
    assert len(program.ok("accuracy", "--plan", "plan.json", "--k", "5", "--json").json()["rows"]) == 2


def without_times(document):
    for row in document["rows"]:
        row["time"] = None
        if row["baseline"]:
            row["baseline"]["time"] = None
    return document


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
        ({"format": "kintsugi.gemm"}, "r.json: is there and is no file of kintsugi accuracy"),
        ({"rows": [{}]}, "r.json: is no file of kintsugi accuracy that can be continued"),
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
        f"kintsugi: accuracy: 1 of 6 rows are beyond their scheme's a-priori bound, the first: {name}\n"
    )


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


def test_rows_that_a_scheme_refuses_are_left_out(program):
    """h2sgemm refuses magnitudes from 2^16 on, by its own word."""
    flags = ["--schemes", "h2sgemm:sb=6,native", "--distributions", "uniform,offset:20", "--shapes", "4x4x4"]
    result = program("accuracy", *flags, "--json")
    assert result.status == 0
    found = [(row["distribution"], row["scheme"]) for row in json.loads(result.stdout)["rows"]]
    assert found == [("uniform", "h2sgemm:sb=6"), ("uniform", "native"), ("offset:20", "native")]
    assert result.stderr.startswith("kintsugi accuracy: 1 rows are left out, the first: offset:20, h2sgemm:sb=6: ")
    flags[3] = "offset:20"
    table = program("accuracy", *flags, "-o", "refused.json").stdout
    (line,) = [line.split() for line in table.splitlines() if "h2sgemm" in line]
    assert line[4:7] == ["0", "-", "-"], "no row has no error"
    (program.folder / "refused.json").unlink()
    message = program.bad("accuracy", "--schemes", "h2sgemm:sb=x", "-o", "r.json")
    assert message.startswith("h2sgemm:sb=x: ") and program.files() == ["home"]


@pytest.mark.parametrize(
    "text,message",
    [
        ("[", "plan.json: is not a JSON object"),
        ('{"shape": []}', 'plan.json: "shape" is no member of a sweep'),
        ('{"k": [1.5]}', 'plan.json: "k" holds 1.5, which is no word and no whole number'),
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


def test_the_environment_does_not_choose(program):
    """The rows' names are what runs."""
    environment = {"KINTSUGI_SCHEME": "markidis", "KINTSUGI_ENGINE": "cpu", "KINTSUGI_ACCUMULATOR": "v100"}
    plain = program.ok("accuracy", *TINY, "--json").json()
    steered = program.ok("accuracy", *TINY, "--json", environment=environment).json()
    assert without_times(steered)["rows"] == without_times(plain)["rows"]


def test_help(program):
    text = program.ok("accuracy", "--help").stdout
    assert "--json" in text and all(len(line) <= 140 for line in text.splitlines())
    lines = text.split("Example:\n")[1].splitlines()
    example = lines[0].split()
    assert example[:2] == ["kintsugi", "accuracy"]
    program.ok(*example[1:])
    accept(json.loads((program.folder / "accuracy.json").read_text()), "accuracy")
