"""kintsugi bench: checked results, honest numbers, what fails a check, bad input."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from test_json import accept

TINY = ["--shapes", "8x12x16", "--repeat", "2", "--threads", "1"]
CALLS = ["--call", "gemm", "--memory", "device"]
FAKES = pathlib.Path(os.environ["TESTED_BUILD"]) / "tests" / "fakes"


@pytest.fixture
def rows(program):
    def run(*words, **keywords):
        document = program.ok("bench", *words, "--json", **keywords).json()
        accept(document, "bench")
        return document["rows"]

    return run


def test_rows_and_schema(program):
    baselines = ["native", "long-double", "double-double", "float128", "mpfr:113"]
    words = ["exact,fp64", "ozaki2:moduli=20", "--type", "fp64", "--baselines", ",".join(baselines)]
    document = program.ok("bench", *words, *TINY, "--json").json()
    accept(document, "bench")
    assert document["settings"]["shapes"] == ["8x12x16"] and document["settings"]["baselines"] == baselines
    rows = document["rows"]
    assert [row["name"] for row in rows] == ["exact", "fp64", "ozaki2:moduli=20", *baselines]
    assert [row["kind"] for row in rows] == ["candidate"] * 3 + ["baseline"] * 5
    assert [row["check"]["promise"] for row in rows] == ["exact", "contract", "bound", "contract"] + ["bound"] * 4
    assert rows[2]["products"] == 20 and rows[2]["scheme"] == "ozaki2:moduli=20"
    for row in rows:
        assert row["problem"] == {"m": 8, "n": 12, "k": 16, "type": "fp64", "batch": 1} and row["prepared"] is None
        assert row["check"]["elements_checked"] == row["check"]["elements_total"] == 8 * 12
        loop = row["name"] in baselines[1:]
        assert (row["engine"] is None) == (row["workspace_bytes"] is None) == loop
        assert (row["products"] is None) == (row["kind"] == "baseline")
    assert "OpenBLAS" in rows[3]["engine_details"], "the native product's kernels"


@pytest.mark.parametrize("type_name,candidates", [("c32", "fp16x3,ozaki2,exact"), ("c64", "ozaki2:moduli=18,exact,fp64")])
def test_complex_elements_are_judged_by_parts(rows, type_name, candidates):
    found = rows(candidates, "--type", type_name, "--batch", "2", *TINY)
    assert [row["name"] for row in found] == [*candidates.split(","), "native"]
    for row in found:
        assert row["problem"]["type"] == type_name
        assert row["check"]["elements_total"] == row["check"]["elements_checked"] == 2 * 2 * 8 * 12
        assert row["rate"] == pytest.approx(2 * 8 * 8 * 12 * 16 / row["time"]["minimum"])


@pytest.mark.parametrize(
    "flags,environment,threads",
    [
        (["--threads", "3"], {"KINTSUGI_THREADS": "2", "OMP_NUM_THREADS": "4"}, 3),
        ([], {"KINTSUGI_THREADS": "2", "OMP_NUM_THREADS": "4"}, 2),
        ([], {"KINTSUGI_THREADS": "0", "OMP_NUM_THREADS": "4"}, 4),
        ([], {"OMP_NUM_THREADS": "5"}, 5),
        ([], {}, len(os.sched_getaffinity(0))),
    ],
)
def test_threads_of_all_that_is_timed(program, flags, environment, threads):
    """The flag's, else KINTSUGI_THREADS, else OMP_NUM_THREADS, else all."""
    words = ["bench", "fp16x3", "--baselines", "native,long-double", *TINY[:-2], *flags, "--json"]
    document = program.ok(*words, environment=environment).json()
    assert document["settings"]["threads"] == threads
    assert [row["threads"] for row in document["rows"]] == [threads] * 3


def test_threads_of_the_settings_file(program):
    file = program.folder / "settings"
    file.write_text("threads = 3\n")
    document = program.ok("bench", "fp16x3", *TINY[:-2], "--json", environment={"KINTSUGI_CONFIG": str(file)}).json()
    assert document["settings"]["threads"] == 3


