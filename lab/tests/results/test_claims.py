"""The registered claims: their schema, the verdicts that the program and the pages make of them, and their index."""

import json
import math
import os
import pathlib
import re
import subprocess
import sys

import pytest
from test_json import accept
from test_reproduce import FIGURES

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
RESULTS = SOURCE / "lab" / "results"
STUDIES = SOURCE / "lab" / "studies"
sys.path.insert(0, str(STUDIES))
import recorded  # noqa: E402
import registry  # noqa: E402

PAGES = ("accuracy.md", *(f"../../docs/results/hopper-{part}.md" for part in ("sgemm", "fp64", "programs")))
DEVICE_STUDIES = ("hopper-sgemm", "hopper-fp64", "hopper-programs")


@pytest.fixture(scope="module")
def document():
    return json.loads((RESULTS / "claims.json").read_text())


@pytest.fixture(scope="module")
def reproduction():
    return recorded.read(RESULTS / "reproduction.json.xz")


def of_program(reproduction):
    return {claim["id"]: claim for figure in reproduction["figures"] for claim in figure["claims"]}


def claims_tool(*words):
    return subprocess.run([sys.executable, STUDIES / "claims.py", *map(str, words)], capture_output=True, text=True)


# ---------------------------------------------------------------- the registry

def test_the_registry_is_valid(document):
    accept(document, "claims")
    claims = document["claims"]
    assert len({claim["id"] for claim in claims}) == len(claims)
    for claim in claims:
        assert claim["study"] in (None, *FIGURES, *DEVICE_STUDIES), claim["id"]
        names = [series["name"] for series in claim["series"]]
        assert len(set(names)) == len(names), claim["id"]
        if claim["study"] is None:
            assert claim["reason"] and not names, claim["id"]
        else:
            assert names and all(series.get("criterion", claim["criterion"]) for series in claim["series"]), claim["id"]
        assert claim["reason"] or claim["decided"] == "here", claim["id"]
        alternatives = ["alternative" in series for series in claim["series"]]
        assert all(alternatives) or not any(alternatives), claim["id"]


def test_every_form_and_verdict_is_explained(document):
    rules = document["rules"]
    used = {criterion["form"] for claim in document["claims"] for series in claim["series"]
            for criterion in [series.get("criterion", claim["criterion"])]}
    assert used <= rules["forms"].keys() and tuple(rules["verdicts"]) == registry.VERDICTS


def test_figures_measure_the_claims_that_are_registered(program, document, reproduction):
    expected = {}
    for claim in document["claims"]:
        if claim["study"] in FIGURES:
            expected.setdefault(claim["study"], set()).add(claim["id"])
    listed = program.ok("reproduce", "--list", "--json").json()["figures"]
    assert {figure["name"]: figure["claims"] for figure in listed} == {name: len(expected.get(name, ())) for name in FIGURES}
    assert {figure["name"]: {claim["id"] for claim in figure["claims"]} for figure in reproduction["figures"]} == expected


def test_no_claim_of_a_direction_is_met_by_the_opposite(document):
    directed = [claim for claim in document["claims"] if re.search("times smaller than|smaller than with|is quicker than", claim["claim"])]
    assert len(directed) >= 22
    for claim in directed:
        for series in claim["series"]:
            assert not registry.meets(series.get("criterion", claim["criterion"]), [0.99]), claim["id"]


# ---------------------------------------------------------------- criteria

@pytest.mark.parametrize("criterion, held, missed", [
    ({"form": "at_most", "limit": 2}, [1, 2], [1, 2.1]),
    ({"form": "at_least", "limit": 2}, [3, 2], [3, 1.9]),
    ({"form": "less_than", "limit": 2}, [1, 1.9], [1, 2]),
    ({"form": "more_than", "limit": 2}, [3, 2.1], [3, 2]),
    ({"form": "equals", "value": 66}, [66, 66], [66, 55]),
    ({"form": "between", "low": 10, "high": 100}, [10, 100], [10, 481]),
    ({"form": "within_factor", "of": 4, "factor": 2}, [2, 8], [2, 8.1]),
    ({"form": "rising", "tolerance": 0}, [10, 11, 11], [10, 9, 11]),
    ({"form": "rising", "tolerance": 0.2}, [1, 0.8, 2], [1, 0.79, 2]),
    ({"form": "rising", "tolerance": 0.2}, [1, 1.1], [1, 1]),
    ({"form": "steady", "tolerance": 0.2}, [1, 1.2], [1, 1.21]),
])
def test_criteria(criterion, held, missed):
    assert registry.meets(criterion, held) and not registry.meets(criterion, missed)


