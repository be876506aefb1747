"""kintsugi-lab reproduce: every figure at small sizes, its data, pages, pictures and claims; bad input."""

import json
import re
import sys
from xml.etree import ElementTree

import pytest
from conftest import SOURCE, Laboratory
from test_json import accept

RESULTS = SOURCE / "lab" / "results"
sys.path.insert(0, str(SOURCE / "lab" / "studies"))
import recorded  # noqa: E402

FIGURES = [
    "h2sgemm-table1",
    "h2sgemm-fig2",
    "h2sgemm-fig8",
    "h2sgemm-fig9",
    "h2sgemm-fig8-terms",
    "h2sgemm-fig9-offsets",
    "h2sgemm-exact",
    "h2sgemm-ascend",
    "le-gemm-fig10-11",
    "le-gemm-fig12-13",
    "le-gemm-fig16",
    "le-gemm-fig18",
    "le-gemm-fourth-term",
    "le-gemm-averages",
    "le-gemm-speed",
    "study-types",
    "study-terms",
    "study-terms-squares",
    "study-fp64",
    "study-pareto",
    "mixpert-fig2",
    "mixpert-average-cutlass",
    "mixpert-fig9",
    "mixpert-arithmetic",
    "mixpert-programs",
    "mixpert-matrices",
    "mixpert-stated",
    "mixpert-speed",
    "mixpert-level-speed",
    "mixpert-breakdown",
    "mixpert-outliers",
    "dgemm-tc-fig3",
    "dgemm-tc-fig5",
    "dgemm-tc-fig7",
    "dgemm-tc-fig8",
    "dgemm-tc-fast",
    "dgemm-tc-slices",
    "dgemm-tc-batched",
    "printed-figures",
    "predicted-speeds",
    "accumulation",
    "fp32-accuracy",
]

# Figures that time products on a device: `all` leaves them out where there is none.
ON_DEVICE = ["le-gemm-averages", "le-gemm-speed", "mixpert-speed", "mixpert-level-speed", "mixpert-breakdown", "mixpert-outliers", "dgemm-tc-batched"]

NO_DEVICE = {"CUDA_VISIBLE_DEVICES": ""}

# Figures that are no sweeps, and their documents.
ANALYSES = {
    "h2sgemm-table1": "retained-bits",
    "h2sgemm-fig2": "underflow",
    "h2sgemm-ascend": "ascend",
    "mixpert-arithmetic": "mixpert-arithmetic",
    **dict.fromkeys(("mixpert-programs", "mixpert-matrices", "mixpert-stated"), "program-errors"),
    "dgemm-tc-fig5": "slice-counts",
    "dgemm-tc-fig7": "slice-counts",
    **dict.fromkeys(["h2sgemm-exact", "le-gemm-fourth-term", "dgemm-tc-fast", "dgemm-tc-slices", "study-pareto", "printed-figures", "predicted-speeds"], "quantities"),
}

# Figures without pictures.
OF_SINGLE_VALUES = {"study-terms-squares", "mixpert-matrices", "mixpert-stated", *(name for name, kind in ANALYSES.items() if kind == "quantities")} - {"study-pareto"}


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """All figures, once: the program's folder and the document."""
    program = Laboratory(tmp_path_factory.mktemp("reproduced"))
    result = program("reproduce", "all", "-o", "out", "--markdown", "out/accuracy.md", "--quick", "--json", environment=NO_DEVICE)
    assert result.status == 0, result.stderr
    return program, json.loads(result.stdout)


