#!/usr/bin/env python3
"""Draws lab/results/geoid-error.png: the Gram matrix of the geoid, and where four ways to compute it err.

    lab/studies/make_error_picture.py build/kintsugi

Needs numpy, matplotlib and Pillow (python3-matplotlib has them all).
"""

import io
import os
import pathlib
import subprocess
import sys
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot
import numpy
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
GEOID = HERE.parents[1] / "examples" / "data" / "geoid.npy"
PICTURE = HERE.parent / "results" / "geoid-error.png"

# Title, flags of `kintsugi gemm`.
WAYS = [
    ("single fp16", ["--engine", "reference", "--scheme", "fp16"]),
    ("markidis", ["--engine", "reference", "--scheme", "markidis"]),
    ("fp16x3", ["--engine", "reference", "--scheme", "fp16x3"]),
    ("native FP32", ["--engine", "cpu", "--policy", "native"]),
]
GREY = "#7d7d7d"  # at least 4:1 against white and against GitHub's dark background
LOWEST, HIGHEST = -9, -3


def product(program, flags, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KINTSUGI_", "OPENBLAS_"))}
    subprocess.run([program, "gemm", GEOID, GEOID, "--transb", "T", "-o", "c.npy", *flags], cwd=folder, env=environment,
                   check=True, stdout=subprocess.DEVNULL)
    return numpy.load(pathlib.Path(folder) / "c.npy").astype(numpy.float64)


def colours(name):
    """Twelve levels: two a decade of the error, and a small file."""
    return matplotlib.pyplot.get_cmap(name, 12)


def draw(gram, errors):
    pixels = gram.shape[0]
    gap, left, right, bottom, top = 17, 26, 22, 68, 26
    width = left + 5 * pixels + 4 * gap + right
    height = bottom + pixels + top
    matplotlib.rcParams.update({"font.size": 9.5, "axes.titlesize": 9.5, "text.color": GREY, "axes.labelcolor": GREY, "xtick.color": GREY,
                                "ytick.color": GREY, "axes.edgecolor": GREY, "font.family": "DejaVu Sans"})
    figure = matplotlib.pyplot.figure(figsize=(width / 100, height / 100), dpi=100)

    def axes(index):
        x = left + index * (pixels + gap)
        panel = figure.add_axes([x / width, bottom / height, pixels / width, pixels / height])
        panel.set_xticks([])
        panel.set_yticks([])
        return panel

    def bar(image, first, last, ticks, labels, text):
        x = left + first * (pixels + gap)
        length = (last - first) * (pixels + gap) + pixels
        panel = figure.add_axes([x / width, 45 / height, length / width, 7 / height])
        scale = figure.colorbar(image, cax=panel, orientation="horizontal", ticks=ticks)
        scale.ax.set_xticklabels(labels)
        scale.outline.set_visible(False)
        figure.text((x + length / 2) / width, 4 / height, text, ha="center", va="bottom")

    panel = axes(0)
    limit = numpy.abs(gram).max()
    norm = matplotlib.colors.SymLogNorm(limit / 300, vmin=-limit, vmax=limit, base=10)
    image = panel.imshow(gram, cmap=colours("RdBu_r"), norm=norm, interpolation="none")
    panel.set_yticks([0, 90, 180], ["S", "0°", "N"])
    panel.set_title("C = G Gᵀ, in m²")
    bar(image, 0, 0, [-1e5, 0, 1e5], ["−10⁵", "0", "10⁵"], "latitude × latitude")

    for index, ((title, _), error) in enumerate(zip(WAYS, errors), 1):
        panel = axes(index)
        logs = numpy.log10(numpy.maximum(error, 10.0**LOWEST))
        image = panel.imshow(logs, cmap=colours("viridis"), vmin=LOWEST, vmax=HIGHEST, interpolation="none")
        panel.set_title(f"{title}: max {error.max():.0e}".replace("e-0", "e−"))
    ticks = list(range(LOWEST, HIGHEST + 1))
    digits = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
    bar(image, 1, 4, ticks, ["10" + str(tick).translate(digits) for tick in ticks], "error of each element, |C − exact| / |G||Gᵀ|")
    return figure


def save(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100, transparent=True)
    # With a palette, and without the name and version that matplotlib writes.
    Image.open(buffer).quantize(255, method=Image.Quantize.FASTOCTREE).save(PICTURE, optimize=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    geoid = numpy.load(GEOID).astype(numpy.float64)
    # FP32 products are exact in double; their sums err by some 1e-14 here, far below what is drawn.
    gram = geoid @ geoid.T
    magnitude = numpy.abs(geoid) @ numpy.abs(geoid.T)
    with tempfile.TemporaryDirectory() as folder:
        errors = [numpy.abs(product(program, flags, folder) - gram) / magnitude for _, flags in WAYS]
    save(draw(gram, errors))
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
