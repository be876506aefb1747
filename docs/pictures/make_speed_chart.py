#!/usr/bin/env python3
"""Draws docs/pictures/h200-speed.svg, the README's chart of rates beside cuBLAS, from recorded measurements.

    docs/pictures/make_speed_chart.py [FILE]

The rates are those of docs/results/hopper/sgemm-sizes.json and fp64-sizes.json. Needs nothing but Python.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "results" / "hopper"
PICTURE = HERE / "h200-speed.svg"

# Title, file, and for each bar: name of the row in the file, legend, colour.
PANELS = [
    ("FP32 operands", "sgemm-sizes.json", [("native", "cuBLAS SGEMM", "#8a8f98"),
                                           ("auto", "Kintsugi, default settings", "#1f6fb4")]),
    ("FP64 operands", "fp64-sizes.json", [("native", "cuBLAS DGEMM", "#8a8f98"),
                                          ("fp64", "Kintsugi, policy emulate", "#1f6fb4"),
                                          ("exact", "Kintsugi, exact", "#c8791b")]),
]
SIZES = (1024, 2048, 4096, 8192)
WIDTH, HEIGHT = 880, 400
TOP, BOTTOM, LEFT, GAP, RIGHT = 92, 318, 58, 62, 16
HALF = (WIDTH - LEFT - GAP - RIGHT) / 2


def rates(document, name):
    """{n: (TFLOP/s, ratio to cuBLAS)} of the square products of a row's name."""
    found = {}
    for row in document["rows"]:
        sizes = {row["problem"][side] for side in "mnk"}
        if row["name"] == name and len(sizes) == 1:
            found[sizes.pop()] = (row["rate"] / 1e12, row["ratios"]["native"])
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


def bars(left, highest, document, rows):
    """One group of bars a size: the rate above each, and above those of Kintsugi the ratio to cuBLAS."""
    parts = []
    group = HALF / len(SIZES)
    width = min(38, group * 0.86 / len(rows))
    for place, n in enumerate(SIZES):
        middle = left + group * (place + 0.5)
        parts.append(text(middle, BOTTOM + 17, f"n = {n}", 12))
        for number, (name, _, colour) in enumerate(rows):
            rate, ratio = rates(document, name)[n]
            x = middle + (number - len(rows) / 2) * width
            y = BOTTOM - (BOTTOM - TOP) * rate / highest
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width - 3:.1f}" height="{BOTTOM - y:.1f}" fill="{colour}"/>')
            parts.append(text(x + (width - 3) / 2, y - 4, f"{rate:.0f}", 11))
            if name != "native":
                parts.append(text(x + (width - 3) / 2, y - 17, f"{ratio:.1f}×", 11, colour=colour, weight="bold"))
    return parts


def panel(left, title, document, rows):
    highest = max(rates(document, name)[n][0] for name, _, _ in rows for n in SIZES)
    step = 50 if highest > 100 else 20
    highest = int(1.15 * highest // step + 1) * step  # room for the figures above the bars
    parts = [text(left, 46, title, 14, "start", weight="bold")]
    for (_, legend, colour), fraction in zip(rows, (0, 0.32, 0.74)):
        x = left + HALF * fraction
        parts.append(f'<rect x="{x:.1f}" y="54" width="10" height="10" fill="{colour}"/>')
        parts.append(text(x + 14, 63, legend, 11, "start"))
    return parts + axis(left, highest, step) + bars(left, highest, document, rows)


def drawing():
    documents = [json.loads((DATA / file).read_text()) for _, file, _ in PANELS]
    device = documents[0]["device"]
    assert all(document["device"] == device for document in documents), "the files are of different devices"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
             f' height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             text(LEFT, 22, f"Rates of n × n × n products on one {device['name']} ({device['power_limit_watts']:.0f} W)",
                  16, "start", weight="bold")]
    for number, ((title, _, rows), document) in enumerate(zip(PANELS, documents)):
        parts += panel(LEFT + number * (HALF + GAP), title, document, rows)
    library = documents[0]["rows"][0]["engine_details"].split("; ")
    sources = [f"docs/results/hopper/{file} (rows {', '.join(name for name, _, _ in rows)}; {document['rows'][0]['distribution']}"
               f" operands; commit {document['commit']})" for (_, file, rows), document in zip(PANELS, documents)]
    notes = [f"2n³ operations over the median device time of the whole call, splits included; {library[1]}, {library[2]}."
             " Bold: ratio to cuBLAS.", f"Source: {sources[0]},", sources[1] + "."]
    parts += [text(LEFT, BOTTOM + 40 + 16 * line, note, 11, "start", "#57606a") for line, note in enumerate(notes)]
    return "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and sys.argv[1].startswith("-")):
        sys.exit(__doc__)
    pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else PICTURE).write_text(drawing())