def test_document_and_data(reproduced):
    program, document = reproduced
    accept(document, "reproduction")
    assert [figure["name"] for figure in document["figures"]] == [name for name in FIGURES if name not in ON_DEVICE]
    for figure in document["figures"]:
        assert figure["claims"]
        assert figure["rows"] > 0 and figure["bound_violations"] == 0
        rows = 0
        for name in figure["data"]:
            data = json.loads((program.folder / name).read_text())
            kind = data["format"].removeprefix("kintsugi.")
            assert kind == ANALYSES.get(figure["name"], kind) and (kind in ("accuracy", "product-errors") or figure["name"] in {*ANALYSES, "h2sgemm-fig8-terms"})
            accept(data, kind)
            rows += len(data["rows"])
        assert rows == figure["rows"]


# Claims about sizes that --quick cuts away.
BEYOND_QUICK = {*(f"dgemm-tc-{name}" for name in ("v100", "titan", "phi-speed", "of-peak", "share-70", "dominated", "sgemm-speed", "fast-loss")),
                "dgemm-tc-66", "dgemm-tc-range-dp", "dgemm-tc-range-cr", "dgemm-tc-fig3-dp", "dgemm-tc-fig8-sp",
                *(f"study-{name}" for name in ("best", "outside", "ootomo", "more-terms", "three-terms", "type3")),
                *(f"own-{name}" for name in ("long-double", "type4", "slices", "mixpert-native")),
                *(f"h2sgemm-{name}" for name in ("single-rate", "double-rate", "blocks", "sensitive")),
                *(f"h2sgemm-fig9-{name}" for name in ("stable", "growth-element", "growth-sgemm", "lower", "others")),
                *(f"le-gemm-fig16-{measure}-{name}" for measure in ("max", "mred") for name in ("feed-forward", "language-models"))}


def test_quick_gives_figures_and_no_verdicts(reproduced):
    for figure in reproduced[1]["figures"]:
        for claim in figure["claims"]:
            assert claim["verdict"] is None and claim["reason"] == ""
            if claim["id"] in BEYOND_QUICK:
                assert claim["ours"] == "none" and not any(series["values"] for series in claim["measured"]), claim
            else:
                assert re.search(r"\d", claim["ours"]) and not re.search(r"\bnan\b", claim["ours"]), claim
        assert figure["conditions"].startswith("cut down by --quick ")


def test_pages_and_pictures(reproduced):
    program, document = reproduced
    for figure in document["figures"]:
        page = ElementTree.fromstring((program.folder / figure["page"]).read_text())
        words = "".join(page.itertext())
        assert figure["command"] in words
        for claim in figure["claims"]:
            assert claim["claim"] in words and claim["theirs"] in words and claim["ours"] in words
        assert len(set(figure["pictures"])) == len(figure["pictures"])
        for picture in figure["pictures"]:
            content = (program.folder / picture).read_bytes()
            assert content.startswith(b"<svg" if picture.endswith(".svg") else b"\x89PNG")
        assert bool(figure["pictures"]) != (figure["name"] in OF_SINGLE_VALUES), figure["name"]


def test_markdown_has_every_claim_and_names_its_data(reproduced):
    program, document = reproduced
    text = (program.folder / "out" / "accuracy.md").read_text()
    assert "not to be edited by hand" in text and document["commit"] in text
    for figure in document["figures"]:
        assert f"## {figure['name']}: " in text
        assert text.count(f"`{figure['command']}`") == 1
        assert figure["data"] and all(f"`{name.removeprefix('out/')}`" in text for name in figure["data"])
    assert "no verdicts (--quick)" in text and "claims agree" not in text
    assert text.count("\n| ") >= sum(len(figure["claims"]) for figure in document["figures"])


def test_pages_of_the_recorded_figures_are_drawn_again(program):
    """lab/results/papers keeps the rows alone; lab/results/accuracy.md says which command draws the rest."""
    (program.folder / "out").mkdir()
    recorded.unpack(list((RESULTS / "papers").iterdir()), program.folder / "out")
    words = ["reproduce", "all", "-o", "out", "--recorded", "--markdown", "accuracy.md", "--json"]
    figures = program.ok(*words).json()["figures"]
    assert len(figures) == (RESULTS / "accuracy.md").read_text().count("\n## ")
    for figure in figures:
        assert (program.folder / figure["page"]).stat().st_size > 1000
        assert bool(figure["pictures"]) != (figure["name"] in OF_SINGLE_VALUES)
        assert all((program.folder / picture).stat().st_size > 500 for picture in figure["pictures"])