def test_numbers_belong_together(rows):
    for row in rows("fp16x3", "int8x6", "--baselines", "native,float128", *TINY):
        time = row["time"]
        assert 0 < time["minimum"] <= time["median"] <= time["maximum"]
        assert time["processor"] > 0 and time["rounds"] == 2 and time["by"] == "clock"
        elements = sum(row["computed"][size] for size in "mn") * row["problem"]["k"]
        elements += row["computed"]["m"] * row["computed"]["n"]
        assert row["bandwidth"] == pytest.approx(4 * elements / time["minimum"])
        assert row["rate"] == pytest.approx(operations(row) / time["minimum"])
        assert set(row["ratios"]) == {"native", "float128"}
        if row["kind"] == "baseline":
            assert row["ratios"][row["name"]] == row["processor_ratios"][row["name"]] == 1


def operations(row):
    return 2 * row["computed"]["m"] * row["computed"]["n"] * row["problem"]["k"] * row["problem"]["batch"]


def test_short_runs_have_a_processor_time(program):
    for _ in range(10):
        text = program.ok("bench", "fp16x3", "--shapes", "1,2", "--repeat", "1", "--threads", "1").stdout
        assert len(re.findall(r" [0-9.e+-]+ \([0-9.e+-]+\) ", text)) == 4, text


def test_ratios_are_those_of_the_rates(rows):
    measured = rows("fp16x3", "--baselines", "native,long-double", *TINY)
    rates = {row["name"]: row["rate"] for row in measured}
    for row in measured:
        for name, ratio in row["ratios"].items():
            assert ratio == pytest.approx(row["rate"] / rates[name])
        by_time = {other["name"]: operations(other) / other["time"]["processor"] for other in measured}
        for name, ratio in row["processor_ratios"].items():
            assert ratio == pytest.approx(by_time[row["name"]] / by_time[name])


@pytest.mark.parametrize("flags", [[], ["--batch", "2"], ["--prepare", "b"], ["--type", "c64"]])
def test_whole_calls_are_checked_and_timed(program, rows, flags):
    candidate = "exact" if "c64" in flags else "fp16x3"
    words = [candidate, "auto", "--call", "gemm", *TINY, *flags]
    document = program.ok("bench", *words, "--json").json()
    accept(document, "bench")
    assert document["settings"]["call"] == "gemm"
    by_plan = rows(candidate, "auto", *TINY, *flags)
    for row, other in zip(document["rows"], by_plan, strict=True):
        assert row["name"] == other["name"] and row["check"] == other["check"]
        assert 0 < row["time"]["minimum"] <= row["time"]["median"]


@pytest.fixture
def fake_device(program):
    """The driver and cuBLAS of tests/fakes, which compute native products, as a device without a profile."""
    environment = {"LD_LIBRARY_PATH": str(FAKES), "FAKE_CUDA_MULTIPLY": "1", "FAKE_CUDA_CAPABILITY": "8.0", "KINTSUGI_ARCH": "generic"}
    engines = program.ok("engines", "--json", environment=environment).json()["engines"]
    (cuda,) = [engine for engine in engines if engine["name"] == "cuda"]
    if not cuda["available"]:
        pytest.skip(cuda["reason"])
    return environment


@pytest.mark.parametrize("problems", [1, 5])
def test_calls_on_a_device_are_timed_on_the_host(program, fake_device, problems):
    words = ["auto", *CALLS, "--problems", str(problems), "--baselines", "native,policy:native,cublas", *TINY]
    document = program.ok("bench", *words, "--json", environment=fake_device).json()
    accept(document, "bench")
    assert document["settings"]["problems"] == problems and document["ceilings"] is None
    rows = document["rows"]
    assert [row["name"] for row in rows] == ["auto", "native", "policy:native", "cublas"]
    medians = {row["name"]: row["time"]["median"] for row in rows}
    for row in rows:
        assert row["time"]["by"] == "calls" and row["time"]["processor"] is None and 0 < row["time"]["median"] < 1e-2
        assert row["check"]["promise"] == "contract" and row["check"]["largest_ratio"] <= 1
        assert row["rate"] is row["bandwidth"] is row["of_ceiling"] is None
        for name, ratio in row["ratios"].items():
            assert ratio == pytest.approx(medians[name] / medians[row["name"]])
    lines = program.ok("bench", *words, environment=fake_device).stdout.splitlines()
    assert f"host time of a call, from call to return, on an idle device; different problems: {problems}" in lines
    (head,) = [line for line in lines if line.startswith("m x n x k")]
    assert "beyond policy:native" in head and "beyond cublas" in head


