"""Help, versions, listings, doctor and generate."""

import os
import pathlib
import re
import subprocess

import numpy
import pytest
from conftest import PROGRAM, SOURCE

COMMANDS = ["gemm", "schemes", "engines", "settings", "doctor", "generate", "bench", "explain"]


def test_help(program):
    text = program.ok("--help").stdout
    assert "Example:\n  kintsugi " in text
    assert all(f"\n  {command} " in text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands(program, command):
    text = program.ok(command, "--help").stdout
    assert f"Example:\n  " in text and f"kintsugi {command}" in text.split("Example:")[1]
    assert "--json" in text
    assert all(len(line) <= 140 for line in text.splitlines())


def test_the_examples_run(program):
    """Those of --help and of gemm --help, in a folder that has what they name."""
    lines = program.ok("--help").stdout.split("Example:\n")[1].splitlines()
    examples = [line.split()[1:] for line in lines if line.startswith("  kintsugi ")]
    assert len(examples) == 3
    for words in examples:
        program.ok(*words)
    program.ok("generate", "uniform", "512x512", "-o", "A.mtx")
    program.ok("generate", "uniform", "48x32", "--type", "c32", "-o", "Z.npy")
    lines = program.ok("gemm", "--help").stdout.split("Example:\n")[1].splitlines()
    environment = {**program.environment, "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"}
    for line in lines:
        if line.startswith("  kintsugi "):
            subprocess.run(["bash", "-ec", line], cwd=program.folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def test_version(program):
    header = (SOURCE / "include" / "kintsugi" / "kintsugi.h").read_text()
    parts = [re.search(rf"KINTSUGI_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    assert program.ok("--version").stdout.startswith(f"kintsugi {'.'.join(parts)} (commit ")
    assert program.ok("-V").stdout == program.ok("--version").stdout


@pytest.mark.parametrize("command", [*COMMANDS, "help"])
def test_help_is_a_command_too(program, command):
    assert program.ok("help", command).stdout == program.ok(command, "--help").stdout


@pytest.mark.parametrize("command", ["accuracy", "analyse", "report", "reproduce"])
def test_commands_of_the_laboratory_say_where_they_are(program, command):
    assert f"\n  {command} " not in program.ok("--help").stdout
    for words in ([command], [command, "--help"], [command, "x", "-o", "y"], ["help", command]):
        assert program.bad(*words).startswith(f"{command}: is now kintsugi-lab {command}; cmake -S lab ")


def test_help_alone_is_the_programs(program):
    assert program.ok("help").stdout == program.ok("--help").stdout


def test_schemes_by_name(program):
    """In the registry's order; parameters after the name do no harm."""
    document = program.ok("schemes", "h2sgemm:sb=6", "fp16", "--json").json()
    assert [scheme["name"] for scheme in document["schemes"]] == ["fp16", "h2sgemm"]
    text = program.ok("schemes", "h2sgemm").stdout
    assert "sb=0...40" in text and "fp16x3" not in text


def test_schemes(program):
    text = program.ok("schemes").stdout
    document = program.ok("schemes", "--json").json()
    names = [scheme["name"] for scheme in document["schemes"]]
    assert {"fp16", "markidis", "fp16x3", "fp16x3-wide"} <= set(names)
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[2 : 2 + len(names)]] == names
    for scheme in document["schemes"]:
        assert scheme["source"].split()[0] in text


def test_engines(program):
    text = program.ok("engines").stdout
    for engine in program.ok("engines", "--json").json()["engines"]:
        assert engine["available"] or engine["reason"], "an engine that is not there says why"
        (line,) = [line for line in text.splitlines() if line.startswith(engine["name"] + "  ")]
        assert line.split()[1] == ("yes" if engine["available"] else "no")


def test_doctor(program):
    document = program.ok("doctor", "--json").json()
    findings = {finding["name"]: finding for finding in document["findings"]}
    with open("/proc/cpuinfo") as file:
        flags = re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE)
    flags = flags[1].split() if flags else []
    for flag in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx512ifma", "amx_bf16", "amx_int8"):
        assert findings[flag]["status"] == ("ok" if flag in flags else "missing")
    profile = findings["profile of the CPU"]
    assert profile["status"] == "ok" and "shipped with the library; `kintsugi calibrate" in profile["detail"]
    assert findings["threads"]["detail"].startswith(f"{len(os.sched_getaffinity(0))} ")
    for engine in program.ok("engines", "--json").json()["engines"]:
        assert findings["engine " + engine["name"]]["status"] == ("ok" if engine["available"] else "missing")
    assert "NVIDIA driver" in findings
    (cuda,) = [e for e in program.ok("engines", "--json").json()["engines"] if e["name"] == "cuda"]
    for requirement in cuda["requirements"]:
        assert requirement["met"] or requirement["reason"]
    for finding in findings.values():
        assert finding["status"] == "ok" or finding["advice"], "what is missing says what to do"
    text = program.ok("doctor").stdout
    for finding in findings.values():
        assert re.search(rf"^{finding['status']}\s+{re.escape(finding['name'])}\s", text, re.MULTILINE)


def test_doctor_compares_matrix_units_with_their_models(program):
    """Units of this machine: those of the engines' accumulators that are neither fp32 nor cuBLAS's alone."""
    findings = program.ok("doctor", "--models", "--json").json()["findings"]
    units = {finding["name"]: finding for finding in findings if finding["name"].startswith("unit")}
    engines = {e["name"]: e for e in program.ok("engines", "--json").json()["engines"] if e["available"]}
    expected = {f"unit {name}, {engine}" for engine in ("cpu", "cuda") if engine in engines
                for name in ("fp16", "bf16", "tf32")
                if engines[engine]["accumulators"].get(name, ["fp32"])[0] != "fp32"}
    assert set(units) == (expected or {"unit"})
    for name in expected:
        detail = units[name]["detail"]
        if units[name]["status"] == "missing":  # cuBLAS's products, where nothing compiles kernels
            assert "cublas" in detail
            continue
        assert units[name]["status"] == "ok"
        assert detail.split("the bounds of ")[1] in detail.split(" random ")[0], "contracts use the bounds of another model"
    assert not any(finding["name"].startswith("unit") for finding in program.ok("doctor", "--json").json()["findings"])
    assert "--models" in program.bad("doctor", "--models", "--", "true")


def test_doctor_tells_of_an_engine_that_is_missing(program):
    environment = {"KINTSUGI_CPU_BLAS": "libabsent.so.7"}
    findings = program.ok("doctor", "--json", environment=environment).json()["findings"]
    (engine,) = [finding for finding in findings if finding["name"] == "engine cpu"]
    assert engine["status"] == "missing" and "libabsent.so.7" in engine["advice"]
    (setting,) = [finding for finding in findings if finding["name"] == "setting cpu_blas"]
    assert setting["detail"] == "libabsent.so.7 (from the environment)"
    # The reference engine does without it, where it is named; no other call may run on it instead.
    program.ok("generate", "uniform", "8x8", "-o", "A.npy")
    program.ok("gemm", "A.npy", "A.npy", "-o", "C.npy", "--engine", "reference", environment=environment)
    for flags in ([], ["--engine", "cpu"]):
        assert "libabsent.so.7" in program.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", *flags, environment=environment)


def test_generate_is_reproducible(program):
    for name in ("A.npy", "B.npy"):
        program.ok("generate", "phi:2", "30x20", "-o", name, "--seed", "5")
    assert (program.folder / "A.npy").read_bytes() == (program.folder / "B.npy").read_bytes()
    program.ok("generate", "phi:2", "30x20", "-o", "B.npy", "--seed", "6")
    assert not numpy.array_equal(program.load("A.npy"), program.load("B.npy"))
    program.ok("generate", "phi:2", "30x20", "-o", "B.npy", "--seed", "5", "--side", "b")
    assert not numpy.array_equal(program.load("A.npy"), program.load("B.npy"))


def test_generate_offers_every_distribution_of_its_help(program):
    text = program.ok("generate", "--help").stdout.split("Distributions:\n")[1]
    forms = [line.split()[0] for line in text.splitlines() if re.match(r"  \S", line)]
    assert len(forms) >= 15
    for form in forms:
        name = form.split(":")[0].replace("type1...4", "type1")
        parameter = {"special": ":0.1", "zeros": ":0.1", "tile-outlier": ":0.1", "phi": ":2"}.get(name, ":4" if ":" in form else "")
        program.ok("generate", name + parameter, "6x8", "-o", "A.npy")
        assert program.load("A.npy").shape == (6, 8)


def test_generate_special_and_range(program):
    program.ok("generate", "special:0.5", "40x40", "-o", "A.npy", "--type", "fp64")
    array = program.load("A.npy")
    assert numpy.isnan(array).any() and numpy.isinf(array).any()
    program.ok("generate", "uniform", "40x40", "-o", "A.npy")
    assert abs(program.load("A.npy")).max() <= 1
