"""Parts that the device suites share: the libraries, a program with the drop-in preloaded, and the JSON document of the result."""

import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]


def drop_in(folder):
    """Path of the drop-in in a build folder or in a bundle of scripts/gpu_bundle."""
    found = sorted(pathlib.Path(folder).glob("libkintsugi_cublas.so*"))
    if not found:
        sys.exit(f"{folder} has no libkintsugi_cublas.so; --build names the folder that has it")
    return str(found[0].resolve())


def cublas():
    """Path of cuBLAS: KINTSUGI_CUBLAS, else that of the Python packages, else that of a toolkit."""
    if os.environ.get("KINTSUGI_CUBLAS"):
        return os.environ["KINTSUGI_CUBLAS"]
    for version in (13, 12):
        for folder in sys.path:
            for file in sorted(glob.glob(f"{folder}/nvidia/*/lib/libcublas.so.{version}")):
                return file
        for file in sorted(glob.glob(f"/usr/local/cuda*/lib*/libcublas.so.{version}")):
            return file
    return "libcublas.so.13"


def cublas_lt():
    """Path of cublasLt, which is beside cuBLAS."""
    return cublas().replace("libcublas.so", "libcublasLt.so")


def add_arguments(parser):
    parser.add_argument("--build", default=str(ROOT / "build"), help="folder with libkintsugi_cublas.so (build/)")
    parser.add_argument("--child", action="store_true", help="run the calls in this process, as the suite itself does")


def library_path(build, folder):
    """A folder in which the drop-in has the name of cuBLAS; it is filled by the program kintsugi."""
    words = [pathlib.Path(build) / "kintsugi", "run", "--library-path", folder, "--cublas", pathlib.Path(cublas()).parent, "--json", "--", "true"]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def child(script, words, build=None, report=True, audit=False, library_path=None, variables=None, **settings):
    """Runs the script with --child, with the drop-in preloaded if `build` is given, and beside it the audit library; or with a
    library path. Returns its document and the report, if that is asked for, which costs time in each call."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KINTSUGI_") or name == "KINTSUGI_CUBLAS"}
    environment |= {f"KINTSUGI_{name.upper()}": str(value) for name, value in settings.items()} | (variables or {})
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report.json"
        if build:
            if audit:
                environment["LD_AUDIT"] = str(pathlib.Path(drop_in(build)).parent / "libkintsugi_cublas_audit.so")
            before = environment.get("LD_PRELOAD", "").split()
            environment["LD_PRELOAD"] = " ".join([drop_in(build), *before])
        if library_path:
            environment["LD_LIBRARY_PATH"] = str(library_path)
        if report and (build or library_path):
            environment["KINTSUGI_REPORT"] = str(file)
        result = subprocess.run([sys.executable, script, "--child", *words], env=environment, capture_output=True, text=True)
        if result.returncode not in (0, 1) or not result.stdout.strip():
            sys.exit(f"{script} {' '.join(words)} ended with {result.returncode}:\n{result.stdout[-1000:]}{result.stderr[-1500:]}")
        return json.loads(result.stdout.splitlines()[-1]), json.loads(file.read_text()) if file.exists() else None


def calls(report):
    """Counts of a report: all calls, emulated and failed ones, and native ones by name."""
    problems = (report or {"problems": []})["problems"]
    native = {}
    for problem in problems:
        if problem["native_calls"]:
            native[problem["symbol"]] = native.get(problem["symbol"], 0) + problem["native_calls"]
    return {"calls": sum(problem["calls"] for problem in problems),
            "emulated": sum(sum(problem["emulated_calls"].values()) for problem in problems),
            "failed": sum(problem["failed_calls"] for problem in problems), "native": native}


def finish(suite, failures, **results):
    """Prints the document and ends the program: status 1 if there are failures."""
    print(json.dumps({"format": "kintsugi.cublas-suite", "format_version": 1, "suite": suite, "passed": not failures,
                      "failures": failures} | results, indent=1))
    sys.exit(1 if failures else 0)
