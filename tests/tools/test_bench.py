"""kintsugi bench: checked results, honest numbers, what fails a check, bad input; its files on pages."""

import copy
import json
import os
import re
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from test_json import accept

TINY = ["--shapes", "8x12x16", "--repeat", "2", "--threads", "1"]
SVG = "{http://www.w3.org/2000/svg}"


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
        assert row["check"]["entries_checked"] == row["check"]["entries_total"] == 8 * 12
        loop = row["name"] in baselines[1:]
        assert (row["engine"] is None) == (row["workspace_bytes"] is None) == loop
        assert (row["products"] is None) == (row["kind"] == "baseline")
    assert "OpenBLAS" in rows[3]["engine_details"], "the native product's kernels"


@pytest.mark.parametrize("type_name,candidates", [("c32", "fp16x3,ozaki2,exact"), ("c64", "ozaki2:moduli=18,exact,fp64")])
def test_complex_entries_are_judged_by_parts(program, rows, tmp_path, type_name, candidates):
    found = rows(candidates, "--type", type_name, "--batch", "2", "-o", tmp_path / "bench.json", *TINY)
    program.ok("report", tmp_path / "bench.json", "-o", tmp_path / "bench.html")
    assert f"<td>{type_name}</td>" in (tmp_path / "bench.html").read_text()
    assert [row["name"] for row in found] == [*candidates.split(","), "native"]
    for row in found:
        assert row["problem"]["type"] == type_name
        assert row["check"]["entries_total"] == row["check"]["entries_checked"] == 2 * 2 * 8 * 12
        assert row["rate"] == pytest.approx(2 * 8 * 8 * 12 * 16 / row["time"]["minimum"])


def test_numbers_belong_together(rows):
    for row in rows("fp16x3", "int8x6", "--baselines", "native,float128", *TINY):
        time = row["time"]
        assert 0 < time["minimum"] <= time["median"] <= time["maximum"]
        assert time["processor"] > 0 and time["rounds"] == 2 and time["by"] == "clock"
        entries = sum(row["computed"][size] for size in "mn") * row["problem"]["k"]
        entries += row["computed"]["m"] * row["computed"]["n"]
        assert row["bandwidth"] == pytest.approx(4 * entries / time["minimum"])
        assert row["rate"] == pytest.approx(operations(row) / time["minimum"])
        assert set(row["ratios"]) == {"native", "float128"}
        if row["kind"] == "baseline":
            assert row["ratios"][row["name"]] == row["processor_ratios"][row["name"]] == 1


def operations(row):
    return 2 * row["computed"]["m"] * row["computed"]["n"] * row["problem"]["k"] * row["problem"]["batch"]


def test_ratios_are_those_of_the_rates(rows):
    measured = rows("fp16x3", "--baselines", "native,long-double", *TINY)
    rates = {row["name"]: row["rate"] for row in measured}
    for row in measured:
        for name, ratio in row["ratios"].items():
            assert ratio == pytest.approx(row["rate"] / rates[name])
        by_time = {other["name"]: operations(other) / other["time"]["processor"] for other in measured}
        for name, ratio in row["processor_ratios"].items():
            assert ratio == pytest.approx(by_time[row["name"]] / by_time[name])


def test_a_batch_counts_all_its_products(rows):
    measured = rows("fp16x3", "exact", "--batch", "6", "--baselines", "native,fp16,float128", "--baseline-size", "5", *TINY)
    for row in measured:
        size = row["computed"]["m"] * row["computed"]["n"]
        of_c = row["computed"]["m"] * row["computed"]["n"]
        entries = sum(row["computed"][size] for size in "mn") * row["problem"]["k"] + of_c
        assert row["problem"]["batch"] == 6
        assert row["rate"] == pytest.approx(operations(row) / row["time"]["minimum"])
        assert row["bandwidth"] == pytest.approx(4 * 6 * entries / row["time"]["minimum"])
        assert (row["check"]["entries_checked"], row["check"]["entries_total"]) == (4 * of_c, 6 * of_c)


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
    assert message.startswith("--batch: ozaki-fp16 is fitted to each of the 2 products, "), message