def claim_with(*alternatives, decided="here", study="study-types"):
    series = [{"name": f"{name} {i}", **({"alternative": name} if name else {})} for name in alternatives for i in (1, 2)]
    return {"id": "x", "decided": decided, "study": study, "reason": "why", "series": series,
            "criterion": {"form": "at_most", "limit": 1}}


def test_every_series_has_to_meet_the_criterion():
    claim = claim_with("")
    assert registry.judge(claim, {" 1": [1], " 2": [0.5, 1]}) == ("agrees", "")
    assert registry.judge(claim, {" 1": [1], " 2": [0.5, 1.1]}) == ("disagrees", "Misses the criterion:  2.")
    assert registry.judge(claim, {" 1": [1]})[0] == registry.judge(claim, {" 1": [1], " 2": []})[0] == "not measured"
    assert registry.judge(claim_with("", study=None), {}) == ("not measured", "why")
    assert registry.judge(claim_with("", decided="nowhere"), {" 1": [1], " 2": [1]}) == ("cannot be decided here", "why")
    for decided, word in (("by prediction", "predicted"), ("on another chip", "holds on another chip")):
        claim = claim_with("", decided=decided)
        assert registry.judge(claim, {" 1": [1], " 2": [1]}) == (word, "why")
        assert registry.judge(claim, {" 1": [1], " 2": [2]}) == ("cannot be decided here", "why Misses the criterion:  2.")
        assert registry.judge(claim, {" 1": [1]})[0] == "not measured"
    assert registry.judge(claim_with("", decided="by the paper's figures"), {" 1": [2], " 2": [1]})[0] == "disagrees"
    with pytest.raises(ValueError, match="no series 'other'"):
        registry.judge(claim, {"other": [1]})


def test_alternatives_have_to_agree():
    claim = claim_with("a", "b")
    values = {"a 1": [1], "a 2": [1], "b 1": [1], "b 2": [1]}
    assert registry.judge(claim, values)[0] == "agrees"
    assert registry.judge(claim, values | {"b 2": [2]})[0] == "cannot be decided here"
    assert registry.judge(claim, values | {"b 2": [2], "a 1": [math.inf]})[0] == "disagrees"


def test_the_program_judges_as_the_pages_do(document, reproduction):
    claims = registry.load()
    measured = of_program(reproduction)
    assert measured.keys() == {claim["id"] for claim in document["claims"] if claim["study"] in FIGURES}
    for name, claim in measured.items():
        values = {series["series"]: list(map(registry.number_of, series["values"])) for series in claim["measured"]}
        assert registry.judge(claims[name], values)[0] == claim["verdict"], name
        assert claim["claim"] == claims[name]["claim"] and claim["theirs"] == claims[name]["stated"]


# ---------------------------------------------------------------- verdicts follow the rows

def verdicts_of(program, figure):
    result = program("reproduce", figure, "-o", "out", "--recorded", "--json")
    assert result.status == 0, result.stderr
    return {claim["id"]: claim for claim in json.loads(result.stdout)["figures"][0]["claims"]}


def with_recorded(program, figure):
    """The recorded rows of a figure, in the program's folder."""
    (program.folder / "out").mkdir(exist_ok=True)
    recorded.unpack(list((RESULTS / "papers").glob(f"{figure}*.json.xz")), program.folder / "out")
    return program.folder / "out" / f"{figure}.json"


@pytest.mark.parametrize("figure", ["h2sgemm-table1", "h2sgemm-fig2", "h2sgemm-fig8", "h2sgemm-fig9", "le-gemm-fig12-13",
                                    "le-gemm-fig16", "study-terms", "mixpert-fig2", "dgemm-tc-fig3", "dgemm-tc-fig5"])
def test_recorded_verdicts_are_the_programs(program, reproduction, figure):
    with_recorded(program, figure)
    kept = of_program(reproduction)
    for name, claim in verdicts_of(program, figure).items():
        assert (claim["verdict"], claim["reason"]) == (kept[name]["verdict"], kept[name]["reason"]), name


def test_rows_without_places_do_not_serve_table_1(program):
    file = with_recorded(program, "h2sgemm-table1")
    data = json.loads(file.read_text())
    for row in data["rows"]:
        for bits in row["retained"]:
            del bits["fewest_places"]
    file.write_text(json.dumps(data))
    claim = verdicts_of(program, "h2sgemm-table1")["h2sgemm-loss-markidis"]
    assert claim["verdict"] == "not measured" and "run the figure again" in claim["reason"]