def test_a_figure_by_name_is_continued(program):
    first = program("reproduce", "h2sgemm-fig9", "-o", "out", "--quick", "--json").json()
    data = program.folder / "out" / "h2sgemm-fig9.json"
    before = data.read_text()
    again = program("reproduce", "h2sgemm-fig9", "-o", "out", "--quick", "--json").json()
    assert data.read_text() == before
    assert again["figures"][0]["claims"] == first["figures"][0]["claims"]


def test_recorded_rows_are_judged_whatever_commit_left_them(program):
    assert program("reproduce", "study-types", "h2sgemm-fig2", "-o", "out", "--quick").status == 0
    for name in ("study-types", "study-types-positive", "h2sgemm-fig2"):
        file = program.folder / "out" / f"{name}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"commit": "0123456789ab"}))
    before = {file: (program.folder / "out" / file).read_text() for file in ("study-types.json", "h2sgemm-fig2.json")}
    words = ["reproduce", "study-types", "h2sgemm-fig2", "-o", "out", "--recorded", "--markdown", "out/page.md", "--json"]
    document = program.ok(*words).json()
    accept(document, "reproduction")
    assert all(set(figure["commits"]) == {"0123456789ab"} for figure in document["figures"])
    assert all(claim["verdict"] for figure in document["figures"] for claim in figure["claims"])
    assert (program.folder / "out" / "page.md").read_text().count("rows of commit 0123456789ab: ") == 2
    assert all((program.folder / "out" / file).read_text() == text for file, text in before.items()), "nothing was run"
    message = program.bad("reproduce", "study-terms", "-o", "out", "--recorded")
    assert message.startswith("out/study-terms.json: does not exist")
    (program.folder / "out" / "study-terms.json").write_text("{}")
    assert "is not a document of the format kintsugi.accuracy" in program.bad("reproduce", "study-terms", "-o", "out", "--recorded")
    assert program.bad("reproduce", "all", "-o", "out", "--recorded", "--quick").startswith("--recorded: ")


@pytest.mark.parametrize("figure", ["h2sgemm-fig2", "h2sgemm-fig9"])
def test_quick_and_full_runs_refuse_each_others_files(program, figure):
    assert program("reproduce", figure, "-o", "out", "--quick").status == 0
    data = program.folder / "out" / f"{figure}.json"
    before = data.read_text()
    message = program.bad("reproduce", figure, "-o", "out")
    assert message.startswith(f"out/{figure}.json: ") and "choose another -o" in message
    assert data.read_text() == before


def test_full_continues_a_run_of_reduced_sizes(program):
    """Without --full sweeps have one seed and small shapes; their rows are kept by --full, which --quick excludes."""
    words = ["reproduce", "le-gemm-fig18", "-o", "out", "--json"]
    reduced = program(*words).json()["figures"][0]
    assert reduced["conditions"].startswith("without --full: ") and " --full" not in reduced["command"]
    def rows():
        return [row for name in reduced["data"] for row in json.loads((program.folder / name).read_text())["rows"]]
    before = rows()
    assert {row["seed"] for row in before if "seed" in row} == {1}
    full = program(*words, "--full").json()["figures"][0]
    assert full["command"].endswith(" --full") and not full["conditions"].startswith("without")
    assert len(rows()) > len(before) and all(row in rows() for row in before)
    assert program.bad(*words, "--full", "--quick").startswith("--full: ")