def test_a_device_that_multiplies_wrongly_is_not_timed(program, fake_device):
    del fake_device["FAKE_CUDA_MULTIPLY"]
    result = program("bench", "auto", *CALLS, "--baselines", "cublas", *TINY, environment=fake_device)
    assert result.status == 1 and "nothing was timed" in result.stderr


def test_a_batch_counts_all_its_products(rows):
    measured = rows("fp16x3", "exact", "--batch", "6", "--baselines", "native,fp16,float128", "--baseline-size", "5", *TINY)
    for row in measured:
        size = row["computed"]["m"] * row["computed"]["n"]
        of_c = row["computed"]["m"] * row["computed"]["n"]
        elements = sum(row["computed"][size] for size in "mn") * row["problem"]["k"] + of_c
        assert row["problem"]["batch"] == 6
        assert row["rate"] == pytest.approx(operations(row) / row["time"]["minimum"])
        assert row["bandwidth"] == pytest.approx(4 * 6 * elements / row["time"]["minimum"])
        assert (row["check"]["elements_checked"], row["check"]["elements_total"]) == (4 * of_c, 6 * of_c)


def test_the_products_of_a_batch_have_seeds_of_their_own(rows):
    one, two, both = (
        rows("fp16x3", *TINY, "--seed", seed, "--batch", batch)[0]["check"]["max_componentwise"]
        for seed, batch in (("9", "1"), ("10", "1"), ("9", "2"))
    )
    assert one != two and both == max(one, two)


@pytest.mark.parametrize("side", ["a", "b"])
def test_an_operand_is_prepared(rows, side):
    flags = ["fp16x3", "fp32", "--baselines", "native,fp16,float128", "--batch", "3", *TINY]
    plain, prepared = rows(*flags), rows(*flags, "--prepare", side)
    assert [row["prepared"] for row in plain] == [None] * 5
    assert [row["prepared"] for row in prepared] == [side, side, None, side, None]
    for one, other in zip(plain, prepared):
        assert one["check"] == other["check"], "the bits are the same"


def test_what_is_fitted_to_each_product_has_no_batch(program, rows):
    assert rows("ozaki-fp16", *TINY)[0]["scheme"].startswith("ozaki-fp16")
    message = program.bad("bench", "ozaki-fp16", *TINY, "--batch", "2")
    assert message.startswith("--batch: ozaki-fp16 is fitted to each of the 2 products but reports only one fit"), message


def test_a_scheme_is_a_baseline_too(rows):
    candidate, scheme, native = rows("fp16x3", "--baselines", "fp16,native", *TINY)
    assert [row["kind"] for row in (candidate, scheme, native)] == ["candidate", "baseline", "baseline"]
    assert scheme["scheme"] == "fp16" and scheme["format"] == candidate["format"] == "fp16"
    assert scheme["products"] == 1 and scheme["ratios"]["fp16"] == 1 and native["format"] is None


@pytest.mark.parametrize("type_name", ["fp32", "fp64", "c32", "c64"])
def test_mkl_is_a_baseline_where_it_is_installed(program, type_name):
    """The check of the first run compares its C, with that of a batch's products, with the exact one."""
    words = ["bench", "auto", "--type", type_name, "--baselines", "mkl", "--batch", "2", *TINY, "--json"]
    result = program(*words)
    if "cannot be opened" in result.stderr:
        pytest.skip("no MKL")
    document = result.json()
    accept(document, "bench")
    assert {row["name"] for row in document["rows"]} == {"auto", "mkl"}
    assert all("Math Kernel Library" in row["engine_details"] for row in document["rows"] if row["name"] == "mkl")