def test_a_scheme_is_a_baseline_too(rows):
    candidate, scheme, native = rows("fp16x3", "--baselines", "fp16,native", *TINY)
    assert [row["kind"] for row in (candidate, scheme, native)] == ["candidate", "baseline", "baseline"]
    assert scheme["scheme"] == "fp16" and scheme["format"] == candidate["format"] == "fp16"
    assert scheme["products"] == 1 and scheme["ratios"]["fp16"] == 1 and native["format"] is None


def test_the_host_has_no_ceilings(program):
    document = program.ok("bench", "fp16x3", *TINY, "--json").json()
    assert document["device"] is None and document["ceilings"] is None and document["settings"]["memory"] == "host"
    assert all(row["of_ceiling"] is None and row["power_watts"] is None for row in document["rows"])


def test_a_device_that_is_missing_is_said(program):
    (cuda,) = [engine for engine in program.ok("engines", "--json").json()["engines"] if engine["name"] == "cuda"]
    if cuda["available"]:
        pytest.skip("there is a device")
    message = program.bad("bench", "fp16x3", *TINY, "--memory", "device", "-o", "r.json")
    assert message == f"--memory: device: the engine cuda cannot be used: {cuda['reason']}" and cuda["reason"]
    assert program.files() == ["home"]


def test_plain_loops_compute_a_leading_block(rows):
    flags = ["--baselines", "native,float128", "--baseline-size", "5"]
    native, loop = rows("exact", *flags, *TINY)[1:]
    assert native["computed"] == {"m": 8, "n": 12} and loop["computed"] == {"m": 5, "n": 5}
    assert loop["check"]["entries_total"] == 25 and loop["check"]["correctly_rounded_fraction"] == 1


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
    assert free[0]["check"]["entries_checked"] < free[0]["check"]["entries_total"] == 90000
    limited = rows(*words, "--workspace-limit", str(free[0]["workspace_bytes"] - 256))
    assert limited[0]["workspace_bytes"] < free[0]["workspace_bytes"]
    error = "max_componentwise"
    assert limited[0]["check"][error] == free[0]["check"][error], "the bits are the same"
    assert rows(*words[:-1], "10")[0]["check"][error] != free[0]["check"][error]


def test_the_environment_does_not_choose(rows):
    environment = {"KINTSUGI_SCHEME": "fp16", "KINTSUGI_POLICY": "native", "KINTSUGI_THREADS": "1"}
    candidate, native = rows("fp16x3", *TINY[:-2], "--threads", "2", environment=environment)
    assert (candidate["scheme"], native["scheme"], candidate["threads"]) == ("fp16x3", "native", 2)


# SGEMM that is wrong in the last entry of C, or leaves it as it was.
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
        T* entry = &c[i + j * *ldc];                                                                        \\
        if (i + 1 < *m || j + 1 < *n) *entry = (T)(*alpha * sum + (*beta != 0 ? *beta * *entry : 0));       \\
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


@pytest.mark.parametrize("last,ratio", [("*entry = sum + 1", r"[\d.e+]+"), ("(void)0", "inf")])
def test_a_wrong_result_is_not_timed(program, last, ratio):
    environment = with_fake_blas(program, last)
    result = program("bench", "int8x6", *TINY, "-o", "r.json", environment=environment)
    assert result.status == 1 and result.stdout == ""
    message = r"kintsugi: native: 8x12x16: the largest error of 96 checked entries is " + ratio + r" times what its contract "
    assert "entry (7, 11) is " in result.stderr and result.stderr.endswith("; nothing was timed\n")
    assert re.match(message, result.stderr), result.stderr
    assert not (program.folder / "r.json").exists()


def test_a_wrong_product_of_a_batch_is_seen(program):
    environment = with_fake_blas(program, "{ static int calls; *entry = ++calls == 3 ? sum + 1 : sum; }")
    result = program("bench", "int8x6", *TINY, "--batch", "3", environment=environment)
    assert result.status == 1
    assert result.stderr.startswith("kintsugi: native: 8x12x16, entry 2 of a batch of 3: the largest error of 96 "), result.stderr