def test_a_row_beyond_its_bound_is_seen(program):
    words = ["reproduce", "fp32-accuracy", "-o", "out", "--quick"]
    assert program(*words).status == 0
    file = program.folder / "out" / "fp32-accuracy.json"
    data = json.loads(file.read_text())
    row = next(row for row in data["rows"] if row["bound"] and row["bound"]["held"])
    row["bound"]["held"] = False
    file.write_text(json.dumps(data))
    result = program(*words)
    assert result.status == 1
    message = "reproduce: 1 rows are beyond their scheme's a-priori bound, the first in fp32-accuracy: "
    assert message in result.stderr and row["scheme"] in result.stderr.split(message)[1]
    document = json.loads(program(*words, "--json").stdout)
    assert document["bound_violations"] == 1


# ---------------------------------------------------------------- the study's errors against speeds

def by_scheme(rows, quantity, **members):
    return {row["scheme"]: row["value"] for row in rows if row["quantity"] == quantity and members.items() <= row.items()}


def front_of(points):
    """(speed, error) of those that no other point beats; methods may share a point."""
    return {(speed, error) for speed, error in points
            if not any(s >= speed and e <= error and (s, e) != (speed, error) for s, e in points)}


def test_front_of_the_study(reproduced):
    rows = json.loads((reproduced[0].folder / "out" / "study-pareto.json").read_text())["rows"]
    sources = {row["source"] for row in rows if row["quantity"] == "TFLOP/s"}
    assert len(sources) == 2, "predicted, and with --quick timed on the CPU"
    for source in sources:
        speeds = by_scheme(rows, "TFLOP/s", source=source)
        assert {"native", "markidis", "egemm", "ootomo", "split-n:a=2:b=2:terms=3:scale=11:block=16"} <= speeds.keys()
        for number in range(1, 5):
            errors = by_scheme(rows, "mean relative error", distribution=f"type{number}")
            assert speeds.keys() == errors.keys()
            points = {scheme: (speeds[scheme], errors[scheme]) for scheme in speeds}
            found = by_scheme(rows, "on the front", source=source, distribution=f"type{number}")
            assert {points[scheme] for scheme in found} == front_of(points.values())
            assert len(found) > 1 or source == "kintsugi bench", "native may beat all on a CPU"


def test_errors_of_the_study_are_those_of_its_figures():
    rows, kept = (recorded.read(RESULTS / "papers" / f"{name}.json.xz")["rows"] for name in ("study-pareto", "study-types"))
    for name in ("fp16", "markidis", "ootomo", "native"):
        for number in range(1, 5):
            errors = [row["errors"]["mean_relative_long_double"] for row in kept
                      if (row["scheme"], row["distribution"], row["problem"]["k"]) == (name, f"type{number}", 1024)]
            assert len(errors) == 5
            assert by_scheme(rows, "mean relative error", distribution=f"type{number}")[name] == pytest.approx(sum(errors) / 5, rel=1e-6)


# ---------------------------------------------------------------- figures of a device's times

def timed_row(scheme, seconds, prepared="none", distribution="uniform", ratio=None):
    return {"n": 8192, "scheme": scheme, "distribution": distribution, "prepared": prepared, "seconds": seconds, "rate": 2 * 8192**3 / seconds,
            "ratio": ratio, "frobenius_relative": 1e-7, "clock_mhz": None}


def judged_on_device(program, figure, rows):
    """The claims of a figure of which these rows are recorded: {id: claim}."""
    document = recorded.read(RESULTS / "papers" / f"{figure}.json.xz") | {"samples": len(rows), "rows": rows}
    accept(document, "device-speed")
    (program.folder / "out").mkdir(exist_ok=True)
    (program.folder / "out" / f"{figure}.json").write_text(json.dumps(document))
    figures = program.ok("reproduce", figure, "-o", "out", "--recorded", "--json").json()["figures"]
    return {claim["id"]: claim for claim in figures[0]["claims"]}


def values_of(claim):
    return {series["series"]: series["values"] for series in claim["measured"]}


