"""Pages of kintsugi bench's files: a host's, a device's, batches, and files that are none."""

import copy
import json
import os
import re
import shlex
import xml.etree.ElementTree as ElementTree

import pytest
from test_json import accept

TINY = ["--shapes", "8x12x16", "--repeat", "2", "--threads", "1"]
SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_of_a_batch(program):
    flags = ["fp16x3", "--shapes", "4,8", "--repeat", "1", "--threads", "1"]
    program.ok("bench", *flags, "-o", "one.json")
    program.ok("bench", *flags, "--batch", "3", "--prepare", "b", "-o", "many.json")
    older = json.loads((program.folder / "one.json").read_text())
    for row in older["rows"]:
        del row["problem"]["batch"], row["prepared"]
    (program.folder / "one.json").write_text(json.dumps(older))
    program.ok("report", "one.json", "many.json", "-o", "report.html")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    labels = {"fp16x3 · cpu · threads: 1", "native · cpu · threads: 1", "native · cpu · threads: 1 · batch: 3",
              "fp16x3 · cpu · threads: 1 · batch: 3 · prepared: b"}
    for chart in root.iter(SVG + "svg"):
        assert series_of(chart) == labels
    (code,) = [node.text for node in root.iter() if node.tag.endswith("}code") and "--batch 3" in node.text]
    program.ok(*shlex.split(code)[1:])


def test_the_page_of_a_file(program):
    flags = ["--shapes", "4,8,4x4x8", "--repeat", "1", "--baselines", "native,long-double"]
    for threads in ("1", "2"):
        program.ok("bench", "fp16x3", "exact", *flags, "--threads", threads, "-o", f"r{threads}.json")
    document = json.loads((program.folder / "r1.json").read_text())
    accept(document, "bench")
    program.ok("report", "r1.json", "r2.json", "-o", "report.html", "--svg", "pictures")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    assert titles == ["uniform, m = 4, n = 4: rate against k", "uniform, k = 8: rate against m = n",
                      "uniform: rate against m = n = k", "All rates"]
    names = ["fp16x3 · cpu", "exact · cpu", "native · cpu", "long-double · plain loop"]
    labels = {f"{name} · threads: {threads}" for name in names for threads in (1, 2)}
    charts = list(root.iter(SVG + "svg"))
    assert len(charts) == 3 * 2, "rates, and ratios to native"
    for chart in charts:
        groups = [group for group in chart.iter(SVG + "g") if "series" in group.get("class").split()]
        assert {group.find(SVG + "title").text for group in groups} == labels
    (body,) = [node for node in root.iter() if node.tag.endswith("}tbody")]
    assert len(body) == 2 * len(document["rows"]) and "OpenBLAS" in "".join(body.itertext())
    assert len(list((program.folder / "pictures").iterdir())) == 6
    code = [node.text for node in root.iter() if node.tag.endswith("}code")]
    assert len(code) == 2
    program.ok(*shlex.split(code[0])[1:])
    again = json.loads((program.folder / "r1.json").read_text())
    assert again["settings"] == document["settings"], "the page's command is the file's run"


def test_errors_and_rates_on_one_page(program):
    program.ok("bench", "fp16x3", "--shapes", "4,8", "--repeat", "1", "-o", "r.json")
    program.ok("accuracy", "--schemes", "fp16x3", "--shapes", "4x4x4,8x8x8", "-o", "a.json")
    program.ok("report", "r.json", "a.json", "-o", "report.html")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    assert titles == ["uniform: rate against m = n = k", "uniform: error against m = n = k", "All rows", "All rates"]


DEVICE = {"name": "NVIDIA X", "compute_capability": "9.0", "driver": "13.0", "multiprocessors": 132,
          "l2_bytes": 60 << 20, "power_limit_watts": 700.0, "clock_limit_mhz": 1980.0, "memory_clock_limit_mhz": None}


def ceiling(rate):
    return {"rate": rate, "lowest": 0.9 * rate, "highest": rate, "way": "wgmma", "power_watts": 650.0, "clock_mhz": 1500.0}


CEILINGS = {"fp16": ceiling(8e14), "bf16": ceiling(8e14), "int8": ceiling(1.8e15), "copy": ceiling(4e12)}


def on_a_device(document):
    """Returns a file as a device would have written it: the rows of a host's file with a device's times, from memory-bound up."""
    document.update(device=dict(DEVICE), ceilings=copy.deepcopy(CEILINGS))
    document["settings"].update(memory="device", engine="cuda")
    for row in document["rows"]:
        m, n, k = (row["problem"][size] for size in "mnk")
        seconds = 2 * m * n * k / 2e14 + 1e-7
        row.update(engine="cuda", engine_details="NVIDIA X; libcublas.so.13", accumulator="cublas", processor_ratios={},
                   rate=2 * m * n * k / seconds, bandwidth=4 * (m * k + k * n + m * n) / seconds, power_watts=600.0)
        row["time"] = {"minimum": 0.9 * seconds, "median": seconds, "maximum": 1.2 * seconds, "processor": None,
                       "rounds": 5, "by": "graph"}
        if row["format"] is not None:
            row["of_ceiling"] = row["products"] * row["rate"] / CEILINGS[row["format"]]["rate"]
    return document


