#!/usr/bin/env python3
"""Draws docs/pictures/data-way.svg, the way of the data through a call, for docs/ARCHITECTURE.md. Needs nothing but Python.

example: docs/pictures/make_data_way.py
"""

import pathlib

PICTURE = pathlib.Path(__file__).resolve().parent / "data-way.svg"
WIDTH, HEIGHT = 900, 404
INK, GREY, BLUE, AMBER = "#1b1f24", "#6b717a", "#1f6fb4", "#c8791b"

# Boxes: x, y, width, height, title, module, lines below the title, colour of the frame.
BOXES = [
    (20, 20, 150, 76, "check", "front", ["every wrong value", "is named"], GREY),
    (210, 20, 190, 76, "plan", "planner, schemes", ["candidates, cheapest first;", "engine, blocks, workspace"], GREY),
    (20, 150, 96, 44, "A", None, ["rows"], BLUE),
    (20, 230, 96, 44, "B", None, ["columns"], BLUE),
    (160, 150, 150, 124, "ranges, split", "split", ["exponents, norms;", "scale by powers of two;", "low-precision slices"], INK),
    (355, 150, 150, 124, "multiply", "engines", ["terms of the schedule", "on the matrix unit;", "sums added in FP32,", "64-bit or modulo m"], INK),
    (550, 150, 170, 124, "recombine", "recombine", ["weights, remainders;", "scales undone;", "alpha, beta C;", "one rounding"], INK),
    (765, 190, 110, 44, "C", None, ["elements"], BLUE),
    (160, 318, 150, 64, "select", "engines", ["first accepted", "candidate"], AMBER),
    (355, 318, 150, 64, "native product", "engines", ["if none is accepted"], AMBER),
    (550, 318, 170, 64, "check, recompute", "execute", ["open elements, exactly"], AMBER),
]
# Arrows: points, dashed or not. Dashed ones are decisions, the others data.
ARROWS = [
    ([(170, 58), (210, 58)], True),
    ([(305, 96), (305, 124), (235, 124), (235, 150)], True),
    ([(116, 172), (160, 172)], False),
    ([(116, 252), (160, 252)], False),
    ([(310, 212), (355, 212)], False),
    ([(505, 212), (550, 212)], False),
    ([(720, 212), (765, 212)], False),
    ([(235, 274), (235, 318)], True),
    ([(310, 338), (332, 338), (332, 240), (355, 240)], True),
    ([(310, 362), (355, 362)], True),
    ([(635, 274), (635, 318)], False),
    ([(720, 350), (820, 350), (820, 234)], False),
    ([(430, 382), (430, 394), (850, 394), (850, 234)], False),
]


def text(x, y, words, size, colour=INK, weight="normal", anchor="middle"):
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">{words}</text>'


def box(x, y, width, height, title, module, lines, colour):
    middle = x + width / 2
    parts = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="#ffffff" stroke="{colour}" stroke-width="1.6"/>',
             text(middle, y + 18, title, 14, INK, "bold")]
    if module:
        parts.append(text(x + width - 4, y - 5, module, 11, GREY, anchor="end"))
    return parts + [text(middle, y + 36 + 17 * i, line, 12) for i, line in enumerate(lines)]


def arrow(points, dashed):
    path = "M" + " L".join(f"{x} {y}" for x, y in points)
    style = f' stroke="{AMBER}" stroke-dasharray="5 4"' if dashed else f' stroke="{INK}"'
    return f'<path d="{path}" fill="none" stroke-width="1.4"{style} marker-end="url(#{"decision" if dashed else "data"})"/>'


def marker(name, colour):
    return (f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>')


def drawing():
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             f'<defs>{marker("data", INK)}{marker("decision", AMBER)}</defs>',
             text(450, 50, "solid: data", 12, INK, anchor="start"),
             text(450, 70, "dashed: decisions, on a device made there, without a wait of the host", 12, AMBER, anchor="start")]
    parts += [part for item in BOXES for part in box(*item)] + [arrow(*item) for item in ARROWS]
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing())
