#!/usr/bin/env python3
"""The studies of speed and errors on Hopper: runs their commands on a machine with a GPU, and writes
docs/results/hopper-sgemm.md, hopper-fp64.md and hopper-programs.md from what they left."""

import argparse
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import recorded
from hopper import fp64, programs, sgemm
from hopper.cases import CASES, PHIS
from hopper.results import Results

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
RESULTS = SOURCE / "docs" / "results"
DATA = RESULTS / "hopper"
PARTS = ("sgemm", "fp64", "programs")
PAGES = {"hopper-sgemm.md": sgemm, "hopper-fp64.md": fp64, "hopper-programs.md": programs}
# Folders of pictures: the files that are drawn together.
DRAWN = {"sgemm-sizes": sgemm.SQUARES, "fp64-sizes": fp64.SQUARES,
         "fp64-moduli": tuple(fp64.moduli_case(phi) for phi in PHIS)}
EXAMPLE = """examples:
  scripts/gpu_bundle build && lab/studies/hopper_studies.py --run sgemm --bundle build/gpu
  lab/studies/hopper_studies.py --write --program build/kintsugi-lab"""


# ---------------------------------------------------------------- on a machine with a GPU

def run_case(case, bundle, environment, folder, seconds):
    """Returns what went wrong; "" where nothing did. The file is whole, though of some shapes alone where it took too long."""
    file = folder / f"{case.name}.json"
    with tempfile.NamedTemporaryFile("w", suffix=".settings") as settings:
        settings.write(case.settings + "\n")
        settings.flush()
        more = {"KINTSUGI_CONFIG": settings.name} if case.settings else {}
        program = sys.executable if case.is_python() else bundle / case.words[0]
        if case.is_python():
            more["PYTHONPATH"] = os.pathsep.join([str(SOURCE / "lab" / "apps"), environment.get("PYTHONPATH", "")])
        words = [program, *case.words[1:], *case.output(file)]
        try:
            done = subprocess.run([str(word) for word in words], cwd=SOURCE, env={**environment, **more}, capture_output=True,
                                  text=True, timeout=seconds)
            wrong = f"status {done.returncode}: {done.stderr.strip()[-500:]}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            wrong = f"stopped after {seconds:.0f} s"
    if file.exists():  # where that machine has its libraries matters to nobody
        file.write_text(re.sub(r'[^ "]*/(libcublas)', r"\1", file.read_text()))
    return wrong


def test_gpu():
    """scripts/test_gpu, which knows where cuBLAS lies."""
    loader = importlib.machinery.SourceFileLoader("test_gpu", str(SOURCE / "scripts" / "test_gpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("test_gpu", loader))
    loader.exec_module(module)
    return module


def run(parts, bundle, folder, seconds):
    if not (bundle / "kintsugi").is_file():
        sys.exit(f"hopper_studies: {bundle} has no kintsugi: scripts/gpu_bundle makes the folder")
    environment, cuda = test_gpu().prepare_machine(bundle)
    print(f"Device: {cuda['details']}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    failed = 0
    for case in (case for case in CASES.values() if case.part in parts):
        begin = time.monotonic()
        left = end - begin
        if recorded.file_of(folder, case.name):
            wrong, word = "it is there already", "kept"
        elif left < 1:
            wrong, word = "no time is left", "LEFT OUT"
        else:
            wrong = run_case(case, bundle, environment, folder, min(case.seconds, left))
            word = "FAILED" if wrong else "ok"
        failed += word in ("FAILED", "LEFT OUT")
        print(f"{word:<9}{time.monotonic() - begin:7.1f} s  {case.name}{': ' + wrong if wrong else ''}", flush=True)
    return 1 if failed else 0


# ---------------------------------------------------------------- pages

def draw(program, folder):
    """The pictures of every set of files, by kintsugi-lab report."""
    for name, cases in DRAWN.items():
        files = [file for case in cases if (file := recorded.file_of(folder, case))]
        with tempfile.TemporaryDirectory() as unpacked:
            words = [program, "report", *recorded.unpack(files, unpacked), "-o", f"{unpacked}/page.html", "--svg", folder / name]
            if files:
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def write(folder, pages, gpu):
    results = Results(folder, gpu)
    for name, part in PAGES.items():
        (pages / name).write_text(part.page(results))


# ---------------------------------------------------------------- the command

def parse_words():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", metavar="PARTS",
                        help=f"run the commands of these parts, of {','.join(PARTS)}, that left no file yet")
    parser.add_argument("--write", action="store_true", help="write the pages")
    parser.add_argument("--bundle", type=pathlib.Path, default=SOURCE / "build" / "gpu",
                        help="folder made by scripts/gpu_bundle [build/gpu]")
    parser.add_argument("--json", type=pathlib.Path, default=DATA, metavar="FOLDER",
                        help="of the commands' files [docs/results/hopper]")
    parser.add_argument("--seconds", type=float, default=300,
                        help="for all that is run; what takes longer is stopped or left out [300]")
    parser.add_argument("--program", type=pathlib.Path,
                        help="kintsugi-lab, which draws the pictures; without it those that are there stay")
    parser.add_argument("--pages", type=pathlib.Path, default=RESULTS, metavar="FOLDER", help="for the pages [docs/results]")
    parser.add_argument("--gpu", type=pathlib.Path, default=RESULTS / "gpu" / "nvidia-h200.json",
                        help="results of ./test gpu [docs/results/gpu/nvidia-h200.json]")
    words = parser.parse_args()
    words.parts = words.run.split(",") if words.run else []
    if unknown := [part for part in words.parts if part not in PARTS]:
        parser.error(f"--run: there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    if not words.parts and not words.write:
        parser.error("nothing to do: --run or --write")
    return words


def main():
    words = parse_words()
    status = run(words.parts, words.bundle.resolve(), words.json.resolve(), words.seconds) if words.parts else 0
    if words.write:
        if words.program:
            draw(words.program, words.json)
        write(words.json, words.pages, words.gpu)
    return status


if __name__ == "__main__":
    sys.exit(main())
