"""kintsugi explain: known operands, predictions that are the product's own errors, bad input."""

import math

import numpy
import pytest
from test_json import accept

SIZES = ["--m", "32", "--n", "24", "--k", "64", "--distribution"]


@pytest.fixture
def explained(program):
    """The document, and its schemes by name."""

    def run(*words):
        document = program.ok("explain", *words, "--json").json()
        accept(document, "explain")
        return document, {row["scheme"]: row for row in document["schemes"]}

    return run


def fewest(row, side="a"):
    return row["retained_bits"][side]["fewest_bits"]


def test_all_schemes_of_the_type(program, explained):
    listed = program.ok("schemes", "--json").json()["schemes"]
    for flags, name in (([], "fp32"), (["--type", "fp64"], "fp64")):
        document, rows = explained(*SIZES, "uniform", *flags)
        assert document["problem"]["type"] == name
        assert list(rows) == [scheme["name"] for scheme in listed if name in scheme["operands"]] + ["native"]
        assert all(row["refusal"] == "" and row["verdict"] for row in rows.values())


def test_an_operand_that_is_split_before(program, explained):
    for words, prepared in (([], None), (["--prepare", "none"], None), (["--prepare", "b"], "b")):
        document, _ = explained(*SIZES, "uniform", *words)
        assert document["problem"]["prepared"] == prepared
    assert "Operand a is split before the call." in program.ok("explain", *SIZES, "uniform", "--prepare", "a").stdout


def kept_by_fp16_pair(scaled, residual_exponent):
    """By numpy's float16: the largest p with an error of at most 2^-p of the number."""
    high = float(numpy.float16(scaled))
    low = float(numpy.float16((scaled - high) * 2.0**residual_exponent)) / 2.0**residual_exponent
    return math.floor(math.log2(abs(scaled) / abs(scaled - high - low)))


def test_a_row_of_two_binades(program, explained):
    """[1, x] with x about 2^-30: fp16 slices cannot hold x beside 1, bf16 can."""
    a = numpy.array([[1, 1.2361 * 2.0**-30]], "f4")
    program.save("A.npy", a)
    program.save("B.npy", numpy.ones((2, 1), "f4"))
    document, rows = explained("A.npy", "B.npy", "--engine", "reference")
    facts = document["operands"]["a"]
    assert (facts["largest_exponent"], facts["smallest_exponent"], facts["widest_span"]) == (0, -30, 30)
    # 1 is scaled to 2^14 and x to 2^-16: what is below 2^-25 is lost, with a residual scaled by 2^12 below 2^-37.
    scaled = float(a[0, 1]) * 2.0**14
    assert fewest(rows["fp16x3"]) == kept_by_fp16_pair(scaled, 0) < 12
    assert fewest(rows["fp16x3-wide"]) == kept_by_fp16_pair(scaled, 12) < 23
    assert fewest(rows["bf16x6"]) == 24
    assert [rows[name]["in_window"] for name in ("fp16x3", "fp16x3-wide", "bf16x6")] == [False, False, True]
    assert fewest(rows["fp16x3"], "b") == 24
    counts = rows["fp16x3"]["retained_bits"]["a"]
    assert (counts["elements"], counts["elements_with_promised_bits"]) == (2, 1)
    default, emulate = document["choices"]
    assert (default["policy"], default["chosen"]) == ("auto", "native")
    assert (emulate["policy"], emulate["chosen"]) == ("emulate", "bf16x6")
    spans = {candidate["scheme"]: candidate["largest_dynamic_range"] for candidate in emulate["candidates"]}
    for name in set(spans) & {"fp16x3", "fp16x3-wide"}:
        text = f"window too narrow: vectors span up to 30 binades, it takes {spans[name]}"
        assert rows[name]["verdict"] == text
    assert rows["bf16x6"]["verdict"].startswith("chosen under policy emulate: ")
    assert rows["native"]["verdict"].startswith("chosen under policy auto: ")


