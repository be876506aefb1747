"""kintsugi report: the page and its figures."""

import itertools
import json
import math
import re
import shlex
import xml.etree.ElementTree as ElementTree

import pytest
from test_json import accept

# Error measures of a result row.
MEASURES = 7

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def results(program):
    flags = ["--schemes", "fp16,fp16x3-wide,native", "--accumulators", "h200,v100", "--seeds", "1,2"]
    distributions = "uniform,phi:1,phi:2"
    shapes = "8x8x4,8x8x16,8x8x64,16x16x4"
    # On a busy machine it takes more than the 5 s after which it says how far it is, on stderr.
    result = program("accuracy", *flags, "--distributions", distributions, "--shapes", shapes, "-o", "r.json")
    assert result.status == 0, result.stderr
    return json.loads((program.folder / "r.json").read_text())


def page_of(program, *files, flags=()):
    program.ok("report", *files, "-o", "report.html", *flags)
    text = (program.folder / "report.html").read_text()
    assert text.startswith("<!DOCTYPE html>\n")
    return text, ElementTree.fromstring(text)


def test_the_page_needs_nothing_else(program, results):
    text, _ = page_of(program, "r.json")
    addresses = set(re.findall(r"https?://[^\"]*", text))
    assert addresses <= {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
    for word in ("<script", "<link", "<img", "@import", "url("):
        assert word not in text
    assert "prefers-color-scheme:dark" in text


def test_every_figure_has_every_series(program, results):
    _, root = page_of(program, "r.json")
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    against_k = [f"{name}, m = 8, n = 8: error against k" for name in ("uniform", "phi:1", "phi:2")]
    against_size = [f"{name}, k = 4: error against m = n" for name in ("uniform", "phi:1", "phi:2")]
    shapes = ["8 x 8 x 4", "8 x 8 x 16", "8 x 8 x 64", "16 x 16 x 4"]
    against_parameter = [f"phi:P, {shape}: error against P" for shape in shapes]
    assert titles == [*against_k, *against_size, *against_parameter, "All rows"]
    charts = list(root.iter(SVG + "svg"))
    assert len(charts) == MEASURES * 10
    methods = {f"{row['scheme']} · {row['engine']}" + (f" · {row['accumulator']}" if row["accumulator"] else "")
               for row in results["rows"]}
    assert len(methods) == 5
    limits = 0
    for chart in charts:
        groups = [group for group in chart.iter(SVG + "g") if "series" in group.get("class").split()]
        labels = {group.find(SVG + "title").text for group in groups}
        limits += "fp32 contract, (k + 8) 2^-24" in labels
        against_native = any("S native" in (text.text or "") for text in chart.iter(SVG + "text"))
        expected = methods - {"native · reference"} if against_native else methods
        assert labels - {"fp32 contract, (k + 8) 2^-24"} == expected
        for group in groups:
            points = len(re.findall("[ML]", group.find(SVG + "path").get("d")))
            assert points >= 2, "the seeds of a point are one"
    assert limits == 10, "the contract is one of componentwise errors"


def y_ticks(root):
    """Values of the y axis and where they lie."""
    return {float(text.text): float(text.get("y")) - 4 for text in root.iter(SVG + "text")
            if text.get("text-anchor") == "end"}


def x_ticks(root):
    """Values of the x axis, where they lie and how wide their labels are at most; what is the axis' own name is not one."""
    return [(float(text.text), float(text.get("x")), 7 * len(text.text)) for text in root.iter(SVG + "text")
            if text.get("text-anchor") == "middle" and re.fullmatch(r"[-+.e0-9]+", text.text)]


def round_numbers(values):
    return all(f"{value:e}"[0] in "125" and float(f"{value:e}"[1:].split("e")[0]) == 0 for value in values)


def test_points_are_where_the_errors_are(program):
    program.ok("accuracy", "--schemes", "fp16", "--m", "8", "--n", "8", "--k", "4,64", "-o", "r.json")
    rows = json.loads((program.folder / "r.json").read_text())["rows"]
    program.ok("report", "r.json", "-o", "report.html", "--svg", "pictures")
    picture = "uniform-m-8-n-8-error-against-k-frobenius-relative.svg"
    root = ElementTree.fromstring((program.folder / "pictures" / picture).read_text())
    (group,) = [group for group in root.iter(SVG + "g") if "series" in group.get("class").split()]
    drawn = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", group.find(SVG + "path").get("d"))]
    # Two ticks of the axis give its scale.
    ticks = {value: y for value, y in y_ticks(root).items() if value > 0}
    (high, high_y), (low, low_y) = sorted(ticks.items(), reverse=True)[:2]
    for row, y in zip(rows, drawn, strict=True):
        share = math.log10(row["errors"]["frobenius_relative"] / low) / math.log10(high / low)
        assert y == pytest.approx(low_y + share * (high_y - low_y), abs=0.2)


def test_the_table_has_every_row_and_the_page_its_sources(program, results):
    text, root = page_of(program, "r.json")
    (body,) = [node for node in root.iter() if node.tag.endswith("}tbody")]
    assert len(body) == len(results["rows"])
    assert results["machine"]["processor"] in "".join(root.itertext())
    assert results["commit"] in text
    (code,) = [node for node in root.iter() if node.tag.endswith("}code")]
    command = code.text.split()
    assert command[:2] == ["kintsugi", "accuracy"]
    again = program.ok(*command[1:]).stdout
    assert f"{len(results['rows'])} of them were there already" in again, "the page's command is the file's sweep"


def test_pictures(program, results):
    page_of(program, "r.json", flags=["--svg", "pictures/all"])
    pictures = sorted((program.folder / "pictures" / "all").iterdir())
    assert len(pictures) == MEASURES * 10
    for picture in pictures:
        root = ElementTree.fromstring(picture.read_text())
        assert root.tag == SVG + "svg" and root.find(SVG + "style") is not None


@pytest.fixture
def small(program):
    program.ok("accuracy", "--schemes", "fp16,native", "--shapes", "4x4x4,4x4x8", "-o", "s.json")
    return "s.json"


def test_json_and_png(program, small):
    flags = ["--svg", "svg", "--png", "png", "--json"]
    document = program.ok("report", small, "-o", "report.html", *flags).json()
    accept(document, "report-page")
    assert (document["rows"], document["figures"], document["page"]) == (4, 1, "report.html")
    assert len(document["pictures"]) == len(set(document["pictures"])) == 2 * MEASURES
    for name in document["pictures"]:
        content = (program.folder / name).read_bytes()
        assert content.startswith(b"<svg" if name.endswith(".svg") else b"\x89PNG\r\n")
        if name.endswith(".png"):
            width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
            svg = ElementTree.fromstring((program.folder / name.replace("png", "svg")).read_text())
            assert (width, height) == (2 * int(svg.get("width")), 2 * int(svg.get("height")))
    alone = program.ok("report", small, "-o", "report.html", "--png", "alone", "--json").json()
    assert len(alone["pictures"]) == MEASURES
    assert len(list((program.folder / "alone").iterdir())) == MEASURES, "no SVG is left behind"


def test_without_the_converter(program, small):
    words = ["report", small, "-o", "report.html", "--png", "png"]
    message = program.bad(*words, environment={"PATH": "/nonexistent"})
    assert message.startswith("--png: rsvg-convert cannot be started: ") and "librsvg2-bin" in message
    assert not (program.folder / "report.html").exists()
    fake = program.folder / "rsvg-convert"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ]\n')
    fake.chmod(0o755)
    message = program.bad(*words, environment={"PATH": f"{program.folder}:/bin:/usr/bin"})
    assert message.startswith("--png: rsvg-convert ended with status 1 on png/.")