def test_times_of_levels_become_ratios(program):
    """Splits of A and B take 1 and 2 ms each, products 3 ms for four of them and so on, times 2 every 32."""
    rows = []
    for level, products in ((1, 4), (2, 6), (3, 6), (4, 8)):
        for scheme, seconds in ((f"mixpert-{level}", 1.5e-3 * products), (f"mixpert-{level}:tile=128", 0.75e-3 * products)):
            rows += [timed_row(scheme, seconds + split, prepared) for prepared, split in (("none", 3e-3), ("a", 2e-3), ("b", 1e-3))]
    claims = judged_on_device(program, "mixpert-level-speed", rows)
    assert claims["own-mixpert-levels"]["verdict"] == "agrees"
    assert all(values == [pytest.approx(8 / 6)] for values in values_of(claims["own-mixpert-levels"]).values())
    counts = values_of(claims["own-mixpert-level-counts"])
    assert counts["level IV, operands prepared"] == [pytest.approx(1)]
    assert counts["level IV, whole calls"] == [pytest.approx(9 / 6 / 2)]
    assert claims["own-mixpert-level-counts"]["verdict"] == "disagrees"


def test_shares_of_packing_and_conversions(program):
    """A hundredth for each split; the kernels take 0.97 and 0.67, so that conversions every 32 take 0.4 and every 128 0.1."""
    rows = []
    for scheme, seconds in (("mixpert-4", 1), ("mixpert-4:tile=128", 0.7), ("bf16x6", 1), ("tf32x3", 1)):
        rows += [timed_row(scheme, seconds - saved, prepared) for prepared, saved in (("none", 0), ("a", 0.01), ("b", 0.02))]
    claims = judged_on_device(program, "mixpert-breakdown", rows)
    assert values_of(claims["own-mixpert-packing"]) == {"exponents every 32": [pytest.approx(0.03)], "exponents every 128": [pytest.approx(0.03 / 0.7)]}
    assert claims["own-mixpert-packing"]["verdict"] == "agrees"
    shares = values_of(claims["own-mixpert-overhead"])
    assert shares["exponents every 32, mean"] == [pytest.approx(0.43)] and shares["exponents every 128, mean"] == [pytest.approx(0.13 / 0.7)]
    assert shares["bf16x6"] == shares["tf32x3"] == [pytest.approx(0.03)]


@pytest.mark.parametrize("slower, verdict", [(1.25, "agrees"), (1.35, "disagrees")])
def test_outliers_are_judged_by_the_ratio_of_times(program, slower, verdict):
    rows = [row for scheme, distribution in (("mixpert-4", "tile-outlier:0.01"), ("mixpert-4:tile=128", "tile-outlier:0.0025"))
            for row in (timed_row(scheme, 1e-2), timed_row(scheme, slower * 1e-2, distribution=distribution))]
    assert judged_on_device(program, "mixpert-outliers", rows)["own-mixpert-outliers"]["verdict"] == verdict
    assert judged_on_device(program, "mixpert-outliers", rows[:3])["own-mixpert-outliers"]["verdict"] == "not measured"