def test_small_numbers_are_outside_h2sgemms_window(explained):
    flags = ["--engine", "reference", "--schemes", "h2sgemm:sb=0,h2sgemm:sb=12,fp16x3,native"]
    _, rows = explained(*SIZES, "offset:-20", *flags)
    assert rows["h2sgemm:sb=0"]["in_window"] is False and rows["h2sgemm:sb=12"]["in_window"] is False
    assert rows["h2sgemm:sb=0"]["meets_contract"] is False and rows["fp16x3"]["meets_contract"] is True
    assert "outside its window" in rows["h2sgemm:sb=0"]["verdict"]
    assert rows["h2sgemm:sb=0"]["bound"]["of_spans"] is None
    _, rows = explained(*SIZES, "offset:0", *flags)
    share = [rows[name]["retained_bits"]["a"] for name in ("h2sgemm:sb=0", "h2sgemm:sb=12")]
    assert share[0]["elements_with_promised_bits"] < share[1]["elements_with_promised_bits"]


def test_what_a_scheme_fits_to_the_operands(explained):
    """From 2^15 on h2sgemm cuts its residual's scale: the split that is explained is the one that runs."""
    _, rows = explained(*SIZES, "offset:16", "--schemes", "h2sgemm:sb=12,h2sgemm:sb=eq6,h2sgemm")
    bits = {name: row["retained_bits"] for name, row in rows.items()}
    assert bits["h2sgemm:sb=eq6"] == bits["h2sgemm"]
    assert rows["h2sgemm:sb=12"]["verdict"].startswith("does not run: h2sgemm: sb=12 overflows ")
    assert fewest(rows["h2sgemm"]) > 0
    _, rows = explained(*SIZES, "offset:17", "--schemes", "h2sgemm,native")
    assert rows["h2sgemm"]["errors"] is None and rows["h2sgemm"]["meets_contract"] is None
    assert rows["h2sgemm"]["verdict"].startswith("does not run: h2sgemm splits magnitudes below 2^16")


def test_predictions_are_errors_of_the_product(program, explained):
    """The sample's elements are those of gemm's whole C: on the reference engine bit for bit."""
    a_file, b_file = "A.npy", "B.npy"
    program.ok("generate", "phi:1", "20x40", "-o", a_file, "--seed", "5")
    program.ok("generate", "phi:1", "40x33", "-o", b_file, "--seed", "5", "--side", "b")
    schemes = ["fp16", "ootomo", "fp16x3"]
    generated = ["--m", "20", "--n", "33", "--k", "40", "--distribution", "phi:1", "--seed", "5"]
    flags = ["--engine", "reference", "--schemes", ",".join(schemes)]
    document, rows = explained(*generated, *flags)
    of_files, rows_of_files = explained(a_file, b_file, *flags)
    assert rows == rows_of_files and document["sample"] == of_files["sample"]
    sampled = numpy.ix_(document["sample"]["rows"], document["sample"]["columns"])
    a, b = program.load(a_file).astype("f8"), program.load(b_file).astype("f8")
    for scheme in schemes:
        program.ok("gemm", a_file, b_file, "-o", "C.npy", "--engine", "reference", "--scheme", scheme)
        error = abs(program.load("C.npy") - a @ b) / (abs(a) @ abs(b))
        predicted = rows[scheme]["errors"]["max_componentwise"]
        assert predicted == pytest.approx(error[sampled].max(), rel=1e-6)


def test_transposed_files(program, explained, random):
    program.save("A.npy", random.standard_normal((40, 20)).astype("f4"))
    program.save("B.npy", random.standard_normal((33, 40)).astype("f4"))
    document, _ = explained("A.npy", "B.npy", "--transa", "T", "--transb", "T", "--schemes", "fp16x3")
    assert [document["problem"][name] for name in "mnk"] == [20, 33, 40]
    assert document["operands"]["b"]["vectors"] == 33 and document["operands"]["b"]["length"] == 40


def test_bounds_are_above_errors(explained):
    for distribution in ("uniform", "span:16", "integer:9"):
        _, rows = explained(*SIZES, distribution, "--engine", "reference")
        inside = [row for row in rows.values() if row["bound"] and row["bound"]["of_sample"] is not None]
        assert len(inside) > 6
        for row in inside:
            # The last rounding is in the sample's bound, and only where there is one in that of the spans.
            assert row["errors"]["max_componentwise"] <= row["bound"]["of_sample"]
            assert row["bound"]["of_sample"] <= row["bound"]["of_spans"] * (1 + 2**-20) + 2**-23
            assert not row["proved"] or row["meets_contract"]


