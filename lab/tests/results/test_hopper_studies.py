"""lab/studies/hopper_studies.py: its runner with stand-ins for the programs, and its pages of recorded figures."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
RESULTS = SOURCE / "docs" / "results"
STUDIES = SOURCE / "lab" / "studies"
sys.path.insert(0, str(STUDIES))
import recorded as records  # noqa: E402

RECORDED = RESULTS / "gpu" / "nvidia-h200.json"
PAGES = ("hopper-sgemm.md", "hopper-fp64.md")

# Writes what the command would, with a recorded row for each of its own; TFLOP/s by name.
KINTSUGI = f"""#!{sys.executable}
import json, os, sys, time
words = sys.argv[1:]
if words[0] == "engines":
    engine = {{"name": "cuda", "available": True, "reason": "", "details": "NVIDIA Stand-in", "requirements": []}}
    print(json.dumps({{"engines": [engine]}}))
    sys.exit()
if "SLOW" in os.environ:
    time.sleep(60)
if "markidis" in words and "WRONG" in os.environ:
    sys.exit("kintsugi: markidis: the largest error is 7 times what its bound allows")
flag = lambda name: words[words.index(name) + 1]
if words[0] == "accuracy":
    errors = lambda error: dict(max_componentwise=error, frobenius_relative=2 * error)
    rows = [dict(problem=dict(m=8, n=8, k=int(k), type="fp32"), scheme=scheme, distribution=name, errors=errors(1e-8),
                 bound=dict(in_window=name != "phi:4", held=True, largest_ratio=0.25),
                 baseline=dict(errors=errors(4e-8)))
            for scheme in flag("--schemes").split(",") for name in flag("--distributions").split(",")
            for k in flag("--k").split(",")]
    json.dump(dict(rows=rows), open(flag("-o"), "w"))
    sys.exit()
case, = [case for case in json.load(open({str(RECORDED)!r}))["cases"] if case["name"].startswith("kintsugi bench fp16x3")]
document = json.loads(case["output"])
template = document["rows"][0]
if "--no-ceilings" in words:
    document["ceilings"] = None
document["rows"] = []
candidates = words[1:words.index("--memory")]
baselines = flag("--baselines").split(",")
rates = {{"native": 5e13, "fp16": 5e14, "tf32": 3e14, "ozaki-fp16": 9e12, "ozaki-fp64": 4e12}}
for shape in flag("--shapes").split(","):
    m, n, k = map(int, (shape.split("x") * 3)[:3])
    for name in candidates + baselines:
        rate = lambda name: rates.get(name, 2.2e14) * k / (k + 400)
        problem = dict(m=m, n=n, k=k, type=flag("--type") if "--type" in words else "fp32", batch=1)
        row = dict(template, name=name, scheme=name, problem=problem, rate=rate(name), computed=dict(m=m, n=n),
                   kind="baseline" if name in baselines else "candidate",
                   engine_details="NVIDIA X; driver; /place/of/libcublas.so.13",
                   workspace_bytes=int(flag("--workspace-limit")) if "--workspace-limit" in words else 2500000000,
                   distribution=flag("--distribution") if "--distribution" in words else "uniform",
                   ratios={{other: rate(name) / rate(other) for other in baselines}})
        row["time"] = dict(template["time"], median=2 * m * n * k / rate(name))
        if "KINTSUGI_CONFIG" in os.environ:
            row["accumulator"] = open(os.environ["KINTSUGI_CONFIG"]).read()
        document["rows"].append(row)
json.dump(document, open(flag("-o"), "w"))
"""
TERM_RATE = f"""#!{sys.executable}
import json, sys
rows = []
for shape in (word for word in sys.argv[1:] if "x" in word and word[0].isdigit()):
    m, n, k = map(int, shape.split("x"))
    for scheme in ("fp16x3", "fp16x3-wide"):
        ways = [("128 columns, 1 stages", 1e14), ("128 columns, 2 stages", 1.6e14)]
        if "--stages" not in sys.argv:
            ways.append(("walk, tile 0, 2 parts", 2e14))
        for way, rate in ways:
            seconds = 2 * m * n * k / rate
            rows.append(dict(scheme=scheme, m=m, n=n, k=k, elements=1, way=way, seconds=seconds, expected=seconds))
