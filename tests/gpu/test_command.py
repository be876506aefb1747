"""./test gpu with fakes of the bundle's programs: how it reports their output, their crashes and missing programs."""

import importlib.machinery
import json
import os
import pathlib
import re
import shutil
import subprocess
import types

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])

# Lists two suites. Runs the tests of its filter: A.Crashes ends it, and A.Passes prints the output of a child process too.
GPU_TEST = """#!/bin/bash
case $1 in
  --gtest_list_tests) printf 'Running main()\\nA.\\n  Passes\\n  DISABLED_Child\\n  Crashes\\n  Fails\\nB/0.  # TypeParam = float\\n  Skips\\n'; exit ;;
esac
IFS=: read -ra tests <<<"${1#--gtest_filter=}"
for test in "${tests[@]}"; do
  echo "[ RUN      ] $test"
  case $test in
    *Passes) echo "[ RUN      ] A.DISABLED_Child"; echo "[       OK ] $test (1 ms)" ;;
    *Crashes) echo "an illegal address on GPU $CUDA_VISIBLE_DEVICES"; exit 134 ;;
    *Fails) echo "file.cpp:1: Failure on GPU $CUDA_VISIBLE_DEVICES"; echo "[  FAILED  ] $test (1 ms)" ;;
    *Skips) echo "/made/here/tests/gpu/b.cpp:7: Skipped"; echo "[  SKIPPED ] $test (1 ms)" ;;
  esac
done
"""
PROGRAM = """#!/bin/bash
if [ "$1" = engines ]; then
  cat <<'JSON'
{"engines": [{"name": "cuda", "available": AVAILABLE, "reason": "REASON", "details": "NVIDIA Stand-in, compute 9.0",
  "requirements": []}]}
JSON
else
  echo '{"rows": []}'
fi
"""


# Writes the output of gpu_fuzz; CALLS and VIOLATIONS are replaced by numbers.
GPU_FUZZ = """#!/bin/bash
words="$*"
while [ $# -gt 1 ]; do
  case $1 in --json) file=$2 ;; --seed) seed=$2 ;; esac
  shift
done
[[ $words == *--same-bits* ]] && calls=900 violations=0 || calls=CALLS violations=VIOLATIONS
cat >"$file" <<JSON
{"calls": $calls, "refused": 3, "violations": $violations, "seed": $seed, "ending": "done", "classes": [], "device": "x"}
JSON
echo "FAILED  bound: $words"
[ "$violations" = 0 ]
"""


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    program = PROGRAM.replace("AVAILABLE", "true").replace("REASON", "")
    for name, text in (("gpu_test", GPU_TEST), ("kintsugi", program), ("some_rate", "#!/bin/bash\necho 3.5 TB/s\n")):
        write_program(folder / name, text)
    (folder / "sources.txt").write_text("0" * 64 + "\n")
    return folder


def write_program(file, text):
    file.write_text(text)
    file.chmod(0o755)


def run(*words, path=None, **variables):
    environment = {**os.environ, **variables, **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})}
    return subprocess.run([SOURCE / "test", "gpu", *map(str, words)], capture_output=True, text=True, env=environment)


def cases_of(folder):
    (file,) = folder.glob("*.json")
    assert file.name == "nvidia-stand-in.json"
    document = json.loads(file.read_text())
    assert document["format"] == "kintsugi.gpu" and document["sources"] == "0" * 64
    return {case["name"]: case for case in document["cases"]}


def test_checks_go_on_after_a_crash(bundle, tmp_path):
    result = run("--bundle", bundle, "--json", tmp_path / "results", "--parts", "checks", "--jobs", "1")
    assert result.returncode == 1
    cases = cases_of(tmp_path / "results")
    passed = {name: case["passed"] for name, case in cases.items()}
    assert passed == {"A.Passes": True, "A.Crashes": False, "A.Fails": False, "B/0.Skips": True}
    assert "an illegal address" in cases["A.Crashes"]["message"] and "status 134" in cases["A.Crashes"]["message"]
    assert "file.cpp:1" in cases["A.Fails"]["message"] and cases["B/0.Skips"]["skipped"]
    assert cases["B/0.Skips"]["message"] == "tests/gpu/b.cpp:7: Skipped\n", "without the folder of the build"
    assert result.stdout.splitlines()[-3:-1] == ["FAILED  checks: A.Crashes", "FAILED  checks: A.Fails"]


