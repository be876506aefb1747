"""Parts that the device suites share: the libraries, a program with the drop-in preloaded, and the JSON document of the result."""

import concurrent.futures
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


def child(script, words, build=None, report=True, audit=False, library_path=None, variables=None, folder=None, **settings):
    """Runs the script with --child, with the drop-in preloaded if `build` is given, and beside it the audit library; or with a
    library path. Returns its document and the report, if that is asked for, which costs time in each call; `report` may be a file
    of the folder. In `folder`, where the program then runs, is left what it prints on stderr."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KINTSUGI_") or name == "KINTSUGI_CUBLAS"}
    environment |= {f"KINTSUGI_{name.upper()}": str(value) for name, value in settings.items()} | (variables or {})
    with tempfile.TemporaryDirectory() as temporary:
        file = pathlib.Path(folder) / report if isinstance(report, str) else pathlib.Path(temporary) / "report.json"
        if build:
            if audit:
                environment["LD_AUDIT"] = str(pathlib.Path(drop_in(build)).parent / "libkintsugi_cublas_audit.so")
            before = environment.get("LD_PRELOAD", "").split()
            environment["LD_PRELOAD"] = " ".join([drop_in(build), *before])
        if library_path:
            environment["LD_LIBRARY_PATH"] = str(library_path)
        if report and (build or library_path):
            environment["KINTSUGI_REPORT"] = str(file)
        result = subprocess.run([sys.executable, script, "--child", *words], env=environment, cwd=folder, capture_output=True, text=True)
        if folder:
            (pathlib.Path(folder) / "stderr").write_text(result.stderr)
        lines = [line for line in result.stdout.splitlines() if line.startswith("{")]  # cuBLAS prints lines, too
        if result.returncode not in (0, 1) or not lines:
            sys.exit(f"{script} {' '.join(words)} ended with {result.returncode}:\n{result.stdout[-1000:]}{result.stderr[-1500:]}")
        return json.loads(lines[-1]), json.loads(file.read_text()) if file.suffix == ".json" and file.exists() else None


def add_random_arguments(parser, calls, seconds):
    """Arguments of a script of random calls that run_jobs() divides among processes."""
    add_arguments(parser)
    parser.add_argument("--calls", type=int, default=calls)
    parser.add_argument("--seconds", type=float, default=seconds, help="end after this time")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the calls")
    parser.add_argument("--seed", type=int, default=1)


def run_jobs(script, options, **settings):
    """Documents and reports of the jobs, each a process with seeds of its own."""
    def job(number):
        words = ["--calls", str(-(-options.calls // options.jobs)), "--seconds", str(options.seconds), "--seed", str(options.seed + 7919 * number)]
        # One thread each: small products by numpy's own threads on all cores would take most of the time.
        return child(str(pathlib.Path(script).resolve()), words, options.build, variables={"OPENBLAS_NUM_THREADS": "1"}, **settings)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return zip(*pool.map(job, range(options.jobs)))


def together(reports):
    """One report of all problems."""
    return {"problems": [problem for report in reports for problem in report["problems"]]}


def sums(counts):
    """Sums of dictionaries of counts with the same members."""
    return {name: sum(count[name] for count in counts) for name in counts[0]}


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