def test_times_of_le_gemm_kernels_become_gains(program):
    """LE-GEMM's kernel takes 1 s with the tile of 128 x 128 and 2 s with others, cuBLAS 1.5 s, baselines 3 s; n squared cancels."""
    rows = []
    for n, k in ((n, k) for n in (1024, 2048, 4096, 8192) for k in (1, 4)):
        for kernel in ("native", *(f"{scheme}_{way}" for scheme in ("wmma", "markidis", "ootomo", "le_gemm") for way in ("direct", "128x128x1")),
                       *(f"le_gemm_{tile}x2" for tile in ("64x64", "64x128", "128x64", "128x128", "128x256"))):
            seconds = {"native": 1.5, "le_gemm_128x128x2": 1}.get(kernel, 2 if kernel.endswith("x2") else 3)
            rows += [{"kernel": kernel, "m": n, "n": columns * n, "k": k * n, "seconds": seconds, "split_seconds": 0.25, "bytes": 1,
                      "tflops": 1 / seconds, "frobenius_relative": 1e-7} for columns in ((1, 4) if k == 1 else (1,))]
    rows += [row | {"m": n, "n": n, "k": 4 * n, "tflops": 1 - n / 1e5} for row in rows[:6] if row["kernel"].startswith("wmma") for n in (7168, 10240)]
    applications = [(4096, 1024, 256), (16384, 1024, 256), (65536, 1024, 256), (2048, 1024, 1024), (2048, 4096, 4096), (2048, 8192, 8192),
                    *((tokens, *widths) for tokens in (512, 2048, 8192) for widths in ((3072, 768), (768, 3072)))]
    of_squares = [row for row in rows if row["m"] == row["n"] == 1024 == row["k"]]
    rows += [row | {"m": m, "n": n, "k": k} for row in of_squares for m, n, k in applications]
    rows += [row | {"kernel": kernel, "seconds": seconds} for row in rows if row["kernel"] == "native" and row["m"] == row["n"] == row["k"]
             for kernel, seconds in (("fp16", 0.5), ("native, FP64", 4))]
    claims = judged_on_device(program, "le-gemm-speed", rows)
    assert set(map(tuple, values_of(claims["le-gemm-table6-mark"]).values())) == {(3,)}
    assert values_of(claims["le-gemm-ffn-speed"]) == {"mean, without split": [1.5], "mean, with split": [pytest.approx(1.2)]}
    trade = values_of(claims["le-gemm-trade"])
    assert trade["over FP16, without split"] == [0.5] * 4 and trade["over FP64, with split"] == [pytest.approx(3.2)] * 4
    assert values_of(claims["le-gemm-table6-cublas"])["n x 4n x n, with split"] == [pytest.approx(1.5 / 1.25)]
    assert values_of(claims["le-gemm-tiling"])["(128, 256, 32) over (128, 128, 32)"] == [0.5]
    assert values_of(claims["le-gemm-grows"])["n = 1024 and 2048"] == [1.5, 1.5]
    assert claims["le-gemm-table6-ooto"]["verdict"] == "holds on another chip"
    assert claims["le-gemm-grows"]["verdict"] == claims["le-gemm-tiling"]["verdict"] == "cannot be decided here"


def test_errors_over_sizes_become_averages(program):
    """Le-gemm errs by n, Markidis's scheme by 2 n up to 512 and by 3 n beyond, others by n: averages of sizes differ from ratios."""
    rows = []
    for n, unit, scheme, sums in ((n, unit, scheme, sums) for n in (64, 128, 256, 512, 1024, 2048, 4096) for unit in ("a100", "cdna2")
                                  for scheme in ("fp16", "markidis", "ootomo", "ootomo_inside", "legemm")
                                  for sums in ("sequential CPU sums", "OpenBLAS's CPU sums")):
        factor = (2 if n <= 512 else 3) if scheme == "markidis" else 1
        quantities = [("Max_error", n * factor), ("MRED", n * factor)]
        if n == 1024:
            quantities += [(f"share within {limit}", 0.5 if scheme == "fp16" else 0.9) for limit in ("1e-7", "1e-6", "1e-5", "1e-4")]
        rows += [{"quantity": f"{quantity}, {sums}", "value": value + shift, "scheme": scheme, "device": unit, "k": n, "seed": 11 + seed}
                 for quantity, value in quantities for seed, shift in enumerate((-0.25, 0.25))]
    document = {"format": "kintsugi.quantities", "format_version": 1, "samples": 4096, "seed": 11, "rows": rows} | {
        member: recorded.read(RESULTS / "papers" / "printed-figures.json.xz")[member] for member in ("version", "commit", "machine")}
    accept(document, "quantities")
    (program.folder / "out").mkdir()
    (program.folder / "out" / "le-gemm-averages.json").write_text(json.dumps(document))
    figure = program.ok("reproduce", "le-gemm-averages", "-o", "out", "--recorded", "--json").json()["figures"][0]
    claims = {claim["id"]: claim for claim in figure["claims"]}
    averages = values_of(claims["le-gemm-max-mark"])
    assert averages["ratio of averages, n = 256 to 1024, sequential CPU sums"] == [pytest.approx((2 * 768 + 3 * 1024) / 1792)]
    assert averages["average of ratios, n = 64 to 4096, OpenBLAS's CPU sums"] == [pytest.approx((4 * 2 + 3 * 3) / 7)]
    assert claims["le-gemm-max-mark"]["verdict"] == claims["le-gemm-mred-mark-smaller-mi210"]["verdict"] == "agrees"
    assert claims["le-gemm-max-ooto-smaller"]["verdict"] == "disagrees" and claims["le-gemm-mred-grows-mi210"]["verdict"] == "agrees"
    assert claims["le-gemm-hist-wmma-mi210"]["verdict"] == "agrees" and claims["le-gemm-hist-ooto-mi210"]["verdict"] == "disagrees"