def titles_of(root):
    return [node.text for node in root.iter() if node.tag.endswith("}h2")]


def test_parameters_of_schemes_run_along_x(program):
    schemes = "h2sgemm:sb=0,h2sgemm:sb=12,native"
    program.ok("accuracy", "--schemes", schemes, "--distributions", "offset:-8", "--shapes", "8x8x8", "-o", "r.json")
    rows = json.loads((program.folder / "r.json").read_text())["rows"]
    _, root = page_of(program, "r.json")
    assert titles_of(root) == ["offset:-8, 8 x 8 x 8: error against sb", "All rows"]
    chart = next(root.iter(SVG + "svg"))
    lines = {group.find(SVG + "title").text: group.find(SVG + "path").get("d") for group in chart.iter(SVG + "g")
             if "series" in group.get("class").split()}
    assert set(lines) == {"h2sgemm · reference · h200", "native · reference"}
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", lines["native · reference"])]
    assert len(heights) == 2 and heights[0] == heights[1], "native is level"
    high, low = (float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", lines["h2sgemm · reference · h200"]))
    errors = {row["scheme"]: row["errors"]["frobenius_relative"] for row in rows}
    assert (high < low) == (errors["h2sgemm:sb=0"] > errors["h2sgemm:sb=12"])


def test_squares_and_types(program):
    shapes = ["--shapes", "4x4x4,8x8x8"]
    program.ok("accuracy", "--schemes", "native", "--types", "fp32,fp64", *shapes, "-o", "r.json")
    _, root = page_of(program, "r.json")
    squares = ["uniform: error against m = n = k", "uniform, fp64: error against m = n = k"]
    assert titles_of(root) == [*squares, "All rows"]
    labels = {node.text for node in root.iter(SVG + "text")}
    assert {"fp32 contract, (k + 8) 2^-24", "fp64 contract, (k + 8) 2^-53"} <= labels


def test_histograms(program):
    program.ok("accuracy", "--schemes", "fp16,native", "--shapes", "8x8x16", "--histogram", "-o", "r.json")
    rows = json.loads((program.folder / "r.json").read_text())["rows"]
    _, root = page_of(program, "r.json")
    assert titles_of(root) == ["uniform, 8 x 8 x 16, seed 1: histogram", "All rows"]
    (chart,) = root.iter(SVG + "svg")
    (line,) = [group.find(SVG + "path").get("d") for group in chart.iter(SVG + "g")
               if "series" in group.get("class").split()]
    steps = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line)]
    ticks = {float(text.text): float(text.get("y")) - 4 for text in chart.iter(SVG + "text")
             if text.get("text-anchor") == "end"}
    zero, top = ticks[0], max(ticks)
    shares = [(zero - y) / (zero - ticks[top]) * top for y in steps]
    counts = rows[0]["histogram"]["counts"]
    inside = sum(counts[1:-1]) / sum(counts)
    assert sum(shares) == pytest.approx(inside, abs=0.01), "every element is in one bin"