@pytest.mark.parametrize(
    "words,message",
    [
        ([], "CANDIDATE: is missing"),
        (["fp17"], 'fp17: '),
        (["1e-400"], "1e-400: "),
        (["native"], "CANDIDATE: native is a baseline: --baselines native"),
        (["fp16", "--type", "fp64"], "fp16: "),
        (["fp16", "--baselines", "native,fp16"], "CANDIDATE: fp16 is a baseline too: it takes part once"),
        (["fp16", "--memory", "disk"], "--memory: "),
        (["fp16", "--baselines", "mpfr:52"], '--baselines: "mpfr:52" is not native, and arithmetic'),
        (["fp16", "--baselines", "quad"], '--baselines: "quad" is not native, and arithmetic'),
        (["fp16", "--shapes", "8x8"], '--shapes: "8x8" is not of the form MxNxK'),
        (["fp16", "--shapes", "big"], '--shapes: "big" is neither N nor MxNxK'),
        (["fp16", "--shapes", "0"], "--shapes: "),
        (["fp16", "--shapes", "9999999"], "--shapes: "),
        (["fp16", "--distribution", "gauss"], "--distribution: "),
        (["fp16", "--distribution", "offset:300"], "--distribution: "),
        (["fp16", "--engine", "abacus"], 'fp16: there is no engine "abacus"'),
        (["fp16", "--workspace-limit", "all"], "--workspace-limit: "),
        (["fp16", "--repeat", "0"], "--repeat: "),
        (["exact", "--type", "c64", "--baselines", "mpfr:113"], "--baselines: mpfr:113 is a loop over real entries"),
        (["fp16", "--batch", "0"], "--batch: "),
        (["fp16", "--batch", "1000000", "--shapes", "99999x1x999"], "--batch: 99999000000 x 999 entries of "),
        (["fp16", "--prepare", "c"], "--prepare: "),
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
    assert exact.startswith("8 x 12 x 16  exact (ozaki2") and "correctly rounded" in exact
    assert lines[-1].startswith("Plain loops computed the first 4 rows and 4 columns of C alone")


def test_text_of_a_batch(program):
    lines = program.ok("bench", "fp16x3", "--batch", "3", "--prepare", "b", *TINY).stdout.splitlines()
    assert lines[1] == "batch: 3 products in one call, their operands behind each other"
    assert lines[2] == "prepared: b, split before and not timed; native and plain loops take it as it is"


def test_the_page_of_a_batch(program):
    flags = ["fp16x3", "--shapes", "4,8", "--repeat", "1", "--threads", "1"]
    program.ok("bench", *flags, "-o", "one.json")
    program.ok("bench", *flags, "--batch", "3", "--prepare", "b", "-o", "many.json")
    older = json.loads((program.folder / "one.json").read_text())
    for row in older["rows"]:
        del row["problem"]["batch"], row["prepared"]
    (program.folder / "one.json").write_text(json.dumps(older))
    program.ok("report", "one.json", "many.json", "-o", "report.html")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    labels = {"fp16x3 · cpu · threads: 1", "native · cpu · threads: 1", "native · cpu · threads: 1 · batch: 3",
              "fp16x3 · cpu · threads: 1 · batch: 3 · prepared: b"}
    for chart in root.iter(SVG + "svg"):
        assert series_of(chart) == labels
    (code,) = [node.text for node in root.iter() if node.tag.endswith("}code") and "--batch 3" in node.text]
    program.ok(*shlex.split(code)[1:])


def test_the_page_of_a_file(program):
    flags = ["--shapes", "4,8,4x4x8", "--repeat", "1", "--baselines", "native,long-double"]
    for threads in ("1", "2"):
        program.ok("bench", "fp16x3", "exact", *flags, "--threads", threads, "-o", f"r{threads}.json")
    document = json.loads((program.folder / "r1.json").read_text())
    accept(document, "bench")
    program.ok("report", "r1.json", "r2.json", "-o", "report.html", "--svg", "pictures")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    assert titles == ["uniform, m = 4, n = 4: rate against k", "uniform, k = 8: rate against m = n",
                      "uniform: rate against m = n = k", "All rates"]
    names = ["fp16x3 · cpu", "exact · cpu", "native · cpu", "long-double · plain loop"]
    labels = {f"{name} · threads: {threads}" for name in names for threads in (1, 2)}
    charts = list(root.iter(SVG + "svg"))
    assert len(charts) == 3 * 2, "rates, and ratios to native"
    for chart in charts:
        groups = [group for group in chart.iter(SVG + "g") if "series" in group.get("class").split()]
        assert {group.find(SVG + "title").text for group in groups} == labels
    (body,) = [node for node in root.iter() if node.tag.endswith("}tbody")]
    assert len(body) == 2 * len(document["rows"]) and "OpenBLAS" in "".join(body.itertext())
    assert len(list((program.folder / "pictures").iterdir())) == 6
    code = [node.text for node in root.iter() if node.tag.endswith("}code")]
    assert len(code) == 2
    program.ok(*shlex.split(code[0])[1:])
    again = json.loads((program.folder / "r1.json").read_text())
    assert again["settings"] == document["settings"], "the page's command is the file's run"


def test_errors_and_rates_on_one_page(program):
    program.ok("bench", "fp16x3", "--shapes", "4,8", "--repeat", "1", "-o", "r.json")
    program.ok("accuracy", "--schemes", "fp16x3", "--shapes", "4x4x4,8x8x8", "-o", "a.json")
    program.ok("report", "r.json", "a.json", "-o", "report.html")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    assert titles == ["uniform: rate against m = n = k", "uniform: error against m = n = k", "All rows", "All rates"]


DEVICE = {"name": "NVIDIA X", "compute_capability": "9.0", "driver": "13.0", "multiprocessors": 132,
          "l2_bytes": 60 << 20, "power_limit_watts": 700.0, "clock_limit_mhz": 1980.0, "memory_clock_limit_mhz": None}


def ceiling(rate):
    return {"rate": rate, "lowest": 0.9 * rate, "highest": rate, "way": "wgmma", "power_watts": 650.0, "clock_mhz": 1500.0}


CEILINGS = {"fp16": ceiling(8e14), "bf16": ceiling(8e14), "int8": ceiling(1.8e15), "copy": ceiling(4e12)}


def on_a_device(document):
    """What a device would have written: the rows of a host's file with a device's times, from memory-bound up."""
    document.update(device=dict(DEVICE), ceilings=copy.deepcopy(CEILINGS))
    document["settings"].update(memory="device", engine="cuda")
    for row in document["rows"]:
        m, n, k = (row["problem"][size] for size in "mnk")
        seconds = 2 * m * n * k / 2e14 + 1e-7
        row.update(engine="cuda", engine_details="NVIDIA X; libcublas.so.13", accumulator="cublas", processor_ratios={},
                   rate=2 * m * n * k / seconds, bandwidth=4 * (m * k + k * n + m * n) / seconds, power_watts=600.0)
        row["time"] = {"minimum": 0.9 * seconds, "median": seconds, "maximum": 1.2 * seconds, "processor": None,
                       "rounds": 5, "by": "graph"}
        if row["format"] is not None:
            row["of_ceiling"] = row["products"] * row["rate"] / CEILINGS[row["format"]]["rate"]
    return document


@pytest.fixture
def device_file(program):
    program.ok("bench", "fp16x3", "--shapes", "4,512", "--repeat", "1", "-o", "r.json")
    document = on_a_device(json.loads((program.folder / "r.json").read_text()))
    accept(document, "bench")
    (program.folder / "r.json").write_text(json.dumps(document))
    return document


def test_the_page_of_a_device(program, device_file):
    program.ok("report", "r.json", "-o", "report.html")
    root = ElementTree.fromstring((program.folder / "report.html").read_text())
    titles = [node.text for node in root.iter() if node.tag.endswith("}h2")]
    assert titles == ["uniform: rate against m = n = k", "uniform: roofline of NVIDIA X", "All rates"]
    charts = list(root.iter(SVG + "svg"))
    assert len(charts) == 4, "TFLOP/s, ratio to native, part of the ceiling, roofline"
    labels = {"fp16x3 · cuda · NVIDIA X", "native · cuda · NVIDIA X"}
    for chart, expected in zip(charts, (labels, labels, labels - {"native · cuda · NVIDIA X"}, labels)):
        assert expected <= series_of(chart)
    assert series_of(charts[3]) - labels == {"fp16 units, 800 T/s", "memory, 4 TB/s"}
    assert "TFLOP/s" in "".join(charts[0].itertext())
    text = "".join(root.itertext())
    assert "on NVIDIA X: at most 800 T/s fp16, 800 T/s bf16, 1800 T/s int8, 4 T/s copy" in text


def series_of(chart):
    groups = [group for group in chart.iter(SVG + "g") if "series" in group.get("class").split()]
    return {group.find(SVG + "title").text for group in groups}


def test_the_roofline_has_its_corner_where_the_ceilings_meet(program, device_file):
    program.ok("report", "r.json", "-o", "report.html", "--svg", "pictures")
    (name,) = [name for name in os.listdir(program.folder / "pictures") if "roofline" in name]
    root = ElementTree.parse(program.folder / "pictures" / name).getroot()
    lines = {}
    for group in root.iter(SVG + "g"):
        if "series" in group.get("class").split():
            path = group.find(SVG + "path").get("d")
            lines[group.find(SVG + "title").text] = [tuple(map(float, place.split())) for place in re.split("[ML]", path)[1:]]
    memory, units = lines["memory, 4 TB/s"], lines["fp16 units, 800 T/s"]
    assert memory[-1] == units[0] and units[0][1] == units[1][1], "one corner, then level"
    assert memory[0][0] == min(x for points in lines.values() for x, _ in points), "from the leftmost point on"
    assert memory[0][1] > memory[-1][1], "upwards"
    for x, y in lines["fp16x3 · cuda · NVIDIA X"]:
        assert y >= units[0][1], "below what the units do at most"


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda document: document.update(device=None), 'row 1: time/by is "graph", and device is null'),
        (lambda document: document["device"].pop("name"), "device is "),
        (lambda document: document["ceilings"].pop("copy"), "ceilings is "),
        (lambda document: document["ceilings"]["fp16"].update(rate=0), "ceilings is "),
        (lambda document: document["rows"][1].pop("bandwidth"), "row 2: bandwidth is null; expected: a positive number"),
        (lambda document: document["rows"][0].update(of_ceiling=-1), "row 1: of_ceiling is -1; "),
        (lambda document: document["rows"][0]["time"].update(by="ear"), 'row 1: time/by is "ear"; '),
    ],
)
def test_nonsense_of_a_device_is_refused(program, device_file, change, message):
    change(device_file)
    (program.folder / "f.json").write_text(json.dumps(device_file))
    assert program.bad("report", "f.json", "-o", "report.html").startswith("f.json: " + message)


