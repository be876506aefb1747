"""kintsugi-lab accuracy: rows, exact numbers, types, histograms, plans."""

import itertools
import json
from fractions import Fraction

import numpy
import pytest
from accuracy_sweep import ONE_THREAD, TINY, described, key, measured, without_times
from test_json import accept


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


def test_rows_that_a_scheme_refuses_are_left_out(program):
    """h2sgemm refuses magnitudes from 2^16 on, by its own word."""
    flags = ["--schemes", "h2sgemm:sb=6,native", "--distributions", "uniform,offset:20", "--shapes", "4x4x4"]
    result = program("accuracy", *flags, "--json")
    assert result.status == 0
    found = [(row["distribution"], row["scheme"]) for row in json.loads(result.stdout)["rows"]]
    assert found == [("uniform", "h2sgemm:sb=6"), ("uniform", "native"), ("offset:20", "native")]
    assert result.stderr.startswith("kintsugi-lab accuracy: 1 rows are left out, the first: offset:20, h2sgemm:sb=6: ")
    flags[3] = "offset:20"
    table = program("accuracy", *flags, "-o", "refused.json").stdout
    (line,) = [line.split() for line in table.splitlines() if "h2sgemm" in line]
    assert line[4:7] == ["0", "-", "-"], "no row has no error"
    (program.folder / "refused.json").unlink()
    message = program.bad("accuracy", "--schemes", "h2sgemm:sb=x", "-o", "r.json")
    assert message.startswith("h2sgemm:sb=x: ") and program.files() == ["home"]


def test_the_environment_does_not_choose(program):
    """The rows' names are what runs."""
    for name, value in {"KINTSUGI_SCHEME": "markidis", "KINTSUGI_ENGINE": "cpu", "KINTSUGI_ACCUMULATOR": "v100"}.items():
        message = program.bad("accuracy", *TINY, "--json", environment={name: value})
        assert message.startswith(f"{name}: {value} has no effect here, since --schemes")


def test_help(program):
    text = program.ok("accuracy", "--help").stdout
    assert "--json" in text and all(len(line) <= 140 for line in text.splitlines())
    lines = text.split("Example:\n")[1].splitlines()
    example = lines[0].split()
    assert example[:2] == ["kintsugi-lab", "accuracy"]
    program.ok(*example[1:])
    accept(json.loads((program.folder / "accuracy.json").read_text()), "accuracy")