def test_the_host_has_no_ceilings(program):
    document = program.ok("bench", "fp16x3", *TINY, "--json").json()
    assert document["device"] is None and document["ceilings"] is None and document["settings"]["memory"] == "host"
    assert all(row["of_ceiling"] is None and row["power_watts"] is None for row in document["rows"])


def test_auto_is_what_a_call_gets_that_asks_for_nothing(program, rows):
    for row in rows("auto", "--baselines", "float128", "--prepare", "b", *TINY)[:1] + rows("auto", "--type", "fp64", *TINY)[:1]:
        assert (row["name"], row["scheme"], row["kind"]) == ("auto", "native", "candidate"), "on a CPU nothing is quicker"
        k, bits = row["problem"]["k"], 24 if row["problem"]["type"] == "fp32" else 53
        assert row["check"]["promise"] == "contract" and row["check"]["relative"] == (k + 8) * 2.0**-bits
    document = program.ok("bench", "auto", *TINY, "--json").json()
    accept(document, "bench")
    assert document["settings"]["no_ceilings"] is False


def test_a_device_that_is_missing_is_said(program):
    (cuda,) = [engine for engine in program.ok("engines", "--json").json()["engines"] if engine["name"] == "cuda"]
    if cuda["available"]:
        pytest.skip("there is a device")
    message = program.bad("bench", "fp16x3", *TINY, "--memory", "device", "-o", "r.json")
    assert message == f"--memory: device: the engine cuda cannot be used: {cuda['reason']}" and cuda["reason"]
    assert program.files() == ["home"]


def test_reference_loops_compute_a_leading_block(rows):
    flags = ["--baselines", "native,float128", "--baseline-size", "5"]
    native, loop = rows("exact", *flags, *TINY)[1:]
    assert native["computed"] == {"m": 8, "n": 12} and loop["computed"] == {"m": 5, "n": 5}
    assert loop["check"]["elements_total"] == 25 and loop["check"]["correctly_rounded_fraction"] == 1


def test_what_the_data_decide_is_said(rows):
    (narrow, _), (wide, _) = (
        rows("fp32", "--distribution", distribution, *TINY) for distribution in ("span:2", "span:120")
    )
    assert narrow["name"] == wide["name"] == "fp32"
    assert narrow["scheme"] != "native" and narrow["accumulator"] is not None and wide["scheme"] == "native"


def test_sizes_limits_and_seeds(program, rows):
    words = ["fp16x3", "--shapes", "300,4x5x6", "--repeat", "1", "--seed", "9"]
    free = rows(*words)
    assert [tuple(row["problem"].values())[:3] for row in free[::2]] == [(300, 300, 300), (4, 5, 6)]
    assert free[0]["check"]["elements_checked"] < free[0]["check"]["elements_total"] == 90000
    limited = rows(*words, "--workspace-limit", str(free[0]["workspace_bytes"] - 256))
    assert limited[0]["workspace_bytes"] < free[0]["workspace_bytes"]
    error = "max_componentwise"
    assert limited[0]["check"][error] == free[0]["check"][error], "the bits are the same"
    assert rows(*words[:-1], "10")[0]["check"][error] != free[0]["check"][error]


def test_the_environment_does_not_choose(rows):
    candidate, _ = rows("fp16x3", *TINY[:-2], "--threads", "2", environment={"KINTSUGI_THREADS": "1"})
    assert candidate["threads"] == 2


IDLE = {"KINTSUGI_SCHEME": "fp16", "KINTSUGI_POLICY": "native", "KINTSUGI_ACCURACY": "exact", "KINTSUGI_ENGINE": "cpu"}


@pytest.mark.parametrize("command", [["bench", "fp16x3"], ["demo"]])
@pytest.mark.parametrize("variable", IDLE)
def test_settings_that_are_not_obeyed_are_refused(program, command, variable):
    message = program.bad(*command, environment={variable: IDLE[variable]})
    assert message.startswith(f"{variable}: {IDLE[variable]} has no effect here, since ") and message.endswith("; unset it")
    (program.folder / "mine").write_text(f"{variable[9:].lower()} = {IDLE[variable]}\n")
    message = program.bad(*command, environment={"KINTSUGI_CONFIG": "mine"})
    assert message.startswith(f"settings file: {variable[9:].lower()} = {IDLE[variable]} has no effect here")