@pytest.mark.parametrize(
    "path,value,message",
    [
        ("name", 3, "row 2: name is 3; expected: a text"),
        ("rate", 0, "row 2: rate is 0; expected: a positive number"),
        ("ratios", {"native": "much"}, "row 2: ratios is "),
        ("threads", 0, "row 2: threads is 0; "),
        ("prepared", "c", 'row 2: prepared is "c"; expected: a, b or null'),
        ("time", {}, "row 2: time/minimum is null; "),
        ("workspace_bytes", -1, "row 2: workspace_bytes is -1; "),
    ],
)
def test_nonsense_is_refused_with_its_place(program, path, value, message):
    program.ok("bench", "fp16x3", *TINY, "-o", "r.json")
    document = json.loads((program.folder / "r.json").read_text())
    document["rows"][1][path] = value
    (program.folder / "f.json").write_text(json.dumps(document))
    assert program.bad("report", "f.json", "-o", "report.html").startswith("f.json: " + message)


def test_help(program):
    text = program.ok("bench", "--help").stdout
    example, on_device, batch = [line for line in text.split("Example:\n")[1].splitlines() if line.startswith("  kintsugi ")]
    program.ok(*example.split()[1:], "--repeat", "1", "--baseline-size", "8")
    for line in (on_device, batch):
        result = program(*line.split()[1:], "--shapes", "64", "--repeat", "1")
        assert result.status == 0 or result.stderr.startswith("kintsugi: --memory: device: "), "the words are understood"
    assert {row["problem"]["k"] for row in json.loads((program.folder / "bench.json").read_text())["rows"]} == {256, 512}
