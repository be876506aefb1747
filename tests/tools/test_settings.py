"""Settings from flags, the environment and the file, the nearest first; and the listings."""

import numpy
import pytest


@pytest.fixture
def operands(program, random):
    program.save("A.npy", random.standard_normal((16, 16)).astype("f4"))
    return program


def row_and_settings(program, *flags, **keywords):
    document = program.ok("gemm", "A.npy", "A.npy", "--check", "--json", *flags, **keywords).json()
    return document["rows"][0], document["settings"]


def test_the_environment_is_obeyed(operands):
    environment = {"KINTSUGI_SCHEME": "fp16", "KINTSUGI_ENGINE": "reference", "KINTSUGI_ACCUMULATOR": "a100"}
    row, settings = row_and_settings(operands, environment=environment)
    assert (row["scheme"], row["engine"], row["accumulator"]) == ("fp16", "reference", "a100")
    assert settings["scheme"] == {"value": "fp16", "source": "environment"}


def test_flags_come_before_the_environment(operands):
    row, settings = row_and_settings(operands, "--scheme", "markidis", environment={"KINTSUGI_SCHEME": "fp16"})
    assert row["scheme"] == "markidis"
    assert settings["scheme"] == {"value": "markidis", "source": "handle"}


def test_the_file_is_obeyed(operands):
    file = operands.folder / "home" / ".config" / "kintsugi" / "settings"
    file.parent.mkdir(parents=True)
    file.write_text("# ours\nscheme = fp16x3\n engine=reference\n")
    row, settings = row_and_settings(operands)
    assert (row["scheme"], row["engine"]) == ("fp16x3", "reference")
    assert settings["scheme"] == {"value": "fp16x3", "source": "file"}
    row, _ = row_and_settings(operands, environment={"KINTSUGI_SCHEME": "fp16"})
    assert (row["scheme"], row["engine"]) == ("fp16", "reference")
    other = operands.folder / "other"
    other.write_text("scheme = markidis\n")
    row, _ = row_and_settings(operands, environment={"KINTSUGI_CONFIG": str(other)})
    assert row["scheme"] == "markidis"


def test_the_native_row_stands_beside_a_scheme_of_the_environment(operands):
    environment = {"KINTSUGI_SCHEME": "fp16"}
    row, _ = row_and_settings(operands, environment=environment)
    assert row["baseline"]["scheme"] == "native" and row["errors"]["le_gemm_max_error"] != "nan"
    flags = ["--check", "--json", "--compare", "native,fp16x3"]
    rows = operands.ok("gemm", "A.npy", "A.npy", *flags, environment=environment).json()["rows"]
    assert [row["scheme"] for row in rows] == ["fp16", "native", "fp16x3"]


@pytest.mark.parametrize(
    "environment,message",
    [
        ({"KINTSUGI_SCHEM": "fp16", "KINTSUGI_STRICT": "1"},
         "settings: the environment variable KINTSUGI_SCHEM names no setting (did you mean KINTSUGI_SCHEME?)"),
        ({"KINTSUGI_STRICT": "yes"}, 'settings: KINTSUGI_STRICT: strict = "yes" is not accepted; accepted: 0, 1'),
        ({"KINTSUGI_POLICY": "never"}, 'settings: KINTSUGI_POLICY: policy = "never" is not accepted; accepted: auto, '),
        ({"KINTSUGI_THREADS": "many"}, 'settings: KINTSUGI_THREADS: threads = "many" is not accepted; '),
        ({"KINTSUGI_CONFIG": "absent"}, 'settings: KINTSUGI_CONFIG = "absent" cannot be read'),
        ({"KINTSUGI_CONFIG": "bad"}, 'settings: bad:2: "scheme fp16" is not of the form name = value'),
        ({"KINTSUGI_SCHEME": "fp15"}, 'there is no scheme "fp15"; did you mean fp16? The schemes are fp16, '),
        ({"KINTSUGI_CONFIG": "misspelt"}, 'there is no setting "polizy"; did you mean policy? The settings are accuracy, '),
        ({"KINTSUGI_ENGINE": "abacus"}, 'there is no engine "abacus"; the engines are auto, '),
    ],
)
def test_malformed_values_are_errors(operands, environment, message):
    (operands.folder / "bad").write_text("\nscheme fp16\n")
    (operands.folder / "misspelt").write_text("polizy = native\n")
    before = operands.files()
    assert message in operands.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", environment=environment)
    assert operands.files() == before


