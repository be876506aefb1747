#!/usr/bin/env python3
"""Draws docs/pictures/h200-speed.svg, the README's chart of rates beside cuBLAS, from recorded measurements.

    docs/pictures/make_speed_chart.py

The rates are those of FP32 in docs/results/hopper/never-slower-h200.json, which lab/studies/never_slower.py measures, and of
FP64 in peers-fp64.json there, which lab/studies/peers.py measures. Needs nothing but Python.

On a machine with a GPU both are measured in some minutes:

    lab/studies/never_slower.py --group "auto, FP32" --json never-slower-h200.json
    lab/studies/peers.py --json peers-fp64.json

example: docs/pictures/make_speed_chart.py --fp32 never-slower.json --fp64 peers-fp64.json --output chart.svg
"""

import argparse
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "results" / "hopper"
PICTURE = HERE / "h200-speed.svg"
FP32, FP64 = DATA / "never-slower-h200.json", DATA / "peers-fp64.json"

# Title, operands, and for each bar: name in the file, legend, colour. The first is cuBLAS.
PANELS = [
    ("FP32 operands", "uniform", [("cuBLAS", "cuBLAS SGEMM", "#8a8f98"),
                                  ("auto", "Kintsugi, default settings", "#1f6fb4")]),
    ("FP64 operands", "(rand - 0.5) exp(0.5 randn)", [("cuBLAS native", "cuBLAS DGEMM", "#8a8f98"),
                                                      ("fp64", "Kintsugi, policy emulate", "#1f6fb4"),
                                                      ("exact", "Kintsugi, exact", "#c8791b")]),
]
SIZES = (1024, 2048, 4096, 8192)
WIDTH, HEIGHT = 880, 400
TOP, BOTTOM, LEFT, GAP, RIGHT = 92, 318, 58, 62, 16
HALF = (WIDTH - LEFT - GAP - RIGHT) / 2


def fp32_rates(document, distribution="uniform"):
    """{name: {n: operations a second}} of the square FP32 products under the default settings and of cuBLAS beside them."""
    rows = [row for row in document["rows"] if row["group"] == "auto, FP32" and row["distribution"] == distribution]
    columns = {"cuBLAS": "cublas_microseconds", "auto": "microseconds"}
    return {name: {int(row["shape"]): 2e6 * int(row["shape"])**3 / row[column] for row in rows} for name, column in columns.items()}


def peer_rates(document, kind="f64", phi=0.5):
    """{name: {n: operations a second}} of square products that do not add to C."""
    found = {}
    for case in document["cases"]:
        if case["type"] == kind and case["phi"] == phi and case["beta"] == 0 and len(set(case["shape"])) == 1:
            for row in case["rows"]:
                found.setdefault(row["name"], {})[case["shape"][0]] = row["tflops"] * 1e12
    return found


def text(x, y, words, size=12, anchor="middle", colour="#1b1f24", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
            f' font-weight="{weight}">{words}</text>')


def axis(left, highest, step):
    """Horizontal lines with their values, and the axis' unit."""
    parts = [text(left - 8, TOP - 12, "TFLOP/s", 11, "start", "#57606a")]
    for value in range(0, highest + 1, step):
        y = BOTTOM - (BOTTOM - TOP) * value / highest
        parts.append(f'<line x1="{left:.1f}" x2="{left + HALF:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d8dee4"/>')
        parts.append(text(left - 8, y + 4, value, 11, "end", "#57606a"))
    return parts


def bars(left, highest, rates, rows):
    """One group of bars a size: the rate above each, and above those of Kintsugi the ratio to cuBLAS."""
    parts = []
    group = HALF / len(SIZES)
    width = min(38, group * 0.86 / len(rows))
    vendor = rates[rows[0][0]]
    for place, n in enumerate(SIZES):
        middle = left + group * (place + 0.5)
        parts.append(text(middle, BOTTOM + 17, f"n = {n}", 12))
        for number, (name, _, colour) in enumerate(rows):
            rate = rates[name][n]
            x = middle + (number - len(rows) / 2) * width
            y = BOTTOM - (BOTTOM - TOP) * rate / 1e12 / highest
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width - 3:.1f}" height="{BOTTOM - y:.1f}" fill="{colour}"/>')
            parts.append(text(x + (width - 3) / 2, y - 4, f"{rate / 1e12:.0f}", 11))
            if rates[name] is not vendor:
                parts.append(text(x + (width - 3) / 2, y - 17, f"{rate / vendor[n]:.1f}×", 11, colour=colour, weight="bold"))
    return parts


def panel(left, title, rates, rows):
    highest = max(rates[name][n] for name, _, _ in rows for n in SIZES) / 1e12
    step = 50 if highest > 100 else 20
    highest = int(1.15 * highest // step + 1) * step  # room for the figures above the bars
    parts = [text(left, 46, title, 14, "start", weight="bold")]
    for (_, legend, colour), fraction in zip(rows, (0, 0.32, 0.74)):
        x = left + HALF * fraction
        parts.append(f'<rect x="{x:.1f}" y="54" width="10" height="10" fill="{colour}"/>')
        parts.append(text(x + 14, 63, legend, 11, "start"))
    return parts + axis(left, highest, step) + bars(left, highest, rates, rows)


def name_of(file):
    return file.relative_to(HERE.parents[1]) if file.is_relative_to(HERE.parents[1]) else file.name


def drawing(fp32=FP32, fp64=FP64):
    documents = [json.loads(file.read_text()) for file in (fp32, fp64)]
    devices = {document["device"].split(",")[0] for document in documents}
    assert len(devices) == 1, f"the files are of different devices: {devices}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
             f' height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             text(LEFT, 22, f"Rates of n × n × n products on one {devices.pop()}", 16, "start", weight="bold")]
    tables = fp32_rates(documents[0]), peer_rates(documents[1])
    for number, ((title, _, rows), rates) in enumerate(zip(PANELS, tables)):
        parts += panel(LEFT + number * (HALF + GAP), title, rates, rows)
    notes = ["2n³ operations over the median time of the whole call, splits included. Bold: ratio to cuBLAS."]
    notes += [f"{title[:4]}: measured {document['date']}, commit {document['commit']}, {operands} operands; {name_of(file)}."
              for (title, operands, _), document, file in zip(PANELS, documents, (fp32, fp64))]
    parts += [text(LEFT, BOTTOM + 40 + 16 * line, note, 11, "start", "#57606a") for line, note in enumerate(notes)]
    return "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fp32", type=pathlib.Path, default=FP32, help="results of lab/studies/never_slower.py")
    parser.add_argument("--fp64", type=pathlib.Path, default=FP64, help="results of lab/studies/peers.py")
    parser.add_argument("--output", type=pathlib.Path, default=PICTURE, help="the picture [docs/pictures/h200-speed.svg]")
    given = parser.parse_args()
    given.output.write_text(drawing(given.fp32.resolve(), given.fp64.resolve()))