@pytest.mark.parametrize("flags", [["--no-ceilings"], ["--baseline-size", "64"]])
def test_flags_without_an_effect_are_refused(program, flags):
    assert program.bad("bench", "fp16x3", *flags).startswith(f"{flags[0]}: has no effect: ")


# An SGEMM that is wrong in the last element of C, or does not write it.
FAKE_BLAS = """
void openblas_set_num_threads(int threads) { (void)threads; }
int openblas_get_num_threads(void) { return 1; }
#define GEMM(NAME, T)                                                                                       \\
  void NAME(const char* transa, const char* transb, const int* m, const int* n, const int* k, const T* alpha, \\
            const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) {    \\
    for (int i = 0; i < *m; ++i)                                                                            \\
      for (int j = 0; j < *n; ++j) {                                                                        \\
        double sum = 0;                                                                                     \\
        for (int l = 0; l < *k; ++l)                                                                        \\
          sum += (double)(*transa == 'N' ? a[i + l * *lda] : a[l + i * *lda]) *                             \\
                 (*transb == 'N' ? b[l + j * *ldb] : b[j + l * *ldb]);                                      \\
        T* element = &c[i + j * *ldc];                                                                        \\
        if (i + 1 < *m || j + 1 < *n) *element = (T)(*alpha * sum + (*beta != 0 ? *beta * *element : 0));       \\
        else LAST;                                                                                          \\
      }                                                                                                     \\
  }
GEMM(sgemm_, float)
GEMM(dgemm_, double)
void cgemm_(void) {}
void zgemm_(void) {}
"""


def with_fake_blas(program, last):
    (program.folder / "blas.c").write_text(FAKE_BLAS)
    compiler = os.environ.get("TESTED_CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", f"-DLAST={last}", "blas.c", "-o", "libfake.so"],
                   cwd=program.folder, check=True)
    return {"KINTSUGI_CPU_BLAS": str(program.folder / "libfake.so")}


@pytest.mark.parametrize("last,ratio", [("*element = sum + 1", r"[\d.e+]+"), ("(void)0", "inf")])
def test_a_wrong_result_is_not_timed(program, last, ratio):
    environment = with_fake_blas(program, last)
    result = program("bench", "int8x6", *TINY, "-o", "r.json", environment=environment)
    assert result.status == 1 and result.stdout == ""
    message = r"kintsugi: native: 8x12x16: the largest error of 96 checked elements is " + ratio + r" times what its contract "
    assert "element (7, 11) is " in result.stderr and result.stderr.endswith("; nothing was timed\n")
    assert re.match(message, result.stderr), result.stderr
    assert not (program.folder / "r.json").exists()


def test_a_wrong_product_of_a_batch_is_seen(program):
    environment = with_fake_blas(program, "{ static int calls; *element = ++calls == 3 ? sum + 1 : sum; }")
    result = program("bench", "int8x6", *TINY, "--batch", "3", environment=environment)
    assert result.status == 1
    assert result.stderr.startswith("kintsugi: native: 8x12x16, item 2 of a batch of 3: the largest error of 96 "), result.stderr