def test_special_values_are_counted(program, explained):
    a = numpy.ones((3, 4), "f4")
    a[0, 0], a[1, 1], a[1, 2], a[2, 3] = numpy.nan, numpy.inf, -numpy.inf, 0
    program.save("A.npy", a)
    program.save("B.npy", numpy.ones((4, 2), "f4"))
    document, rows = explained("A.npy", "B.npy", "--schemes", "fp16x3,native")
    facts = document["operands"]["a"]
    assert (facts["nans"], facts["infinities"], facts["zeros"]) == (1, 2, 1)
    assert rows["fp16x3"]["retained_bits"]["a"]["elements"] == 8
    assert rows["fp16x3"]["in_window"] is False and not rows["native"]["proved"]
    _, rows = explained("A.npy", "B.npy", "--engine", "reference", "--schemes", "fp16,bf16x9")
    text = "no bound is stated for operands with NaN or infinities, of which there are 3"
    assert all(row["verdict"].startswith(text) for row in rows.values())


def test_why_a_proved_scheme_is_in_no_chain(explained):
    document, rows = explained(*SIZES, "uniform", "--engine", "reference")
    widest = max(document["choices"][1]["candidates"], key=lambda candidate: candidate["largest_dynamic_range"] or 0)
    assert widest["scheme"] == "bf16x6"
    words = f"not needed: bf16x6 takes vectors of up to {widest['largest_dynamic_range']} binades, this one of "
    assert rows["bf16x9"]["verdict"].startswith(words)
    own = int(rows["bf16x9"]["verdict"].removeprefix(words).split()[0])
    assert 0 < own <= widest["largest_dynamic_range"]
    assert rows["bf16x9"]["verdict"].endswith(" binades, and costs less, 6 products against 9")


def test_bits_are_those_of_the_operand_that_keeps_least_of_its_promise(program):
    """One slice holds A whole; B's three lose 2^-25, half of fp16's last place, of elements of 2^-8."""
    program.save("A.npy", numpy.ones((1, 2), "f4"))
    program.save("B.npy", numpy.full((2, 1), 2.0**-8 + 2.0**-25, "f4"))
    scheme = "split-n:format=fp16:a=1:b=3"
    rows = program.ok("explain", "A.npy", "B.npy", "--schemes", scheme, "--json").json()["schemes"]
    a, b = (rows[0]["retained_bits"][side] for side in "ab")
    assert (a["fewest_bits"], a["promised_bits"]) == (24, 11) and (b["fewest_bits"], b["promised_bits"]) == (17, 24)
    text = program.ok("explain", "A.npy", "B.npy", "--schemes", scheme).stdout
    assert " 17 of 24 " in text


def test_zero_operands(program, explained):
    program.save("A.npy", numpy.zeros((3, 4), "f4"))
    program.save("B.npy", numpy.ones((4, 2), "f4"))
    document, rows = explained("A.npy", "B.npy", "--schemes", "fp16,fp16x3,native")
    assert document["operands"]["a"]["largest_exponent"] is None
    assert all(row["errors"]["max_componentwise"] == 0 and row["meets_contract"] for row in rows.values())


def test_accuracy_and_what_it_excludes(explained):
    document, rows = explained(*SIZES, "uniform", "--accuracy", "1e-5", "--engine", "reference")
    assert document["contract"] == {"accuracy": "1e-5", "coefficient": 1e-5}
    assert rows["bf16x3"]["verdict"].startswith("not proved: its bound, ")
    assert rows["fp16"]["meets_contract"] is False
    # Smaller products are summed exactly, without residues.
    large = ["--m", "400", "--n", "400", "--k", "64", "--distribution"]
    document, rows = explained(*large, "uniform", "--accuracy", "exact")
    chosen = [choice["chosen"] for choice in document["choices"]]
    # Without fast int8 products exact sums take less time at every size.
    by_residues = "avx512bw" in open("/proc/cpuinfo").read()
    assert chosen[0] == chosen[1] and all(name.startswith("ozaki2:moduli=" if by_residues else "superaccumulator") for name in chosen)
    if by_residues:
        assert [candidate["checked"] for candidate in document["choices"][0]["candidates"]] == [True, True, True, True, False]
        assert rows["ozaki2"]["verdict"].endswith(": " + ", ".join(
            candidate["scheme"] for candidate in document["choices"][0]["candidates"][:-1]))
        assert rows["superaccumulator"]["verdict"] == "the fallback chain's last candidate: for elements that fail the checks of all others"
        assert rows["ozaki2"]["meets_contract"]
    assert rows["native"]["verdict"] == "not proved to keep the 0 |A||B| of accuracy exact"
    assert not rows["fp16x3"]["meets_contract"]
    assert [name for name, row in rows.items() if row["proved"]] == ["superaccumulator"]
    document, rows = explained(*SIZES, "uniform", "--accuracy", "1e-30")
    assert [choice["chosen"] for choice in document["choices"]] == [None, None]
    assert document["choices"][0]["reason"].startswith('accuracy "1e-30" allows ')
    assert not any(row["proved"] for row in rows.values())