def test_times_of_batches_become_gains(program):
    rows = [{"series": name, "n": 128, "slices": 6, "seconds_one_by_one": single, "seconds_batched": 1} for name, single in
            (("small matrices", 2), ("small matrices", 3), ("many slices", 1.5), ("large matrices", 0.9))]
    claim = judged_on_device(program, "dgemm-tc-batched", rows)["dgemm-tc-batched"]
    assert values_of(claim) == {"small matrices": [2, 3], "many slices": [1.5], "large matrices": [0.9]}
    assert claim["verdict"] == "holds on another chip"


def test_figures_of_a_device_need_one(program):
    message = program.bad("reproduce", "mixpert-outliers", "-o", "out", environment=NO_DEVICE)
    assert message.startswith("FIGURE: mixpert-outliers times products on a device, and there is none: ")
    assert program.files() == ["home", "out"] and not list((program.folder / "out").iterdir())


def test_list(program):
    document = program.ok("reproduce", "--list", "--json").json()
    accept(document, "reproduction-list")
    assert [figure["name"] for figure in document["figures"]] == FIGURES
    text = program.ok("reproduce", "--list").stdout
    assert all(name in text for name in FIGURES)


def test_bad_input(program):
    assert program.bad("reproduce") == "FIGURE: is missing; kintsugi-lab reproduce --list shows all figures"
    assert program.bad("reproduce", "h2sgemm-fig2") == "-o: a folder for the results is needed"
    message = program.bad("reproduce", "h2sgemm-fig3", "-o", "out")
    assert message.startswith('FIGURE: "h2sgemm-fig3" is not known; did you mean h2sgemm-fig2? Accepted: all, h2sgemm-table1, h2sgemm-fig2, ')
    assert program.files() == ["home"], "nothing was made"
    (program.folder / "file").write_text("")
    assert program.bad("reproduce", "h2sgemm-fig2", "-o", "file/out").startswith("-o: file/out: ")
    assert "does not exist" in program.bad("reproduce", "h2sgemm-fig2", "-o", "out", "--markdown", "no/m.md")


def test_without_the_converter(program):
    message = program.bad("reproduce", "h2sgemm-fig2", "-o", "out", environment={"PATH": "/nonexistent"})
    assert message.startswith("reproduce: rsvg-convert cannot be started: ") and "librsvg2-bin" in message


def test_help(program):
    text = program.ok("reproduce", "--help").stdout
    assert "--json" in text and all(len(line) <= 140 for line in text.splitlines())
    example = text.split("Example:\n")[1].splitlines()[0].split()
    assert example[:2] == ["kintsugi-lab", "reproduce"]
    program.ok(*example[1:])