json.dump(dict(rows=rows), open(sys.argv[sys.argv.index("--json") + 1], "w"))
"""


def studies(*words, environment=None):
    return subprocess.run([sys.executable, STUDIES / "hopper_studies.py", *map(str, words)], capture_output=True,
                          text=True, env={**os.environ, **(environment or {})})


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name, text in (("kintsugi", KINTSUGI), ("kintsugi-lab", KINTSUGI), ("term_rate", TERM_RATE)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def recorded(tmp_path):
    """The two bench runs of ./test gpu in place of those of the sizes."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    for case in json.loads(RECORDED.read_text())["cases"]:
        if case["name"].startswith("kintsugi bench"):
            name = "fp64-sizes" if "--type fp64" in case["name"] else "sgemm-sizes"
            (folder / f"{name}.json").write_text(case["output"])
    return folder


def write(folder, pages):
    done = studies("--write", "--json", folder, "--pages", pages)
    assert done.returncode == 0, done.stderr
    return [(pages / name).read_text() for name in PAGES]


def words_of(output):
    """{case: what became of it}"""
    return {match[2]: match[1].strip() for match in re.finditer(r"^(.{9}) *[\d.]+ s  ([\w.-]+)", output, re.MULTILINE)}


def test_all_is_run_once_and_written(bundle, tmp_path):
    data = tmp_path / "data"
    words = ["--run", "sgemm,fp64", "--bundle", bundle, "--json", data]
    done = studies(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(words_of(done.stdout).values()) == {"ok"} and list(words_of(done.stdout))[0] == "sgemm-sizes"
    files = {file.stem: json.loads(file.read_text()) for file in data.glob("*.json")}
    assert files.keys() == words_of(done.stdout).keys()
    assert {row["accumulator"] for row in files["sgemm-vendor"]["rows"]} == {"accumulator = cublas\n"}
    assert {row["engine_details"] for row in files["sgemm-sizes"]["rows"]} == {"NVIDIA X; driver; libcublas.so.13"}
    assert set(words_of(studies(*words).stdout).values()) == {"kept"}
    done = studies("--write", "--json", data, "--pages", tmp_path, "--program", os.environ["TESTED_LAB"])
    assert done.returncode == 0, done.stderr
    for name in PAGES:
        page = (tmp_path / name).read_text()
        assert "Not measured" not in page and "nan" not in page
        # The stand-in's error is the same for every number of moduli.
        assert re.findall(r"^\| `(\S+)` .*\*\*not measured\*\* \|$", page, re.MULTILINE) in ([], ["own-gemmul8"])
        pictures = re.findall(r"\]\(hopper/(.*\.svg)\)", page)
        assert pictures and all((data / picture).is_file() for picture in pictures)
    sgemm = (tmp_path / PAGES[0]).read_text()
    assert re.search(r"^\| fp16x3 \| 1024 x 1024 x 8192 \| 128 \|.*\| 1\.60 \|", sgemm, re.MULTILINE)
    assert "| **agrees** |" in sgemm


def test_what_takes_too_long_is_stopped_and_the_rest_left_out(bundle, tmp_path):
    done = studies("--run", "fp64", "--bundle", bundle, "--json", tmp_path / "data", "--seconds", "2",
                   environment={"SLOW": "1"})
    assert done.returncode == 1
    first, *others = words_of(done.stdout).values()
    assert first == "FAILED" and set(others) == {"LEFT OUT"} and "fp64-sizes: stopped after 2 s" in done.stdout


def test_what_fails_is_said_and_the_others_run(bundle, tmp_path):
    data = tmp_path / "data"
    done = studies("--run", "sgemm", "--bundle", bundle, "--json", data, environment={"WRONG": "1"})
    assert done.returncode == 1
    assert {name for name, word in words_of(done.stdout).items() if word != "ok"} == {"sgemm-skewed"}
    assert "status 1: kintsugi: markidis: the largest error" in done.stdout
    page = write(data, tmp_path)[0]
    assert "Not measured: sgemm-skewed." in page and page.count("Not measured") == 1


def recorded_rows(data, name):
    """Returns the rows of n = 8192 by name."""
    rows = json.loads((data / f"{name}.json").read_text())["rows"]
    return {row["name"]: row for row in rows if row["problem"]["n"] == 8192}


def cells(rows, names):
    """As a page has them: the rate, four digits of it, and the ratio to native."""
    for name in names:
        row = rows.get(name)
        ratio = "" if row is None or name == "native" else f" ({row['ratios']['native']:.2f})"
        yield "–" if row is None else f"{row['rate'] / 1e12:.4g}{ratio}"


def test_the_pages_have_the_recorded_figures(recorded, tmp_path):
    sgemm, fp64 = write(recorded, tmp_path)
    rows = recorded_rows(recorded, "sgemm-sizes")
    names = ("native", "tf32", "fp16", "fp16x3", "fp16x3-wide", "fp32", "auto")
    assert f"| 8192 x 8192 x 8192 | {' | '.join(cells(rows, names))} |" in sgemm
    used = 3 * rows["fp16x3"]["rate"] / json.loads((recorded / "sgemm-sizes.json").read_text())["ceilings"]["fp16"]["rate"]
    peak = 3 * rows["fp16x3"]["rate"] / 989e12
    assert re.search(rf"^\| 8192 \| .* \| {100 * used:.1f} % \| {100 * peak:.1f} % \|$", sgemm, re.MULTILINE)
    rows = recorded_rows(recorded, "fp64-sizes")
    names = ("native", "ozaki2:moduli=15", "ozaki2", "fp64", "exact", "auto")
    assert f"| 8192 x 8192 x 8192 | {' | '.join(cells(rows, names))} |" in fp64
    timings = {case["name"]: case.get("output", "") for case in json.loads(RECORDED.read_text())["cases"]}
    (split,) = re.findall(r"^ozaki2:moduli=15 +4096 A and B, one call +([\d.]+)", timings["split_rate"], re.MULTILINE)
    assert re.search(rf"^\| ozaki2:moduli=15 \| – \| {re.escape(split)} \| ", fp64, re.MULTILINE)
    assert "Not measured: sgemm-vendor." in sgemm and "Not measured: fp64-zgemm, fp64-cgemm." in fp64
    assert max(len(line) for page in (sgemm, fp64) for line in page.splitlines() if line[:1] not in "|#! ") <= 120


def verdict_of(page, claim):
    (line,) = [line for line in page.splitlines() if line.startswith(f"| `{claim}` |")]
    return line.split(" | ")[-1].strip(" |")


def test_verdicts_follow_the_figures(recorded, tmp_path):
    file = recorded / "sgemm-sizes.json"
    document = json.loads(file.read_text())
    best = max(row["rate"] for row in document["rows"] if row["name"] == "fp16x3")
    for share, verdict in ((0.78, "**agrees**"), (0.76, "**disagrees**")):
        scaled = json.loads(json.dumps(document))
        for row in scaled["rows"]:
            if row["name"] == "fp16x3":
                row["rate"] *= share * 989e12 / 3 / best
        file.write_text(json.dumps(scaled))
        page = write(recorded, tmp_path)[0]
        assert verdict_of(page, "own-peak") == verdict
        assert f"| fp16x3: {share} |" in page
    file.unlink()
    page = write(recorded, tmp_path)[0]
    assert "Not measured: sgemm-sizes" in page and "`own-peak`" not in page


def test_without_rows_a_claim_of_ours_is_not_measured(recorded, tmp_path):
    file = recorded / "sgemm-sizes.json"
    document = json.loads(file.read_text())
    document["rows"] = [row for row in document["rows"] if row["name"] != "auto"]
    file.write_text(json.dumps(document))
    page = write(recorded, tmp_path)[0]
    assert verdict_of(page, "own-auto-sgemm") == "**not measured**"
    assert "- `own-auto-sgemm`: There is no value of \"squares\"." in page


def test_what_is_slower_than_native_is_said(bundle, tmp_path):
    data = tmp_path / "data"
    assert studies("--run", "sgemm", "--bundle", bundle, "--json", data).returncode == 0
    short, spread = "own-auto-short", "own-auto-spread"
    page = write(data, tmp_path)[0]
    assert verdict_of(page, short) == verdict_of(page, spread) == verdict_of(page, "own-batch") == "**agrees**"
    for name, claim, other in (("sgemm-short", short, spread), ("sgemm-phi-4", spread, short)):
        file = data / f"{name}.json"
        kept = file.read_text()
        document = json.loads(kept)
        row = [row for row in document["rows"] if row["name"] == "auto"][1]
        row["ratios"]["native"] = 0.5
        file.write_text(json.dumps(document))
        page = write(data, tmp_path)[0]
        assert verdict_of(page, claim) == "**disagrees**" and verdict_of(page, other) == "**agrees**"
        size = " x ".join(str(row["problem"][side]) for side in "mnk")
        assert f"at least 0.50; slower: {size} of {name} (0.50)" in page
        file.write_text(kept)


def test_errors_are_those_over_native(bundle, tmp_path):
    data = tmp_path / "data"
    assert studies("--run", "sgemm", "--bundle", bundle, "--json", data).returncode == 0
    file = data / "sgemm-errors-2048.json"
    document = json.loads(file.read_text())
    page = write(data, tmp_path)[0]
    cells = {"`type1`": "0.25, 0.25", "`phi:4`": "0.25, 0.25 *"}  # outside of the window
    for name, cell in cells.items():
        assert page.count(f"| {name} | " + " | ".join([cell] * 8) + " |") == 4
    claims = ("own-bound", "own-errors-wide-2048", "own-errors-narrow-2048")
    assert [verdict_of(page, claim) for claim in claims] == 3 * ["**agrees**"]

    file.write_text(json.dumps(document | {"commit": "0123456789ab"}))
    assert "commit 0123456789ab, " in write(data, tmp_path)[0], "the page is of every version that it has figures of"

    def with_error(scheme, name, k, measure, error):
        changed = json.loads(json.dumps(document))
        for row in changed["rows"]:
            if (row["scheme"], row["distribution"], row["problem"]["k"]) == (scheme, name, k):
                row["errors"][measure] = error
                row["bound"]["held"], row["bound"]["largest_ratio"] = error < 1e-6, error / 1e-6
        file.write_text(json.dumps(changed))
        return write(data, tmp_path)[0]

    page = with_error("fp16x3-wide", "uniform", 256, "frobenius_relative", 1.6e-7)
    assert [verdict_of(page, claim) for claim in claims] == ["**agrees**", "**disagrees**", "**agrees**"]
    assert "59 of 60 products; not uniform at k = 256 (2.00)" in page and "| 0.25, 2 |" in page
    page = with_error("fp16x3", "phi:2", 64, "max_componentwise", 1e-5)
    assert [verdict_of(page, claim) for claim in claims] == ["**disagrees**", "**agrees**", "**disagrees**"]
    page = with_error("fp16x3", "phi:4", 64, "max_componentwise", 1e-5)  # no claim, outside of the window
    assert [verdict_of(page, claim) for claim in claims] == 3 * ["**agrees**"]
    page = with_error("fp16x3-wide", "uniform", 16, "max_componentwise", 1.2e-7)  # nor below k = 64
    assert [verdict_of(page, claim) for claim in claims] == 3 * ["**agrees**"]


def test_the_pages_are_those_of_the_recorded_files(tmp_path):
    write(RESULTS / "hopper", tmp_path)
    for name in (*PAGES, "hopper-programs.md"):
        assert (tmp_path / name).read_text() == (RESULTS / name).read_text(), name


def test_verdicts_on_programs_follow_the_rows(tmp_path):
    """A tuned program that exceeds its limit, a slower one and a search that takes too many runs miss our goals."""
    folder = tmp_path / "hopper"
    folder.mkdir()
    records.unpack([file for file in (RESULTS / "hopper").iterdir() if ".json" in file.suffixes], folder)
    goals = ("own-programs-limits", "own-programs-never-slower", "own-tuner-runs")

    def verdicts():
        write(folder, tmp_path)
        page = (tmp_path / "hopper-programs.md").read_text()
        return [verdict_of(page, goal) for goal in goals]

    assert verdicts() == 3 * ["**agrees**"]
    changes = ((("mixpert-paper", "tuned", "error", 1.0), 0), (("mixpert-paper", "speedup", None, 0.9), 1),
               (("mixpert-perceptron-4096", "tuned", "runs", 17), 2))
    for (name, member, part, value), goal in changes:
        file = folder / f"{name}.json"
        document = json.loads(file.read_text())
        row = document["rows"][0]
        if part is None:
            row[member] = value
        else:
            row[member][part] = value
        file.write_text(json.dumps(document))
        assert verdicts()[goal] == "**disagrees**", goals[goal]


def test_bad_words_are_refused(tmp_path):
    assert "there is no part 'sgem'" in studies("--run", "sgem").stderr
    assert "nothing to do" in studies().stderr
    done = studies("--run", "sgemm", "--bundle", tmp_path / "nothing")
    assert done.returncode == 1 and "scripts/gpu_bundle" in done.stderr