def test_the_settings_count(program):
    words = [*SIZES, "uniform", "--schemes", "fp16", "--json"]
    document = program.ok("explain", *words, environment={"KINTSUGI_ACCURACY": "1e-3"}).json()
    assert document["contract"]["accuracy"] == "1e-3"
    document = program.ok("explain", *words, environment={"KINTSUGI_SCHEME": "egemm"}).json()
    assert [choice["chosen"] for choice in document["choices"]] == ["egemm", "egemm"]
    assert document["schemes"][0]["verdict"] == "not considered: the settings name egemm, so there is no fallback chain"


def test_text(program):
    text = program.ok("explain", *SIZES, "phi:2", "--seed", "3").stdout
    lines = text.splitlines()
    assert lines[0] == "32 x 24 result, inner length 64, fp32: phi:2, seed 3"
    for word in ("rows of op(A)", "keep all", "policy auto: native; ", "policy emulate: ", "why, why not"):
        assert word in text
    assert max(len(line) for line in lines) < 160


@pytest.mark.parametrize(
    "words,message",
    [
        ([], "A: is missing: give two files, or --m, --n, --k and --distribution"),
        (["none.npy", "B.npy"], "none.npy: "),
        (["A.npy"], "B: is missing"),
        (["A.npy", "A.npy"], "A.npy: A is 3 x 4 and B is 3 x 4: the inner dimensions 4 and 3 differ"),
        (["A.npy", "B.npy", "--distribution", "uniform"], "--distribution: A.npy is given: "),
        (["A.npy", "B.npy", "--schemes", "fp15"], '--schemes: "fp15" is not known; did you mean fp16? Accepted: '),
        (["A.npy", "B.npy", "--schemes", "h2sgemm:sb=x"], "--schemes: "),
        (["A.npy", "B.npy", "--engine", "abacus"], '--engine: there is no engine "abacus"'),
        (["A.npy", "B.npy", "--accuracy", "great"], "--accuracy: "),
        (["E.npy", "E.npy", "--transb", "T"], "E.npy: the product is 0 x 0 with inner length 4: there is nothing"),
        ([*SIZES, "gaussian"], "--distribution: "),
        ([*SIZES, "offset:500"], "--distribution: "),
        ([*SIZES, "uniform", "--seed", "one"], '--seed: "one" is not an integer'),
        ([*SIZES, "uniform", "--type", "fp16"], '--type: "fp16" is not accepted; accepted: fp32, fp64'),
        ([*SIZES, "uniform", "--transa", "T"], "--transa: requires A"),
        (["--m", "3", "--n", "4", "--distribution", "uniform"], "--k: is missing"),
        (["--m", "0", "--n", "4", "--k", "1", "--distribution", "uniform"], '--m: "0" is not a whole number from 1 up'),
        (["--m", "9000000000", "--n", "4", "--k", "90000", "--distribution", "uniform"], "--m: "),
        (["--m", "3", "--n", "4", "--k", "5"], "--distribution: is missing"),
        (["--nonsense"], "--nonsense: is not known here"),
    ],
)
def test_bad_input(program, words, message):
    program.save("A.npy", numpy.ones((3, 4), "f4"))
    program.save("B.npy", numpy.ones((4, 2), "f4"))
    program.save("E.npy", numpy.ones((0, 4), "f4"))
    assert program.bad("explain", *words).startswith(message)