@pytest.mark.parametrize(
    "words,message",
    [
        ([], "CANDIDATE: is missing"),
        (["fp17"], 'CANDIDATE: "fp17" is neither a contract nor a scheme; did you mean fp16? '),
        (["1e-400"], "1e-400: "),
        (["native"], "CANDIDATE: native is a baseline: --baselines native"),
        (["fp16", "--type", "fp64"], "fp16: "),
        (["fp16", "--baselines", "native,fp16"], "CANDIDATE: fp16 is a baseline too; name it only once"),
        (["fp16", "--memory", "disk"], "--memory: "),
        (["fp16", "--baselines", "mpfr:52"], '--baselines: "mpfr:52" is neither native nor a scheme, and arithmetic'),
        (["fp16", "--baselines", "quad"], '--baselines: "quad" is neither native nor a scheme, and arithmetic'),
        (["fp16", "--shapes", "8x8"], '--shapes: "8x8" is not of the form MxNxK'),
        (["fp16", "--shapes", "big"], '--shapes: "big" is neither N nor MxNxK'),
        (["fp16", "--shapes", "0"], "--shapes: "),
        (["fp16", "--shapes", "9999999"], "--shapes: "),
        (["fp16", "--distribution", "gauss"], "--distribution: "),
        (["fp16", "--distribution", "offset:300"], "--distribution: "),
        (["fp16", "--engine", "abacus"], 'fp16: there is no engine "abacus"'),
        (["fp16", "--workspace-limit", "all"], "--workspace-limit: "),
        (["fp16", "--repeat", "0"], "--repeat: "),
        (["exact", "--type", "c64", "--baselines", "mpfr:113"], "--baselines: mpfr:113 is a loop over real elements"),
        (["fp16", "--batch", "0"], "--batch: "),
        (["fp16", "--batch", "1000000", "--shapes", "99999x1x999"], "--batch: 99999000000 x 999 elements of "),
        (["fp16", "--prepare", "c"], "--prepare: "),
        (["fp16", "--call", "plan_execute"], "--call: "),
        (["fp16", "--problems", "2"], "--problems: needs --call gemm and --memory device"),
        (["fp16", "--problems", "2", "--call", "gemm"], "--problems: needs --call gemm and --memory device"),
        (["fp16", *CALLS, "--problems", "2", "--prepare", "b"], "--problems: 2 problems have operands of different sizes, but --prepare b"),
        (["fp16", "--memory", "device", "--baselines", "mkl"], "--baselines: mkl multiplies in the host's memory"),
        (["fp16", *CALLS, "--baselines", "cublas", "--batch", "2"], "--baselines: cublas cannot multiply a batch, and --batch is 2"),
        (["fp16", "--memory", "device", "--baselines", "cublas"], "--baselines: cublas, a call of cuBLAS itself, needs"),
        (["policy:native"], 'CANDIDATE: "policy:native" is neither a contract nor a scheme'),
        (["fp16", "--threads", "0"], "--threads: "),
        (["fp16", "-o", "absent/r.json"], "absent/r.json: the folder absent does not exist"),
        (["fp16", "--distribution", "power-of-two:20"], "fp16: promises nothing for these operands"),
    ],
)
def test_bad_input(program, words, message):
    assert program.bad("bench", *words, *([] if "--shapes" in words else TINY[:2])).startswith(message)
    assert program.files() == ["home"]


def test_text(program):
    text = program.ok("bench", "exact", "--baselines", "native,float128", "--baseline-size", "4", *TINY).stdout
    lines = text.splitlines()
    assert lines[0] == "fp32, uniform, seed 1; threads: 1, rounds: 2" and "OpenBLAS" in lines[1]
    (head,) = [line for line in lines if line.startswith("m x n x k")]
    assert "x native" in head and "x float128" in head and "GFLOP/s" in head
    (exact,) = [line for line in lines if " exact (" in line]
    assert exact.startswith("8 x 12 x 16  exact (superaccumulator)") and "correctly rounded" in exact
    assert lines[-1].startswith("Reference loops computed only the first 4 rows and 4 columns of C")


def test_text_of_a_batch(program):
    lines = program.ok("bench", "fp16x3", "--batch", "3", "--prepare", "b", *TINY).stdout.splitlines()
    assert lines[1] == "batch: 3 products in one call, with contiguous operands"
    assert lines[2] == "prepared: b, split before the timed calls; native and reference loops split nothing"


def test_help(program):
    text = program.ok("bench", "--help").stdout.replace("\\\n", "")
    example, on_device, batch, calls, device_calls = [line for line in text.split("Example:\n")[1].splitlines() if line.startswith("  kintsugi ")]
    program.ok(*example.split()[1:], "--repeat", "1", "--baseline-size", "8")
    program.ok(*calls.split()[1:], "--repeat", "1")
    for line in (on_device, batch, device_calls):
        result = program(*line.split()[1:], "--shapes", "64", "--repeat", "1")
        assert result.status == 0 or result.stderr.startswith("kintsugi: --memory: device: "), "the words are understood"
    assert {row["problem"]["k"] for row in json.loads((program.folder / "bench.json").read_text())["rows"]} == {256, 512}