@pytest.fixture
def device_file(program):
    program.ok("bench", "fp16x3", "--shapes", "4,512", "--repeat", "1", "-o", "r.json")
    document = on_a_device(json.loads((program.folder / "r.json").read_text()))
    accept(document, "bench")
    (program.folder / "r.json").write_text(json.dumps(document))
    return document


def test_the_page_of_a_device(program, device_file):
    program.ok("report", "r.json", "-o", "report.html")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    assert titles == ["uniform: rate against m = n = k", "uniform: roofline of NVIDIA X", "All rates"]
    charts = list(root.iter(SVG + "svg"))
    assert len(charts) == 4, "TFLOP/s, ratio to native, part of the ceiling, roofline"
    labels = {"fp16x3 · cuda · NVIDIA X", "native · cuda · NVIDIA X"}
    for chart, expected in zip(charts, (labels, labels, labels - {"native · cuda · NVIDIA X"}, labels)):
        assert expected <= series_of(chart)
    assert series_of(charts[3]) - labels == {"fp16 units, 800 T/s", "memory, 4 TB/s"}
    assert "TFLOP/s" in "".join(charts[0].itertext())
    text = "".join(root.itertext())
    assert "on NVIDIA X: at most 800 T/s fp16, 800 T/s bf16, 1800 T/s int8, 4 T/s copy" in text


def series_of(chart):
    groups = [group for group in chart.iter(SVG + "g") if "series" in group.get("class").split()]
    return {group.find(SVG + "title").text for group in groups}


def test_the_roofline_has_its_corner_where_the_ceilings_meet(program, device_file):
    program.ok("report", "r.json", "-o", "report.html", "--svg", "pictures")
    (name,) = [name for name in os.listdir(program.folder / "pictures") if "roofline" in name]
    root = ElementTree.parse(program.folder / "pictures" / name).getroot()
    lines = {}
    for group in root.iter(SVG + "g"):
        if "series" in group.get("class").split():
            path = group.find(SVG + "path").get("d")
            lines[group.find(SVG + "title").text] = [tuple(map(float, place.split())) for place in re.split("[ML]", path)[1:]]
    memory, units = lines["memory, 4 TB/s"], lines["fp16 units, 800 T/s"]
    assert memory[-1] == units[0] and units[0][1] == units[1][1], "one corner, then level"
    assert memory[0][0] == min(x for points in lines.values() for x, _ in points), "from the leftmost point on"
    assert memory[0][1] > memory[-1][1], "upwards"
    for x, y in lines["fp16x3 · cuda · NVIDIA X"]:
        assert y >= units[0][1], "below what the units do at most"
    ticks = [(float(text.text), float(text.get("x")), 7 * len(text.text)) for text in root.iter(SVG + "text")
             if text.get("text-anchor") == "middle" and re.fullmatch(r"[-+.e0-9]+", text.text)]
    assert len(ticks) >= 2 and all(re.fullmatch(r"[125]\.0+e.*", f"{value:e}") for value, _, _ in ticks), "round values"
    for (_, x, width), (_, other, other_width) in zip(ticks, ticks[1:]):
        assert other - x >= (width + other_width) / 2, "labels do not collide"


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda document: document.update(device=None), 'row 1: time/by is "graph", and device is null'),
        (lambda document: document["device"].pop("name"), "device is "),
        (lambda document: document["ceilings"].pop("copy"), "ceilings is "),
        (lambda document: document["ceilings"]["fp16"].update(rate=0), "ceilings is "),
        (lambda document: document["rows"][1].pop("bandwidth"), "row 2: bandwidth is null; expected: a positive number"),
        (lambda document: document["rows"][0].update(of_ceiling=-1), "row 1: of_ceiling is -1; "),
        (lambda document: document["rows"][0]["time"].update(by="ear"), 'row 1: time/by is "ear"; '),
    ],
)
def test_nonsense_of_a_device_is_refused(program, device_file, change, message):
    change(device_file)
    (program.folder / "f.json").write_text(json.dumps(device_file))
    assert program.bad("report", "f.json", "-o", "report.html").startswith("f.json: " + message)


@pytest.mark.parametrize(
    "path,value,message",
    [
        ("name", 3, "row 2: name is 3; expected: a text"),
        ("rate", 0, "row 2: rate is 0; expected: a positive number"),
        ("ratios", {"native": "much"}, "row 2: ratios is "),
        ("threads", 0, "row 2: threads is 0; "),
        ("prepared", "c", 'row 2: prepared is "c"; expected: a, b or null'),
        ("time", {}, "row 2: time/minimum is null; "),
        ("workspace_bytes", -1, "row 2: workspace_bytes is -1; "),
    ],
)
def test_nonsense_is_refused_with_its_place(program, path, value, message):
    program.ok("bench", "fp16x3", *TINY, "-o", "r.json")
    document = json.loads((program.folder / "r.json").read_text())
    document["rows"][1][path] = value
    (program.folder / "f.json").write_text(json.dumps(document))
    assert program.bad("report", "f.json", "-o", "report.html").startswith("f.json: " + message)
