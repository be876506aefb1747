"""Unchanged programs with the cuBLAS drop-in, over the fake driver and the fake cuBLAS: policies, reports, ways in, no waiting."""

import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import jsonschema
import pytest
from conftest import BUILD, CUBLAS, SANITIZED, SOURCE

PROGRAM = pathlib.Path(__file__).with_name("cublas_program.py")
FAKES = BUILD / "tests/fakes"
# Emulated by the plan of an H200, and a problem that is too small.
LARGE = ["--product", "sgemm", "1536", "1536", "1536"]
SMALL = ["--product", "sgemm", "64", "48", "32"]
WAITING = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemAlloc ", "cuMemFree ")

needs_device_code = pytest.mark.skipif(not (BUILD / "device_architectures.cmake").is_file(),
                                       reason="built without device code")


class Run:
    """A finished program: what it printed, and where its products went."""

    def __init__(self, result):
        self.returncode, self.stderr = result.returncode, result.stderr
        self.document = json.loads(result.stdout) if result.stdout else {}

    def real(self):
        return [event for event in self.document["events"] if event.startswith("cublas") and " op_a=" in event]

    def launches(self):
        return [event for event in self.document["events"] if event.startswith("cuLaunchKernel")]


@pytest.fixture
def program(tmp_path):
    if SANITIZED:
        pytest.skip("the sanitizers' run-time must be loaded first")

    def start(*words, preload=True, audit=False, device="NVIDIA H200", command=(), check=True, fake_memory=None,
              failed_allocation=None, milliseconds=None, environment=None, fakes=("libcuda.so.1", "libcublas.so.13"), **variables):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("KINTSUGI_", "FAKE_"))}
        settings = {f"KINTSUGI_{name.upper()}": str(value) for name, value in variables.items()}
        loaded = {"LD_PRELOAD": " ".join(([CUBLAS] if preload else []) + [str(FAKES / fake) for fake in fakes]), "LD_LIBRARY_PATH": str(FAKES)}
        if fake_memory:
            loaded["FAKE_CUDA_MEMORY"] = str(fake_memory)
        if failed_allocation:
            loaded["FAKE_CUDA_FAIL_ALLOCATION"] = str(failed_allocation)
        if milliseconds:
            loaded["FAKE_CUDA_LAUNCH_MILLISECONDS"], loaded["FAKE_CUBLAS_MILLISECONDS"] = map(str, milliseconds)
        if audit:
            loaded["LD_AUDIT"] = str(pathlib.Path(CUBLAS).parent / "libkintsugi_cublas_audit.so")
            loaded["LD_PRELOAD"] = CUBLAS
        result = subprocess.run([*command, sys.executable, str(PROGRAM), *words], cwd=tmp_path, capture_output=True, text=True,
                                timeout=300, env=clean | settings | loaded | {
                                    "KINTSUGI_CONFIG": "", "KINTSUGI_NVRTC": "none", "HOME": str(tmp_path), "FAKE_CUDA_NAME": device}
                                | ({} if {"1024", "1536", "4096"} & set(words) else {"FAKE_CUDA_MULTIPLY": "1"})
                                | (environment or {}))
        assert not check or result.returncode == 0, result.stdout + result.stderr
        return Run(result)

    start.folder = tmp_path
    return start