def test_a_changed_row_changes_the_verdict(program):
    file = with_recorded(program, "study-types")
    before = verdicts_of(program, "study-types")
    assert before["study-ootomo"]["verdict"] == "agrees"
    for one in (file, file.with_name("study-types-positive.json")):  # every alternative
        data = json.loads(one.read_text())
        for row in data["rows"]:
            if row["scheme"] == "ootomo" and row["distribution"].startswith("type2"):
                row["errors"]["mean_relative_long_double"] = 1e3
        one.write_text(json.dumps(data))
    after = verdicts_of(program, "study-types")
    assert after["study-ootomo"]["verdict"] == "disagrees" and "type2" in after["study-ootomo"]["reason"]
    assert after["own-long-double"]["verdict"] == before["own-long-double"]["verdict"]


def set_errors(file, measure, value, **key):
    """Sets an error of a file's rows with these members; how many there were."""
    data = json.loads(file.read_text())
    rows = [row for row in data["rows"] if all(row[name] == wanted for name, wanted in key.items())]
    for row in rows:
        row["errors"][measure] = value
    file.write_text(json.dumps(data))
    return len(rows)


# One variant of what the paper leaves open does not decide a claim alone.
@pytest.mark.parametrize("figure, part, claim, measure, value, key", [
    ("study-types", "-positive", "study-ootomo", "mean_relative_long_double", 1e3, {"scheme": "ootomo", "distribution": "type2, positive"}),
    ("le-gemm-fig10-11", "-openblas", "le-gemm-mred-grows", "le_gemm_mred", 1e-12, {"scheme": "legemm"}),
])
def test_an_alternative_beside_the_sweep_can_leave_a_claim_undecided(program, figure, part, claim, measure, value, key):
    file = with_recorded(program, figure)
    assert verdicts_of(program, figure)[claim]["verdict"] == "agrees"
    assert set_errors(file.with_name(f"{figure}{part}.json"), measure, value, **key) > 0
    assert verdicts_of(program, figure)[claim]["verdict"] == "cannot be decided here"


def test_hgemm_is_judged_by_fp16_results_too(program):
    file = with_recorded(program, "h2sgemm-fig8").with_name("h2sgemm-fig8-sums.json")
    claim = verdicts_of(program, "h2sgemm-fig8")["h2sgemm-fig8-hgemm"]
    assert claim["verdict"] == "cannot be decided here"
    for output in ("fp32", "fp16"):
        assert verdicts_of(program, "h2sgemm-fig8")["h2sgemm-fig8-hgemm"]["verdict"] == "cannot be decided here"
        assert set_errors(file, "frobenius_relative", 0.1, scheme="fp16", output=output) == 54
    assert verdicts_of(program, "h2sgemm-fig8")["h2sgemm-fig8-hgemm"]["verdict"] == "disagrees"


def test_a_changed_count_changes_the_verdict(program):
    file = with_recorded(program, "dgemm-tc-fig5")
    assert verdicts_of(program, "dgemm-tc-fig5")["dgemm-tc-66"]["verdict"] == "agrees"
    data = json.loads(file.read_text())
    rows = [row for row in data["rows"] if row["k"] == 7168 and row["distribution"] == "phi:0.1" and "mode=dp" in row["scheme"]]
    assert {row["m"] for row in rows} == {64, 1024, 3584}
    for row in rows:
        row["error_free"]["products"] = 55
    file.write_text(json.dumps(data))
    claims = verdicts_of(program, "dgemm-tc-fig5")
    assert claims["dgemm-tc-66"]["verdict"] == claims["dgemm-tc-fast-count"]["verdict"] == "disagrees"


# Rows of the library's schemes, which add outside in FP64, stand beside those that a claim compares.
def test_other_sums_do_not_serve_the_element_wise_order(program, reproduction):
    file = with_recorded(program, "h2sgemm-fig8").with_name("h2sgemm-fig8-sums.json")
    data = json.loads(file.read_text())
    data["rows"] = [row for row in data["rows"] if not row["scheme"].startswith("element-wise")]
    file.write_text(json.dumps(data))
    claims = verdicts_of(program, "h2sgemm-fig8")
    for name in ("h2sgemm-fig8-order", "h2sgemm-fig8-near-0"):
        assert claims[name]["verdict"] == "not measured" and "no such row of element-wise" in claims[name]["reason"]
    for name in ("h2sgemm-fig8-hgemm", "h2sgemm-fig8-term"):
        assert claims[name]["verdict"] == of_program(reproduction)[name]["verdict"]