def test_ticks_are_round_and_readable(program, results):
    """Errors within two decades have ticks at 1, 2 and 5 times powers of ten; others at decades."""
    program.ok("report", "r.json", "-o", "report.html", "--svg", "pictures")
    seen = set()
    for picture in (program.folder / "pictures").iterdir():
        root = ElementTree.fromstring(picture.read_text())
        values = sorted(value for value in y_ticks(root) if value > 0)
        assert round_numbers(values) and len(values) >= 2
        seen.add(any(f"{value:e}"[0] != "1" for value in values))
        for (_, x, width), (_, other, other_width) in itertools.pairwise(x_ticks(root)):
            assert other - x >= (width + other_width) / 2, "labels do not collide"
    assert seen == {True, False}


def test_curves_that_coincide_are_all_visible(program):
    """One reference engine under two names of the same arithmetic: the line below is wider than the one above."""
    program.ok("accuracy", "--schemes", "fp16", "--shapes", "4x4x4,4x4x8", "-o", "r.json")
    document = json.loads((program.folder / "r.json").read_text())
    twins = json.loads(json.dumps(document["rows"]))
    for row in twins:
        row["scheme"] = "bf16"
    document["rows"] += twins
    (program.folder / "r.json").write_text(json.dumps(document))
    program.ok("report", "r.json", "-o", "report.html", "--svg", "pictures")
    for picture in (program.folder / "pictures").iterdir():
        root = ElementTree.fromstring(picture.read_text())
        first, second = (group.find(SVG + "path") for group in root.iter(SVG + "g")
                         if "series" in group.get("class").split() and "reference" in group.find(SVG + "title").text)
        assert first.get("d") == second.get("d")
        assert first.get("style") == "stroke-width:4.8" and second.get("style") is None


def test_errors_of_zero_are_drawn(program):
    """In a row of their own below the decades."""
    program.ok("accuracy", "--schemes", "fp16", "--shapes", "4x4x4,4x4x8,4x4x16", "-o", "r.json")
    document = json.loads((program.folder / "r.json").read_text())
    document["rows"][1]["errors"]["frobenius_relative"] = 0
    (program.folder / "r.json").write_text(json.dumps(document))
    program.ok("report", "r.json", "-o", "report.html", "--svg", "pictures")
    (picture,) = (program.folder / "pictures").glob("*frobenius*")
    root = ElementTree.fromstring(picture.read_text())
    ticks = y_ticks(root)
    (group,) = [group for group in root.iter(SVG + "g") if "series" in group.get("class").split()]
    drawn = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", group.find(SVG + "path").get("d"))]
    assert len(drawn) == 3 and drawn[1] == pytest.approx(ticks[0], abs=0.1)
    assert max(drawn[0], drawn[2]) < ticks[0] and min(y for value, y in ticks.items() if value > 0) < ticks[0]
    assert "error 0" not in (program.folder / "report.html").read_text(), "nothing is left out"


