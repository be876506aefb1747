"""lab/studies/never_slower.py: what it measures with a stand-in for the program, and its page."""

import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
RESULTS = SOURCE / "docs" / "results"
SCRIPT = SOURCE / "lab" / "studies" / "never_slower.py"

# Twice cuBLAS's speed, but half of it where k is 4096 or more; a scheme for each.
KINTSUGI = f"""#!{sys.executable}
import json, sys
words = sys.argv[1:]
flag = lambda name: words[words.index(name) + 1]
if flag("--distribution") == "phi:8" and "WRONG" in __import__("os").environ:
    sys.exit("kintsugi: auto: the largest error is 7 times what its contract allows")
rows = []
for shape in flag("--shapes").split(","):
    m, n, k = map(int, (shape.split("x") * 3)[:3])
    for name in (words[1], "native"):
        speed = 1 if name == "native" else 0.5 if k >= 4096 else 2
        rows.append(dict(name=name, problem=dict(m=m, n=n, k=k), scheme="native" if speed == 0.5 else "fp16x3",
                         engine_details="Stand-in, 9.0; driver", time=dict(median=1e-3 / speed), ratios=dict(native=speed)))
print(json.dumps(dict(commit="0123", rows=rows)))
"""


def never_slower(*words, **variables):
    return subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, **variables})


def test_every_group_is_measured_and_compared_with_its_goal(tmp_path):
    program = tmp_path / "kintsugi"
    program.write_text(KINTSUGI)
    program.chmod(0o755)
    words = ("--program", program, "--json", tmp_path / "found.json", "--random-shapes", "10", "--seed", "3")
    result = never_slower(*words)
    assert result.returncode == 0, result.stderr
    document = json.loads((tmp_path / "found.json").read_text())
    assert document["device"] == "Stand-in, 9.0"
    rows = {(row["group"], row["distribution"], row["shape"]): row for row in document["rows"]}
    assert rows["auto, FP32", "phi:8", "1024"]["speed"] == 2 and rows["auto, FP32", "phi:8", "4096"]["speed"] == 0.5
    assert sum(row["group"].startswith("10 random") for row in document["rows"]) == 10
    assert sum(row["group"].startswith("5 random") for row in document["rows"]) == 5
    assert never_slower(*words, "--group", "exact").returncode == 0
    assert {row["group"] for row in json.loads((tmp_path / "found.json").read_text())["rows"]} == {"exact"}
    wrong = never_slower(*words, WRONG="1")
    assert wrong.returncode == 1 and "the largest error is 7 times" in wrong.stderr


def test_the_page_is_that_of_the_recorded_figures(tmp_path):
    script = tmp_path / "lab" / "studies" / "never_slower.py"
    written = tmp_path / "docs" / "results" / "never-slower.md"
    for folder in (script.parent, written.parent):
        folder.mkdir(parents=True)
    script.write_text(SCRIPT.read_text())
    file = RESULTS / "hopper" / "never-slower.json"
    subprocess.run([sys.executable, script, "--write", file], check=True)
    page = written.read_text()
    assert page == (RESULTS / "never-slower.md").read_text()
    rows = json.loads(file.read_text())["rows"]
    reached = sum(row["speed"] >= row["goal"] for row in rows)
    assert f"{reached} of {len(rows)} cases reach their goal." in page