def read_report(path):
    document = json.loads(path.read_text())
    schema = json.loads((SOURCE / "docs/schema/cublas-report.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    for node in (schema, schema["definitions"]["problem"], schema["properties"]["other_problems"]):
        node["additionalProperties"] = False
    jsonschema.Draft7Validator(schema).validate(document)
    return document


@needs_device_code
class TestPolicies:
    def test_auto_emulates_what_is_faster(self, program):
        run = program(*LARGE, *SMALL)
        assert run.document["statuses"] == [0, 0] and run.stderr == ""
        assert [event.split()[0] for event in run.real()] == ["cublasSgemm_v2"] and "m=64 n=48 k=32" in run.real()[0]
        assert any("fp16" in event for event in run.launches())

    @pytest.mark.parametrize("sizes, beta, emulated", [((4096, 4096, 4096), 0, True), ((4096, 4096, 4096), 1, True), ((4096, 4096, 4096), 2, True),
                                                       ((4096, 4096, 512), 0, False), ((4096, 4096, 1024), 0, True), ((4096, 4096, 2048), -1, True),
                                                       ((1024, 1024, 4096), 0, False)])
    def test_auto_emulates_large_products_of_fp64(self, program, sizes, beta, emulated):
        run = program("--product", "dgemm", *map(str, sizes), "--beta", str(beta), report="report.json")
        assert bool(run.launches()) == emulated and bool(run.real()) != emulated
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert problem["native_calls"] == (0 if emulated else 1)
        assert emulated or "is expected" in next(iter(problem["reasons"]))

    def test_native_forwards_everything(self, program):
        run = program(*LARGE, *SMALL, policy="native")
        assert len(run.real()) == 2 and not run.launches()
        assert program(*SMALL, policy="native").document["results"] == [32]

    def test_accuracy_that_devices_lack_goes_to_cublas(self, program):
        run = program(*LARGE, accuracy="reproducible", report="report.json")
        assert len(run.real()) == 1 and not run.launches()
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert "no plan" in next(iter(problem["reasons"]))

    def test_emulate_forwards_nothing(self, program):
        run = program(*LARGE, *SMALL, policy="emulate")
        assert not run.real() and len(run.launches()) > 3

    def test_exact_is_asked_for_by_every_type(self, program):
        run = program("--product", "dgemm", "64", "64", "64", *SMALL, accuracy="exact")
        assert not run.real() and run.launches()

    def test_emulated_products_are_on_the_stream_of_the_handle_and_never_wait(self, program):
        run = program(*LARGE, "--repeat", "3")
        first = next(i for i, event in enumerate(run.document["events"]) if event.startswith("cuMemAllocFromPool"))
        stream = f"stream={hex(run.document['stream'])}"
        for event in run.document["events"][first:]:
            assert "stream=" not in event or stream in event, event
            assert not event.startswith(WAITING), event

    def test_a_problem_that_was_planned_is_captured_with_any_beta(self, program):
        runs = [program(*LARGE, "--repeat", "2", "--capture-later", "--beta", x, "--captured-beta", y) for x, y in ("00", "01", "10")]
        assert all(run.document["statuses"] == [0, 0, 0] and not run.real() for run in runs)

    def test_planning_does_not_spoil_a_capture(self, program):
        run = program(*LARGE, "--repeat", "2", "--capture", explain=1)
        assert run.document["statuses"] == [0, 0, 0] and len(run.real()) == 2
        assert "the stream is being captured, and the problem was not planned before" in run.stderr
        assert run.document["events"].count("cublasCreate") == 1, "the program's own handle alone"

    @pytest.mark.parametrize("mode, emulated", [(0, True), (16, True), (4, True), (2, False), (3, False)])
    def test_math_modes(self, program, mode, emulated):
        run = program(*LARGE, "--math-mode", str(mode))
        assert bool(run.launches()) == emulated and bool(run.real()) != emulated

    def test_requests_for_the_vendors_emulation_are_answered_unless_they_are_left_to_it(self, program):
        program(*LARGE, "--math-mode", "4", report="report.json")
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert problem["native_calls"] == 0 and next(iter(problem["reasons"])).startswith("cuBLAS's own emulation was asked for. ")
        left = program(*LARGE, "--math-mode", "4", cublas_emulation=1, report="report.json")
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert len(left.real()) == 1 and problem["reasons"] == {"the handle's math mode is an emulation of cuBLAS": 1}
        program("--matmul", "compute=78", cublas_emulation=1, report="report.json")
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert problem["reasons"] == {"compute type CUBLAS_COMPUTE_32F_EMULATED_16BFX9": 1}

    def test_a_workspace_takes_half_of_a_twentieth_of_a_small_memory(self, program):
        run = program(*LARGE, policy="emulate", explain=1, fake_memory=40_000_000)
        assert "a workspace limit of 1000000 bytes is too small" in run.stderr and len(run.real()) == 1

    @pytest.mark.parametrize("memory, limit", [(80 << 30, (1 << 30) - (104 << 20)), (5 << 30, (256 << 20) - (104 << 20)), (2 << 30, (2 << 30) // 40)])
    def test_the_workspace_and_what_the_library_takes_besides_are_at_most_a_twentieth(self, program, memory, limit):
        events = program("--product", "sgemm", "16384", "16384", "4096", fake_memory=memory).document["events"]
        (taken,) = (int(event.split()[1]) for event in events if event.startswith("cuMemAllocFromPoolAsync"))
        assert limit / 2 < taken <= limit

    def test_before_a_call_lacks_memory_the_pool_gives_back_what_it_keeps(self, program):
        allocations = [event for event in program(*LARGE).document["events"] if event.startswith("cuMemAlloc")]
        number = 1 + next(i for i, event in enumerate(allocations) if event.startswith("cuMemAllocFromPoolAsync"))
        run = program(*LARGE, failed_allocation=number)
        first, second = (i for i, event in enumerate(run.document["events"]) if event.startswith("cuMemAllocFromPoolAsync"))
        assert run.document["events"][first + 1].startswith("cuMemPoolTrimTo 0, ") and second == first + 2
        assert not run.real() and run.launches() and run.stderr == ""

    def test_a_workspace_limit_precedes_that(self, program):
        run = program(*LARGE, policy="emulate", explain=1, fake_memory=40_000_000, workspace_limit=9_000_000)
        assert "a workspace limit of 9000000 bytes is too small" in run.stderr and len(run.real()) == 1
        assert program(*LARGE, policy="emulate", fake_memory=40_000_000, workspace_limit=90_000_000).launches()


class TestForwarding:
    def test_without_a_context_calls_are_cublas_own(self, program):
        run = program(*SMALL, "--no-context", policy="emulate", explain=1)
        assert len(run.real()) == 1
        assert run.stderr == ("kintsugi: cublasSgemm_v2 N N, m = 64, n = 48, k = 32, batch of 1: cuBLAS; "
                              "no context of the CUDA driver is current\n")

    def test_a_malformed_setting_is_a_line_and_turns_emulation_off(self, program):
        run = program(*SMALL, "--repeat", "2", policy="emulated")
        assert run.stderr == ('kintsugi: KINTSUGI_POLICY = "emulated" is not accepted; accepted: auto, emulate, native, force; '
                              "emulation is off\n")
        assert len(run.real()) == 2 and run.document["statuses"] == [0, 0]

    def test_strict_ends_the_program_before_its_first_product(self, program):
        run = program(*SMALL, policy="emulated", strict=1, check=False)
        assert run.returncode == 2 and "ends the program" in run.stderr and not run.document

    def test_force_reports_what_it_cannot_emulate(self, program):
        run = program(*SMALL, policy="force", scheme="ozaki-int8:slices=99")
        assert run.stderr.startswith("kintsugi: cublasSgemm_v2: policy force, but no plan: ") and len(run.real()) == 1
        ended = program(*SMALL, policy="force", scheme="ozaki-int8:slices=99", strict=1, check=False)
        assert ended.returncode == 2 and not ended.document

    def test_an_empty_product_is_cublas_own(self, program):
        run = program("--product", "sgemm", "0", "5", "5", "--product", "dgemm", "5", "5", "0", policy="emulate")
        assert len(run.real()) == 2 and run.document["statuses"] == [0, 0]

    def test_a_program_without_a_product_prints_nothing(self, program):
        run = program(report="report.json", explain=1)
        assert run.stderr == "" and not (program.folder / "report.json").exists()


class TestReport:
    def test_native_calls_have_their_reasons(self, program):
        program(*SMALL, "--product", "dgemm", "3", "4", "0", "--repeat", "2", policy="native", report="report.json")
        report = read_report(program.folder / "report.json")
        assert report["policy"] == "native" and report["cublas"] == str(FAKES / "libcublas.so.13")
        first, second = report["problems"]
        assert (first["symbol"], first["k"]) == ("cublasDgemm_v2", 0) and first["reasons"] == {"a size is 0": 2}
        assert second == {"symbol": "cublasSgemm_v2", "type": "fp32", "op_a": "N", "op_b": "N", "m": 64, "n": 48, "k": 32, "batch_count": 1,
                          "calls": 2, "native_calls": 2, "emulated_calls": {}, "failed_calls": 0,
                          "reasons": {"policy native forwards every call": 2},
                          "device_seconds": 0.002, "estimated_native_seconds": 0.002, "sampled_calls": 2, "last_sampled_execution": None}

    @needs_device_code
    def test_emulated_calls_have_their_programs(self, program):
        run = program(*LARGE, *SMALL, "--repeat", "3", report="report-%p.json")
        (path,) = program.folder.glob("report-*.json")
        report = read_report(path)
        assert path.name == f"report-{report['process']}.json" and run.stderr == ""
        small, large = sorted(report["problems"], key=lambda problem: problem["m"])
        ((programs, count),) = large["emulated_calls"].items()
        assert programs.startswith("fp16x3") and programs.endswith(", native")
        assert large["calls"] == count == 3 and large["native_calls"] == 0
        assert large["device_seconds"] == pytest.approx(0.003), "a millisecond between any two events of the fake driver"
        assert set(large["last_sampled_execution"]) == {"program", "recomputed_elements", "special_values"}
        samples = [i for i, event in enumerate(run.document["events"]) if event.startswith("cuEventRecord")]
        later = run.document["events"][samples[4]:]
        assert not any(event.startswith(WAITING) for event in later), "but for a problem's first call, samples never wait"
        assert small["native_calls"] == small["calls"] == 3 and "faster than any emulation" in next(iter(small["reasons"]))

    @needs_device_code
    def test_a_page(self, program):
        program(*LARGE, *SMALL, "--repeat", "3", report="report.html")
        page = xml.etree.ElementTree.parse(program.folder / "report.html").getroot()
        text = ["".join(node.itertext()) for node in page.iter() if node.tag.endswith(("}p", "}td", "}h2"))]
        assert any(line.startswith("6 calls, of which 3 are cuBLAS's and 0 failed") and "a lower estimate by the GPU's profile" in line for line in text)
        assert "N N 1536 x 1536 x 1536" in text and any(cell.startswith("fp16x3") for cell in text) and any("faster than any emulation" in cell for cell in text)
        program(*LARGE, report="report.json")
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert 7e-5 < problem["estimated_native_seconds"] < 3e-4, "of 7e9 operations on an H200"

    def test_a_line_for_each_call(self, program):
        lines = program(*SMALL, "--repeat", "3", policy="native", verbose=1).stderr.splitlines()
        assert lines == ["kintsugi: cublasSgemm_v2 N N, m = 64, n = 48, k = 32, batch of 1: cuBLAS; policy native forwards every call"] * 3

    def test_a_table(self, program):
        run = program(*SMALL, policy="native", report="-")
        assert all(line.split()[:3] == ["1", "0", "0"] for line in run.stderr.splitlines()[-2:])
        assert "cublasSgemm_v2 N N, m = 64, n = 48, k = 32, batch of 1: cuBLAS" in run.stderr

    def test_a_report_while_the_program_runs(self, program):
        run = program(*SMALL, "--repeat", "3", "--ask-for-reports", policy="native")
        first, last = run.document["reports"]
        assert first["problems"] == [], "calls are recorded from the first report on"
        assert [problem["calls"] for problem in last["problems"]] == [3] and run.stderr == ""

    @needs_device_code
    def test_one_call_of_64_has_a_sample(self, program):
        program(*LARGE, "--repeat", "130", report="report.json")
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert problem["calls"] == 130 and problem["sampled_calls"] == 4 + 2

    @needs_device_code
    def test_a_problem_without_a_plan_says_why(self, program):
        run = program(*LARGE, engine="cpu", report="report.json")
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert problem["native_calls"] == 1 and "no plan: " in next(iter(problem["reasons"])) and len(run.real()) == 1


@needs_device_code
class TestVerifiedSpeeds:
    @staticmethod
    def problem(program):
        (problem,) = read_report(program.folder / "report.json")["problems"]
        return problem

    @pytest.mark.parametrize("milliseconds, chosen", [((0, 3), "emulation"), ((5, 2), "cuBLAS")])
    def test_the_faster_one_stays(self, program, milliseconds, chosen):
        run = program(*LARGE, "--repeat", "30", verify_speed=1, milliseconds=milliseconds, report="report.json")
        problem = self.problem(program)
        assert problem["speed"]["chosen"] == chosen and problem["speed"]["cublas_seconds"] == pytest.approx((1 + milliseconds[1]) * 1e-3)
        assert (problem["speed"]["emulation_seconds"] < problem["speed"]["cublas_seconds"]) == (chosen == "emulation")
        assert problem["native_calls"] == len(run.real()) == (5 if chosen == "emulation" else 25) and not any(run.document["statuses"])
        assert problem["reasons"]["KINTSUGI_VERIFY_SPEED times cuBLAS beside the emulation"] == 5
        slower = [reason for reason in problem["reasons"] if "the quickest of 4 calls each" in reason]
        assert [problem["reasons"][reason] for reason in slower] == ([] if chosen == "emulation" else [20])
        assert problem["estimated_native_seconds"] == pytest.approx(30e-3 * (1 + milliseconds[1]))
        products = [event.startswith("cublas") for event in run.document["events"] if event.startswith(("cublasSgemm", "cuLaunchKernel", "cuGraphLaunch"))]
        turns = [is_cublas for is_cublas, _ in itertools.groupby(products)]
        assert turns[:10] == [False, True] * 5, "both take turns"

    def test_without_a_report(self, program):
        assert len(program(*LARGE, "--repeat", "12", verify_speed=1, milliseconds=(5, 2)).real()) == 7
        assert len(program(*LARGE, "--repeat", "12", milliseconds=(5, 2)).real()) == 0, "bits do not depend on clocks by default"

    def test_a_table_says_what_was_measured(self, program):
        run = program(*LARGE, "--repeat", "30", verify_speed=1, milliseconds=(5, 2), report="-")
        assert "cuBLAS 3e+03, the quickest of 4 calls each" in run.stderr

    def test_graphs_keep_their_emulation(self, program):
        run = program(*LARGE, "--repeat", "2", "--graphs", "3", "--keep-graphs", verify_speed=1, milliseconds=(5, 2))
        assert len(run.real()) == 1, "of the two calls before, one is cuBLAS's"

    @pytest.mark.parametrize("settings", [{"policy": "emulate"}, {"accuracy": "exact"}, {"scheme": "fp16x3"}])
    def test_what_cublas_may_not_answer(self, program, settings):
        run = program(*LARGE, **settings, verify_speed=1)
        assert run.stderr == ("kintsugi: KINTSUGI_VERIFY_SPEED = 1 lets cuBLAS multiply some calls, so it needs the policy auto, and no accuracy, "
                              "scheme or sites file; emulation is off\n") and len(run.real()) == 1


@needs_device_code
class TestXt:
    """Products of cublasXt, in host memory, on the one fake GPU; the fakes compute native products alone."""

    def test_large_products_are_offloaded_and_emulated(self, program):
        run = program("--product", "sgemm", "4096", "4096", "4096", "--xt-devices", "1", report="report.json")
        assert run.launches() and not run.real() and not any(run.document["statuses"])
        (problem,) = read_report(program.folder / "report.json")["problems"]
        assert problem["symbol"] == "cublasXtSgemm" and problem["native_calls"] == 0

    def test_what_the_gpus_would_compute_natively_stays(self, program):
        run = program(*SMALL, "--xt-devices", "1", report="report.json")
        assert [event.split()[0] for event in run.real()] == ["cublasXtSgemm"] and run.document["results"] == [32]
        assert program(*SMALL, "--xt-devices", "1", policy="native").document["results"] == [32]
        assert not program(*SMALL, "--xt-devices", "1", policy="emulate").real()

    def test_a_part_of_the_gpus_stays(self, program):
        devices = {"FAKE_CUDA_DEVICES": "2"}
        run = program(*SMALL, "--xt-devices", "1", policy="emulate", explain=1, environment=devices)
        assert len(run.real()) == 1 and "cublasXtDeviceSelect has not chosen all GPUs" in run.stderr
        assert not program(*SMALL, "--xt-devices", "2", policy="emulate", environment=devices).real()


class TestWaysIn:
    """A preload is not asked where a program takes functions from libcublas's own handle; the audit library is."""

    @pytest.mark.parametrize("way", ["--handle", "--deepbind"])
    def test_a_preload_alone_misses_the_librarys_own_handle(self, program, way):
        assert program(*SMALL, way, policy="native", explain=1).stderr == ""

    @pytest.mark.parametrize("way", ["--handle", "--deepbind"])
    def test_the_audit_library_reaches_it(self, program, way):
        run = program(*SMALL, way, audit=True, policy="native", explain=1)
        assert "policy native forwards every call" in run.stderr and len(run.real()) == 1 and run.document["results"] == [32]

    def test_kintsugi_run_preloads_it(self, program):
        tool = os.environ.get("TESTED_PROGRAM")
        if not tool:
            pytest.skip("configured without the program")
        run = program(*SMALL, preload=False, command=[tool, "run", "--"], policy="native", explain=1)
        assert "policy native forwards every call" in run.stderr and len(run.real()) == 1

    @pytest.fixture
    def library_path(self, program):
        """Arguments with which `kintsugi run` makes a folder of links to the fakes and runs the program with it."""
        tool = os.environ.get("TESTED_PROGRAM")
        if not tool:
            pytest.skip("configured without the program")
        folder = program.folder / "links"
        return {"command": [tool, "run", "--library-path", str(folder), "--cublas", str(FAKES), "--"], "preload": False, "fakes": ["libcuda.so.1"]}

    @pytest.mark.parametrize("way", ["--handle", "--deepbind"])
    def test_a_library_path_reaches_it(self, program, library_path, way):
        run = program(*SMALL, way, **library_path, policy="native", explain=1)
        assert "policy native forwards every call" in run.stderr and len(run.real()) == 1 and run.document["results"] == [32]
        assert sorted(path.name for path in (program.folder / "links").iterdir()) == [
            "libcublas.so.13", "libcublasLt.so.13", "libcublasLt_real.so.13", "libcublas_real.so.13", "libkintsugi.so.0", "libkintsugi_cublas.so.0"]

    @needs_device_code
    def test_a_library_path_emulates(self, program, library_path):
        run = program(*LARGE, *SMALL, "--handle", **library_path, report="report.json")
        assert any("fp16" in event for event in run.launches()) and run.stderr == ""
        assert [event.split()[0] for event in run.real()] == ["cublasSgemm_v2"] and "m=64" in run.real()[0]
        assert read_report(program.folder / "report.json")["cublas"].endswith("links/libcublas_real.so.13")

    def test_a_library_path_needs_the_real_library(self, program, library_path):
        command = [*library_path["command"][:4], "--cublas", str(program.folder), "--"]
        run = program(*SMALL, **(library_path | {"command": command}), check=False)
        assert run.returncode == 2 and f"there is no libcublas.so.12 or .13 in {program.folder}; --cublas names its folder" in run.stderr

    def test_kintsugi_run_sets_the_audit_library(self, program):
        tool = os.environ.get("TESTED_PROGRAM")
        if not tool:
            pytest.skip("configured without the program")
        run = program(*SMALL, "--handle", preload=False, command=[tool, "run", "--audit", "--"], policy="native", explain=1)
        assert "policy native forwards every call" in run.stderr and len(run.real()) == 1


def test_loading_takes_no_time_and_makes_no_context(program):
    code = ("import ctypes, sys, time\nbegin = time.perf_counter()\nctypes.CDLL(sys.argv[1])\n"
            "print(time.perf_counter() - begin)\n"
            "assert not any(name in open('/proc/self/maps').read() for name in ('libcuda', 'libcublas.so'))\n")
    seconds = min(float(subprocess.run([sys.executable, "-c", code, CUBLAS], check=True, capture_output=True, text=True).stdout)
                  for _ in range(5))
    assert seconds < 0.02, f"loading took {seconds * 1e3:.1f} ms"


@needs_device_code
class TestSites:
    """Rules of call sites; all calls of this program are from ctypes, which calls from one place."""

    @staticmethod
    def file(program, rules, **members):
        path = program.folder / "sites.json"
        path.write_text(json.dumps({"format": "kintsugi.sites", "format_version": 1, "sites": rules, **members}))
        return path

    def name(self, program):
        """The site's name, from the report of a run without rules, in which all calls are native."""
        run = program(*LARGE, sites=self.file(program, {}), report=program.folder / "report.json")
        assert len(run.real()) == 1 and run.stderr == ""
        problem, = read_report(program.folder / "report.json")["problems"]
        assert problem["reasons"] == {"the sites file does not name the call site": 1}
        return problem["site"]

    def test_names_are_module_function_and_offset(self, program):
        module, rest = self.name(program).split(":")
        function, offset = rest.split("@")
        assert ".so" in module and function and int(offset, 16) > 0

    def test_a_scheme_runs_whatever_it_costs(self, program):
        name = self.name(program)
        run = program(*SMALL, "--product", "dgemm", "64", "48", "32", sites=self.file(program, {name: {"scheme": "fp16x3"}}),
                      report=program.folder / "report.json")
        problems = {problem["symbol"]: problem for problem in read_report(program.folder / "report.json")["problems"]}
        assert problems["cublasSgemm_v2"]["emulated_calls"] == {"fp16x3": 1} and run.launches()
        # fp16x3 takes no FP64: the call is native, and one line says so.
        assert problems["cublasDgemm_v2"]["native_calls"] == 1 and run.stderr.count("its rule makes no plan") == 1
        assert {problem["site"] for problem in problems.values()} == {name}
        ended = program("--product", "dgemm", "64", "48", "32", sites=self.file(program, {name: {"scheme": "fp16x3"}}), strict=1, check=False)
        assert ended.returncode == 2 and "its rule makes no plan" in ended.stderr and not ended.document

    def test_native_and_unknown_sites(self, program):
        name = self.name(program)
        run = program(*LARGE, sites=self.file(program, {name: {"policy": "native"}}))
        assert len(run.real()) == 1 and run.launches() == [] and run.stderr == ""
        run = program(*LARGE, "--repeat", "2", sites=self.file(program, {"other:main@0x10": {"scheme": "fp16x3"}}))
        assert len(run.real()) == 2 and run.stderr.count("is not in the sites file: its calls are native") == 1

    def test_policy_native_is_the_default_of_other_names_alone(self, program):
        name = self.name(program)
        run = program(*SMALL, sites=self.file(program, {name: {"scheme": "fp16x3"}}), policy="native")
        assert run.launches() and run.real() == []

    @pytest.mark.parametrize("settings, message", [
        ({"policy": "force"}, 'KINTSUGI_POLICY = "force" cannot stand beside KINTSUGI_SITES'),
        ({"scheme": "fp16x3"}, "cannot stand beside KINTSUGI_SITES, which names schemes")])
    def test_settings_that_contradict(self, program, settings, message):
        run = program(*LARGE, sites=self.file(program, {}), **settings)
        assert message in run.stderr and len(run.real()) == 1

    def test_the_tuner_searches_them(self, program):
        """By weights and a command for the error, since the fakes have neither times nor results."""
        run = program(*LARGE, preload=False, command=[
            os.environ["TESTED_PROGRAM"], "tune-program", "--library", "cublas", "--limit", "0.1", "--metric", "command", "--command", "echo 0.05",
            "--cost", "weights", "--levels", "native@1,fp16x3@0.4,ozaki2@0.3,fp16@0.1", "--json", "--"])
        document = run.document
        site, = document["sites"]
        assert site["type"] == "s" and site["calls"] == 1 and site["level"] == "fp16"
        assert [level["name"] for level in site["levels"]] == ["native", "fp16x3", "ozaki2", "fp16"]
        assert site["multiplications"] == math.prod(map(int, LARGE[2:5]))
        tuned = program(*LARGE, sites=program.folder / "sites.json")
        assert tuned.launches() and not any(event.startswith("cublasSgemm") for event in tuned.real()) and tuned.stderr == ""

    def test_the_tuner_finds_the_sites_of_a_program(self, tmp_path):
        """apps/perceptron_cublas, whose native products the fake cuBLAS computes; emulated ones it does not, so their error is about 1."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KINTSUGI_", "FAKE_"))}
        environment |= {"LD_LIBRARY_PATH": str(FAKES), "FAKE_CUDA_MULTIPLY": "1", "FAKE_CUDA_NAME": "NVIDIA H200", "KINTSUGI_CONFIG": "", "KINTSUGI_NVRTC": "none",
                        "HOME": str(tmp_path)}
        words = ["tune-program", "--library", "cublas", "--cost", "weights", "--levels", "native@1,fp16x3@0.4,fp16@0.1", "--output", "Y.npy", "--json"]
        for limit, level in (("1e-6", "native"), ("100", "fp16")):
            result = subprocess.run([os.environ["TESTED_PROGRAM"], *words, "--limit", limit, "--", BUILD / "apps/perceptron_cublas", "48", "40", "56",
                                     "Y.npy"], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
            assert result.returncode == 0, result.stderr
            document = json.loads(result.stdout)
            assert sorted(site["function"] for site in document["sites"]) == ["first_layer", "last_layer", "second_layer"]
            assert {site["level"] for site in document["sites"]} == {level} and document["steps"][0]["error"] == 0
            functions = {site["site"]: site["function"] for site in document["sites"]}
            assert {site["function"]: [functions[edge["site"]] for edge in site["inputs"]] for site in document["sites"]} == {
                "first_layer": [], "second_layer": ["first_layer"], "last_layer": ["second_layer"]}

    def test_the_tuner_needs_a_result_outside_the_device(self, program):
        run = program(*LARGE, preload=False, command=[os.environ["TESTED_PROGRAM"], "tune-program", "--library", "cublas", "--limit", "0.1", "--"],
                      check=False)
        assert run.returncode == 2 and "--output: is needed with --library cublas" in run.stderr

    def test_outputs_are_refused(self, program):
        run = program(*LARGE, sites=self.file(program, {}, outputs="folder"))
        assert 'outputs = "folder" is for the BLAS drop-in alone' in run.stderr and len(run.real()) == 1

    def test_a_malformed_file_ends_a_strict_program(self, program):
        (program.folder / "sites.json").write_text("{")
        run = program(*LARGE, sites=program.folder / "sites.json", strict=1, check=False)
        assert run.returncode == 2 and "is no JSON" in run.stderr