def test_mixed_files_have_no_empty_headings(program, small):
    """Each figure hides with its heading where the chosen measure has no picture in it."""
    program.ok("bench", "fp16", "--shapes", "8,16", "--repeat", "1", "-o", "b.json")
    document = json.loads((program.folder / "b.json").read_text())
    for row in document["rows"]:
        row["ratios"]["native"] = 1 if row["name"] == "native" else row["problem"]["m"] / 20
    (program.folder / "b.json").write_text(json.dumps(document))
    _, root = page_of(program, small, "b.json")
    sections = [node for node in root.iter() if node.tag.endswith("}section")]
    charts = 0
    for section in sections:
        inside = {word for node in section.iter() if node is not section and "chart" in node.get("class", "").split()
                  for word in node.get("class").split()}
        assert inside and set(section.get("class").split()) == inside
        assert next(iter(section)).tag.endswith("}h2")
        charts += sum(1 for node in section.iter(SVG + "svg"))
    assert charts == sum(1 for _ in root.iter(SVG + "svg")), "every chart is in a figure"
    (style,) = [node.text for node in root.iter() if node.tag.endswith("}style") and ".chart{display:none}" in node.text]
    kinds = {next(iter(section)).text.split(": ")[1].split()[0] for section in sections}
    assert kinds == {"error", "rate"}
    ratios = [chart for section in sections for node in section if "measure9" in node.get("class", "").split()
              for chart in node.iter(SVG + "svg")]
    assert ratios and all(0 in y_ticks(chart) for chart in ratios), "ratios within a factor of 20 are on a plain axis"


def test_the_same_cell_of_two_files_is_one_curve(program):
    program.ok("accuracy", "--schemes", "fp16,native", "--shapes", "8x8x16", "--histogram", "-o", "r.json")
    (program.folder / "s.json").write_bytes((program.folder / "r.json").read_bytes())
    text, root = page_of(program, "r.json", "s.json")
    (chart,) = root.iter(SVG + "svg")
    labels = [node.text for node in chart.iter(SVG + "text") if "fp16" in node.text]
    assert labels == ["fp16 · reference · h200"] and "Of several files with the same rows" in text


def test_several_files(program, results):
    program.ok("accuracy", "--schemes", "fp16", "--shapes", "8x8x4,8x8x8", "--seeds", "3", "-o", "s.json")
    text, _ = page_of(program, "r.json", "s.json")
    assert "r.json" in text and "s.json" in text


def test_one_point_is_no_figure(program):
    program.ok("accuracy", "--schemes", "fp16", "--shapes", "4x4x4", "-o", "r.json")
    text, _ = page_of(program, "r.json")
    assert "there is nothing to draw" in text and "<svg" not in text


@pytest.mark.parametrize(
    "text,message",
    [
        ("{", "f.json: is not a JSON object"),
        ("{}", "f.json: its format is null; kintsugi report reads those of kintsugi accuracy and kintsugi bench"),
        ('{"format": "kintsugi.gemm", "format_version": 1}', 'f.json: its format is "kintsugi.gemm"; '),
        ('{"format": "kintsugi.accuracy", "format_version": 2}', "f.json: its format_version is 2; this program reads 1"),
        ('{"format": "kintsugi.accuracy", "format_version": 1}', "f.json: version is null; expected: a text"),
    ],
)
def test_foreign_files_are_refused(program, text, message):
    (program.folder / "f.json").write_text(text)
    assert program.bad("report", "f.json", "-o", "report.html").startswith(message)
    assert program.files() == ["f.json", "home"]