def test_jobs_share_the_checks_on_all_gpus(bundle, tmp_path):
    result = run("--bundle", bundle, "--json", tmp_path / "results", "--parts", "checks", "--jobs", "2",
                 CUDA_VISIBLE_DEVICES="3,5")
    assert result.returncode == 1
    cases = cases_of(tmp_path / "results")
    assert set(cases) == {"A.Passes", "A.Crashes", "A.Fails", "B/0.Skips"}
    assert "GPU 5" in cases["A.Crashes"]["message"] and "GPU 3" in cases["A.Fails"]["message"]
    result = run("--bundle", bundle, "--jobs", "0")
    assert result.returncode == 2 and "--jobs: 0" in result.stderr


def test_sanitizer_failures_and_timings_are_reported(bundle, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    write_program(tools / "compute-sanitizer", '#!/bin/bash\n[ "$2" != racecheck ] || { echo a race; exit 86; }\n')
    result = run("--bundle", bundle, "--json", tmp_path / "results", "--parts", "sanitizer,timings", path=tools)
    assert result.returncode == 1
    cases = cases_of(tmp_path / "results")
    assert {name: cases[name]["passed"] for name in ("memcheck", "racecheck", "initcheck", "synccheck")} == {
        "memcheck": True, "racecheck": False, "initcheck": True, "synccheck": True}
    assert "a race" in cases["racecheck"]["message"]
    assert cases["some_rate"]["output"] == "3.5 TB/s\n"
    assert [case["passed"] for name, case in cases.items() if name.startswith("kintsugi bench")] == [True, True]


def test_suites_that_lack_a_module_or_program_are_skipped(bundle, tmp_path):
    """The bundle here has no drop-in, so that suites whose module is there fail."""
    result = run("--bundle", bundle, "--json", tmp_path / "results", "--suites")
    cases = {name.split()[0]: case for name, case in cases_of(tmp_path / "results").items()}
    modules = {"ways_in": "numpy", "fuzz": "numpy", "level3": "numpy", "epilogues": "numpy", "vectors": "numpy",
               "features": "numpy", "cholmod": "cholmod_l_demo", "pytorch": "torch", "linalg": "torch", "cupy_products": "cupy",
               "jax_products": "jax", "graphs": "torch"}
    assert set(cases) == set(modules)
    for name, module in modules.items():
        if subprocess.run(["python3", "-c", f"import {module}"], capture_output=True).returncode != 0:
            assert cases[name]["skipped"] and cases[name]["message"] == f"there is no module or program {module}"
        else:
            assert result.returncode == 1 and "has no libkintsugi_cublas.so" in cases[name]["message"]


def test_every_filter_of_the_sanitizers_matches_tests():
    program = pathlib.Path(os.environ["TESTED_GPU_TEST"])
    loader = importlib.machinery.SourceFileLoader("test_gpu", str(SOURCE / "scripts" / "test_gpu"))
    script = types.ModuleType("test_gpu")
    script.__file__ = loader.path
    loader.exec_module(script)
    for pattern in set(":".join(script.CHECKED.values()).replace(":-", "-").split("-")[0].split(":")):
        words = [program, "--gtest_list_tests", f"--gtest_filter={pattern}"]
        listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert re.search(r"^  \w+", listed, re.M), pattern


@pytest.mark.parametrize("calls, violations, passes", [(20000, 0, True), (20000, 2, False), (9999, 0, False)])
def test_fuzz_fails_after_few_calls_or_violations(bundle, tmp_path, calls, violations, passes):
    write_program(bundle / "gpu_fuzz", GPU_FUZZ.replace("CALLS", str(calls)).replace("VIOLATIONS", str(violations)))
    result = run("--bundle", bundle, "--json", tmp_path / "results", "--parts", "fuzz", "--seed", 5)
    assert result.returncode == (0 if passes else 1)
    cases = cases_of(tmp_path / "results")
    assert [case["passed"] for case in cases.values()] == [passes, True]
    case = cases["gpu_fuzz --seconds 45"]
    assert (case["calls"], case["violations"], case["seed"]) == (calls, violations, 5)
    assert passes or f"after {calls} calls" in case["message"]
    assert not list((tmp_path / "results").glob("*.fuzz"))


def test_fuzz_without_output_fails(bundle, tmp_path):
    write_program(bundle / "gpu_fuzz", "#!/bin/bash\nexit 0\n")
    result = run("--bundle", bundle, "--json", tmp_path / "results", "--parts", "fuzz")
    assert result.returncode == 1
    assert not any(case["passed"] for case in cases_of(tmp_path / "results").values())


def test_fuzz_runs_under_the_sanitizer_on_request(bundle, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    write_program(tools / "compute-sanitizer", '#!/bin/bash\ntool=$2\nwhile [[ $1 != /* ]]; do shift; done\n"$@"\n[ "$tool" != racecheck ]\n')
    write_program(bundle / "gpu_fuzz", GPU_FUZZ.replace("CALLS", "2000").replace("VIOLATIONS", "0"))
    result = run("--bundle", bundle, "--json", tmp_path / "results", "--parts", "sanitized-fuzz", path=tools)
    assert result.returncode == 1
    cases = cases_of(tmp_path / "results")
    assert {name: case["passed"] for name, case in cases.items()} == {"memcheck": True, "racecheck": False}
    assert "--no-vendor" in cases["racecheck"]["message"]


def test_resume_repeats_only_what_failed(bundle, tmp_path):
    words = ("--bundle", bundle, "--json", tmp_path / "results", "--parts", "checks")
    run(*words)
    write_program(bundle / "gpu_test", GPU_TEST.replace("exit 134", 'echo "[       OK ] $test (1 ms)"'))
    resumed = run(*words, "--resume")
    ran = [line.split()[-1] for line in resumed.stdout.splitlines() if line.startswith(("ok ", "FAILED  checks  "))]
    assert ran == ["A.Crashes", "A.Fails"]
    passed = {name: case["passed"] for name, case in cases_of(tmp_path / "results").items()}
    assert passed == {"A.Passes": True, "A.Crashes": True, "A.Fails": False, "B/0.Skips": True}
    (bundle / "sources.txt").write_text("1" * 64 + "\n")
    other = run(*words, "--resume")
    assert "is of other device sources" in other.stdout and "A.Passes" in other.stdout


def test_a_machine_without_a_gpu_is_reported(bundle, tmp_path):
    program = PROGRAM.replace("AVAILABLE", "false").replace("REASON", "there is no NVIDIA driver")
    write_program(bundle / "kintsugi", program)
    result = run("--bundle", bundle, "--json", tmp_path / "results")
    assert result.returncode == 1 and not (tmp_path / "results").exists()
    assert "cannot run on this machine: there is no NVIDIA driver" in result.stderr


def test_a_missing_bundle_says_how_to_get_one(tmp_path):
    result = run("--bundle", tmp_path / "nothing")
    assert result.returncode == 1 and "scripts/gpu_bundle" in result.stderr


def test_an_unknown_part_is_refused():
    result = run("--parts", "checks,cheques")
    assert result.returncode == 2 and "there is no part 'cheques'" in result.stderr


def test_stale_results_are_no_failure():
    result = run("--stale")
    assert result.returncode == 0 and result.stdout.startswith("GPU results: ")


def test_a_bundle_without_device_code_is_refused(tmp_path):
    """For example one of a build that ./quickstart made on a machine without a GPU."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/gpu_programs.txt").write_text("/nowhere/gpu_test\n")
    words = [SOURCE / "scripts/gpu_bundle", tmp_path]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 1 and "has no device code" in result.stderr and "-DKINTSUGI_DEVICE_CODE=on" in result.stderr
    (tmp_path / "device_architectures.cmake").write_text("")
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 1 and "/nowhere/gpu_test is not built" in result.stderr


@pytest.mark.parametrize("has_cholmod", [False, True])
def test_a_bundle_has_what_the_suites_need(tmp_path, has_cholmod):
    """Libraries of the library path in their folders, and CHOLMOD's program if it is built."""
    program = shutil.which("true")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/gpu_programs.txt").write_text(f"{program}\n")
    (tmp_path / "device_architectures.cmake").write_text("")
    for version, name in ((12, "libcublas.so.12"), (13, "libcublas.so.13"), (13, "libcublasLt.so.13")):
        (tmp_path / f"cublas_path/{version}").mkdir(parents=True, exist_ok=True)
        shutil.copy(program, tmp_path / f"cublas_path/{version}/{name}")
    if has_cholmod:
        shutil.copy(program, tmp_path / "cholmod_l_demo")
    result = subprocess.run([SOURCE / "scripts/gpu_bundle", tmp_path], capture_output=True, text=True, check=True)
    names = {file.relative_to(tmp_path / "gpu").as_posix() for file in (tmp_path / "gpu").rglob("*") if file.is_file()}
    assert {"true", "sources.txt", "cublas_path/12/libcublas.so.12", "cublas_path/13/libcublas.so.13", "cublas_path/13/libcublasLt.so.13"} <= names
    assert ("cholmod_l_demo" in names) == has_cholmod and ("make_cholmod" in result.stdout) == (not has_cholmod)