@pytest.mark.parametrize("environment", [{"KINTSUGI_SCHEME": "a b"}, {"KINTSUGI_CONFIG": "bad"}])
def test_help_and_doctor_work_in_a_malformed_environment(program, environment):
    (program.folder / "bad").write_text("scheme fp16\n")
    assert "--workspace-limit" in program.ok("gemm", "--help", environment=environment).stdout
    program.ok("schemes", environment=environment)
    findings = program.ok("doctor", "--json", environment=environment).json()["findings"]
    (finding,) = [finding for finding in findings if finding["name"] == "settings"]
    assert finding["status"] == "malformed" and finding["advice"]
    assert program.bad("settings", environment=environment).startswith("settings: ")


# Variables that CMake and module systems set, and a misspelt setting.
UNKNOWN = {"KINTSUGI_ROOT": "/opt/kintsugi", "KINTSUGI_DIR": "/opt", "KINTSUGI_HOME": "", "KINTSUGI_SCHEM": "fp16"}


def test_variables_that_name_no_setting_are_ignored_and_named_once(operands):
    operands.ok("gemm", "A.npy", "A.npy", "-o", "C.npy", environment=UNKNOWN)
    flags = ["--log", "error", "--compare", "fp16", "--check"]
    result = operands("gemm", "A.npy", "A.npy", *flags, environment=UNKNOWN)
    assert result.status == 0 and result.stderr.count("names no setting") == len(UNKNOWN)
    (line,) = result.stderr.splitlines()
    assert line.startswith("kintsugi log: ignored: ")
    assert "KINTSUGI_SCHEM names no setting (did you mean KINTSUGI_SCHEME?)" in line


def test_variables_that_name_no_setting_are_listed(program, validate):
    document = program.ok("settings", "--json", environment=UNKNOWN).json()
    nearest = {variable["name"]: variable["nearest"] for variable in document["ignored_variables"]}
    assert nearest == {**dict.fromkeys(UNKNOWN), "KINTSUGI_SCHEM": "KINTSUGI_SCHEME"}, "no hint where nothing is near"
    validate(document, "settings")
    doctor = program.ok("doctor", "--json", environment=UNKNOWN).json()
    ignored = {finding["name"]: finding for finding in doctor["findings"] if finding["status"] == "ignored"}
    assert set(ignored) == {"variable " + name for name in UNKNOWN}
    assert ignored["variable KINTSUGI_SCHEM"]["detail"] == "names no setting; did you mean KINTSUGI_SCHEME?"
    assert ignored["variable KINTSUGI_ROOT"]["detail"] == "names no setting"
    validate(doctor, "doctor")


def test_strict_can_be_a_flag(operands):
    message = operands.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", "--strict", "1", environment=UNKNOWN)
    assert "names no setting" in message and "KINTSUGI_STRICT = 1" in message


def test_every_setting_has_a_flag(program):
    settings = program.ok("settings", "--json").json()["settings"]
    text = program.ok("gemm", "--help").stdout
    for setting in settings:
        assert "--" + setting["name"].replace("_", "-") + " " in text


def test_flags_of_what_serves_the_whole_program(operands):
    """The library reads these from the environment alone; their flags work all the same."""
    message = operands.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", "--engine", "cpu", "--cpu-blas", "libabsent.so.7")
    assert "libabsent.so.7" in message


def test_settings_table(program):
    lines = program.ok("settings", environment={"KINTSUGI_THREADS": "1"}).stdout.splitlines()
    (threads,) = [line for line in lines if line.startswith("threads ")]
    assert threads.split()[:4] == ["threads", "1", "environment", "KINTSUGI_THREADS"]