# ---------------------------------------------------------------- the index

def counts_of(page):
    """{verdict: how many of the papers' claims}, of a page's tables."""
    counts = dict.fromkeys(registry.VERDICTS, 0)
    for line in page.splitlines():
        if line.startswith("| `") and "(own) |" not in line and "(by construction) |" not in line:
            for verdict in registry.VERDICTS:
                counts[verdict] += line.endswith(f"| **{verdict}** |")
    return counts


def test_the_index_is_that_of_the_recorded_results(tmp_path):
    done = claims_tool("--write", "--page", tmp_path / "claims.md")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "claims.md").read_text() == (RESULTS / "claims.md").read_text()


def test_links_of_the_index_lead_to_the_studies():
    links = set(re.findall(r"\]\(([a-z0-9./-]+\.md)(?:#([^)]+))?\)", (RESULTS / "claims.md").read_text()))
    headlines = re.findall(r"^## (.*)$", (RESULTS / "accuracy.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9_ -]", "", headline.lower()).replace(" ", "-") for headline in headlines}
    assert {page for page, _ in links} == set(PAGES)
    assert len(anchors) == len(headlines)
    assert {place for _, place in links if place} == anchors


def test_counts_of_the_pages_are_those_of_the_index(document):
    shown = [counts_of((RESULTS / page).read_text()) for page in PAGES]
    total = {verdict: sum(counts[verdict] for counts in shown) for verdict in registry.VERDICTS}
    for claim in document["claims"]:  # no page shows those that no study serves
        if claim["kind"] == "paper" and claim["study"] is None:
            total[registry.judge(claim, {})[0]] += 1
    index = (RESULTS / "claims.md").read_text()
    (numbers,) = re.findall(r"^\| all \| (.*) \|$", index, re.MULTILINE)
    assert [int(number) for number in numbers.split(" | ")] == [*total.values(), sum(total.values())]
    accuracy = " ".join((RESULTS / "accuracy.md").read_text().split())
    first = shown[0]
    assert f"Of the papers' claims {first['agrees']} agree and {first['disagrees']} disagree; " \
           f"{first['predicted']} are predicted, {first['holds on another chip']} hold on another chip, " \
           f"{first['cannot be decided here']} cannot be decided here and {first['not measured']} were not measured" in accuracy


def test_a_claim_without_result_is_not_measured(document, tmp_path):
    changed = json.loads(json.dumps(document))
    one = next(claim for claim in changed["claims"] if claim["id"] == "study-best")
    one["series"].append({"name": "type5"})
    another = json.loads(json.dumps(one)) | {"id": "study-new"}
    changed["claims"].append(another)
    (tmp_path / "claims.json").write_text(json.dumps(changed))
    done = claims_tool("--write", "--json", "--registry", tmp_path / "claims.json", "--page", tmp_path / "claims.md")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["study-new"]["verdict"] == "not measured"
    assert found["study-best"] == {"verdict": "not measured", "why": 'There is no value of "type5".'}
    page = (tmp_path / "claims.md").read_text()
    assert re.search(r"^\| `study-new` \| .* \| \*\*not measured\*\* \|", page, re.MULTILINE)


def test_judgements_by_hand_are_compared(tmp_path):
    drawn = json.loads(claims_tool("--sample", 12, "--seed", 5).stdout)
    assert drawn["seed"] == 5 and len(drawn["judged"]) == 12
    assert all(claim["kind"] == "paper" and claim["study"] and claim["verdict"] == "" for claim in drawn["judged"])
    verdicts = json.loads(claims_tool("--json").stdout)
    for claim in drawn["judged"]:
        claim["verdict"] = verdicts[claim["id"]]["verdict"]
    file = tmp_path / "judged.json"
    file.write_text(json.dumps(drawn))
    assert claims_tool("--compare", file).stdout == "12 of 12 alike\n"
    first = drawn["judged"][0]
    first["verdict"] = "agrees" if first["verdict"] != "agrees" else "disagrees"
    file.write_text(json.dumps(drawn))
    assert claims_tool("--compare", file).stdout.startswith(f"11 of 12 alike\n  {first['id']}: ")
    first["verdict"] = "perhaps"
    file.write_text(json.dumps(drawn))
    done = claims_tool("--compare", file)
    assert done.returncode == 1 and "'perhaps' is none of agrees, " in done.stderr
    assert "nothing to do" in claims_tool().stderr