@pytest.mark.parametrize(
    "path,value,message",
    [
        ("settings", 3, "settings is 3; expected: an object of "),
        ("settings/schemes", {"fp16": 1}, "settings is "),
        ("rows", None, "rows is null; expected: a list"),
        ("rows/1", {}, "row 2: problem/m is null; expected: a number from 1 up"),
        ("rows/1/problem/k", -5, "row 2: problem/k is -5; expected: a number from 1 up"),
        ("rows/1/problem/k", 1.5, "row 2: problem/k is 1.5; "),
        ("rows/1/problem/type", "fp16", 'row 2: problem/type is "fp16"; expected: fp32 or fp64'),
        ("rows/0/scheme", 7, "row 1: scheme is 7; expected: a text"),
        ("rows/0/distribution", "offset:x", 'row 1: distribution is "offset:x"; expected: one of '),
        ("rows/0/seed", -1, "row 1: seed is -1; "),
        ("rows/0/errors", "foo", "row 1: errors/correctly_rounded_fraction is null; "),
        ("rows/0/errors/max_relative", "foo", 'row 1: errors/max_relative is "foo"; expected: a number or null'),
        ("rows/0/bound", "foo", "row 1: bound/relative is null; "),
        ("rows/0/bound/held", 1, "row 1: bound/held is 1; "),
        ("rows/0/baseline", {}, "row 1: baseline/errors/frobenius_relative is null; "),
        ("rows/0/histogram", {"edges": [1, 2], "counts": [1, 1]}, "row 1: histogram is "),
        ("rows/0/histogram", {"edges": [2, 1], "counts": [1, 1, 1]}, "row 1: histogram is "),
        ("rows/0/histogram", {"edges": [1, 2], "counts": [1, -1, 1]}, "row 1: histogram is "),
    ],
)
def test_nonsense_is_refused_with_its_place(program, small, path, value, message):
    document = json.loads((program.folder / small).read_text())
    *parents, last = path.split("/")
    node = document
    for word in parents:
        node = node[int(word)] if isinstance(node, list) else node[word]
    node[int(last) if isinstance(node, list) else last] = value
    (program.folder / "f.json").write_text(json.dumps(document))
    assert program.bad("report", small, "f.json", "-o", "report.html").startswith("f.json: " + message)
    assert not (program.folder / "report.html").exists()


def test_figures_of_one_name_are_all_written(program):
    """Both have `slices` in their titles: those of an operand, and a scheme's parameter."""
    split = ",".join(f"split-n:a={count}:b={count}" for count in (1, 2))
    schemes = split + ",quantensor:slices=1,quantensor:slices=2"
    program.ok("accuracy", "--schemes", schemes, "--shapes", "4x4x4", "-o", "r.json")
    document = program.ok("report", "r.json", "-o", "report.html", "--svg", "pictures", "--json").json()
    assert document["figures"] == 2 and len(document["pictures"]) == len(set(document["pictures"]))
    assert len(list((program.folder / "pictures").iterdir())) == len(document["pictures"])


def test_titles_that_make_one_file_name(program, small):
    document = json.loads((program.folder / small).read_text())
    for name, text in (("f.json", "phi:1e+1"), ("g.json", "phi:1e-1")):
        for row in document["rows"]:
            row["distribution"] = text
        (program.folder / name).write_text(json.dumps(document))
    flags = ["-o", "report.html", "--svg", "pictures", "--json"]
    document = program.ok("report", "f.json", "g.json", *flags).json()
    names = [name.removesuffix(".svg") for name in document["pictures"]]
    assert len(set(names)) == len(names) == 4 * MEASURES, "against k and against P, of two files each"
    again = [name for name in names if name.endswith("-2")]
    assert len(again) == MEASURES and {name.removesuffix("-2") for name in again} < set(names)


def test_paths_in_commands_are_quoted(program):
    program.ok("accuracy", "--schemes", "fp16", "--shapes", "4x4x4", "-o", "it's mine.json")
    program.ok("report", "it's mine.json", "-o", "report.html")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    (code,) = [node for node in root.iter() if node.tag.endswith("}code")]
    assert shlex.split(code.text)[-2:] == ["-o", "it's mine.json"]


def test_help(program):
    text = program.ok("report", "--help").stdout
    lines = text.split("Example:\n")[1].splitlines()
    assert all(len(line) <= 140 for line in text.splitlines())
    program.ok("accuracy", "--schemes", "fp16", "--shapes", "4x4x4,4x4x8", "-o", "accuracy.json")
    program.ok(*lines[0].split()[1:])
    assert (program.folder / "report.html").is_file() and len(list((program.folder / "pictures").iterdir())) == 2 * MEASURES