def test_log_lines_go_to_stderr(operands):
    result = operands("gemm", "A.npy", "A.npy", "-o", "C.npy", "--log", "info")
    assert result.status == 0
    assert "kintsugi log: gemm m = 16, n = 16, k = 16" in result.stderr and "log" not in result.stdout


def test_threads_and_workspace_do_not_change_bits(program):
    program.ok("generate", "phi:1", "400x70", "-o", "A.npy")
    program.ok("generate", "phi:1", "70x300", "-o", "B.npy", "--side", "b")
    common = ["gemm", "A.npy", "B.npy", "-o", "C.npy", "--scheme", "fp16x3", "--engine", "reference", "--explain", "--json"]
    results = []
    blocks = set()
    for flags in ([], ["--threads", "1"], ["--threads", "2"], ["--workspace-limit", "600K"]):
        report = program.ok(*common, *flags).json()["rows"][0]["report"]
        blocks.add((report["blocking"]["m"], report["blocking"]["n"]))
        results.append(program.load("C.npy"))
    assert len(blocks) == 2, "the limit did block the problem"
    assert all(numpy.array_equal(result, results[0]) for result in results)


IDLE_FLAGS = [
    (["--sites", "sites.json"], "--sites: has no effect here: the drop-ins alone read it"),
    (["--offload-memory", "1G"], "--offload-memory: has no effect without --offload auto or force"),
    (["--offload-keep", "a"], "--offload-keep: has no effect without --offload auto or force"),
    (["--cublas", "libcublas.so.13"], "--cublas: has no effect without --engine cuda or --offload"),
    (["--engine", "reference", "--scheme", "fp16", "--cpu-int8", "generic"], "--cpu-int8: has no effect on the engine reference"),
    (["--scheme", "fp16", "--policy", "emulate"], "--policy: emulate has no effect beside --scheme fp16, which runs in any case"),
    (["--policy", "native", "--accumulator", "h200"], "--accumulator: h200 has no effect: no program of the plan adds in this way"),
]


@pytest.mark.parametrize("flags, message", IDLE_FLAGS)
def test_flags_without_an_effect_are_refused(operands, flags, message):
    before = operands.files()
    assert operands.bad("gemm", "A.npy", "A.npy", "-o", "C.npy", *flags).startswith(message)
    assert operands.files() == before


def test_flags_with_an_effect_are_not(operands):
    """By another flag, by the environment, or on a compared product."""
    call = ["gemm", "A.npy", "A.npy", "--check"]
    operands.ok(*call, "--offload", "auto", "--offload-memory", "1G")
    operands.ok(*call, "--offload-keep", "a", environment={"KINTSUGI_OFFLOAD": "auto"})
    operands.ok(*call, "--scheme", "fp16", "--policy", "emulate", "--compare", "exact")
    operands.ok(*call, "--engine", "reference", "--scheme", "fp16", "--accumulator", "h200")
    operands.ok(*call, "--engine", "cpu", "--scheme", "int8x6", "--cpu-int8", "generic")


def test_other_commands_refuse_flags_without_an_effect(operands):
    assert operands.bad("generate", "uniform", "2x2", "-o", "B.mtx", "--order", "fortran").startswith("--order: fortran has no effect")
    assert operands.bad("explain", "A.npy", "A.npy", "--seed", "2").startswith("--seed: has no effect on the matrices of files")
    tune = ["tune-program", "--limit", "1", "--output", "x.npy"]
    assert operands.bad(*tune, "--levels", "native@2,fp16", "--", "true").startswith("--levels: the weight of native@2 has no effect")
    assert operands.bad(*tune, "--cost", "weights", "--repeat", "2", "--", "true").startswith("--repeat: 2 has no effect with --cost weights")
    message = operands.bad(*tune, "--", "true", environment={"KINTSUGI_POLICY": "native"})
    assert message.startswith("KINTSUGI_POLICY: native has no effect here, since --levels name what runs")
