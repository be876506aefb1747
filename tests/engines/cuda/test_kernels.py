"""Kernels as they were compiled: no spills and no stack in products, resources as docs/results/kernels.md has them, and the
budgets of the build. Needs a toolkit and no GPU."""

import importlib.machinery
import importlib.util
import os
import pathlib
import re
import resource
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
BUILD = pathlib.Path(os.environ["TESTED_BUILD"])
MAX_SECONDS = 60  # to compile one file
MAX_BUILD_SECONDS = 360  # to compile all files, on two cores
# Seconds on a machine that compiles yardstick.cu in that much processor time; a slower machine is allowed
# proportionally more. A file for which an EPYC with AVX-512 takes 45 s takes an older one, which takes 3.7 s
# for the yardstick, 95 s.
YARDSTICK_SECONDS = 1.8
MAX_LIBRARY_BYTES = 40 << 20
MAX_PRODUCT_KERNELS = 84


def load_script():
    loader = importlib.machinery.SourceFileLoader("kernel_table", str(SOURCE / "scripts" / "kernel_table"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("kernel_table", loader))
    loader.exec_module(module)
    return module


script = load_script()
LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'multiply' for 'sm_90a'
ptxas info    : Function properties for multiply
    64 bytes stack frame, 60 bytes spill stores, 56 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 72 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compiling entry function 'split' for 'sm_80'
ptxas info    : Function properties for split
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
"""


def text_with_includes(file):
    """Text of a source file and of all files of the engine that it includes, without the functions that wait for a kernel and
    without macros that the source file does not use."""
    own_text, files, texts = file.read_text(), [file], {}
    while files:
        file = files.pop()
        if file in texts or file.name == "griddepcontrol.cuh":
            continue
        waiting_functions = r"(?m)^__device__[^;{}]* (begin_split|begin_cluster|begin_recombination)\(.*?^}"
        texts[file] = re.sub(waiting_functions, "", file.read_text(), flags=re.S)
        files += [SOURCE / "src" / name for name in re.findall(r'#include "(engines/cuda/[^"]+)"', texts[file])]
    macro = re.compile(r"(?m)^#define (\w+)\((?:.*\\\n)+.*\n")
    return macro.sub(lambda each: each[0] if each[1] in own_text else "", "".join(texts.values()))


def test_kernels_launched_early_wait_for_earlier_ones():
    """Exactly the kernels that may start before earlier ones end wait for them with griddepcontrol."""
    folder = SOURCE / "src" / "engines" / "cuda"
    host_code = "".join(file.read_text() for file in folder.rglob("*.cpp"))
    early = set(re.findall(r'\{[\s\\]*"(\w+)",[^{}]*waits_for_grid_dependency[\s\\]*\}', host_code))
    waits = re.compile(r"  begin_dependent_kernel\(\);|grid_dependency_wait\(\);|if \(!begin_split\(tasks\)\) return;|"
                       r"if \(!begin_recombination\(tile\.condition\)\) return;|  begin_cluster\(shared\);")
    waiting = {file.stem for file in folder.rglob("*.cu") if waits.search(text_with_includes(file))}
    assert len(early) >= 8 and early == waiting


def compiled():
    table = script.compiled(BUILD)
    if not table:
        pytest.skip(f"{BUILD} has no device code of architecture {script.ARCHITECTURE}")
    return table


def products(table):
    """Kernels that multiply slices; what one of them needs is prepared by others."""
    of_files = ("gemm/", "ozaki1/slice_products")
    return {key: numbers for key, numbers in table.items() if key[0].startswith(of_files) and not key[1].startswith("prepare_")}


def test_a_log_is_read():
    kernels = script.read_log(LOG)
    assert kernels["multiply", "90a"] == dict(zip(script.NUMBERS, (168, 1024, 72, 116)))
    assert kernels["split", "80"] == dict(zip(script.NUMBERS, (32, 0, 0, 0)))


def test_a_table_is_read_as_it_was_written():
    table = {("gemm/a.cu", kernel): numbers for (kernel, _), numbers in script.read_log(LOG).items()}
    assert script.read_table(script.text_of(table, "13.0.88")) == (table, "13.0.88")
    changed = {**table, ("gemm/a.cu", "split"): dict.fromkeys(script.NUMBERS, 1)}
    assert len(script.differences(table, changed)) == 1
    assert len(script.differences(table, {})) == 2


def test_every_device_file_was_compiled():
    compiled()
    assert [file for file, _ in script.logs(BUILD)] == script.device_files()


def test_no_product_spills_or_has_a_stack():
    found = products(compiled()).items()
    assert {key: numbers for key, numbers in found if numbers["spilled bytes"] or numbers["stack bytes"]} == {}


def test_resources_are_those_of_the_table():
    table = compiled()
    expected, version = script.read_table(script.TABLE.read_text())
    if version != script.toolkit(BUILD):
        pytest.skip(f"the table is of CUDA {version}, the build of {script.toolkit(BUILD)}")
    assert script.differences(expected, table) == [], "scripts/kernel_table --write build renews the table"


def test_kernels_named_by_the_host_are_compiled():
    """Every kernel that the host's code names exists, in the image that it names, and every kernel is named; otherwise only
    the driver would notice."""
    present = {(pathlib.Path(file).stem, kernel) for file, kernel in compiled()}
    images = {image for image, _ in present}
    kernels = {kernel for _, kernel in present}
    pairs, literals, named = set(), set(), set()
    pattern = re.compile(r'"((?:split|multiply|select|recombine|check|recompute)_(?:[cf](?:32|64)|int8|int52)_\w+)"')
    for file in (SOURCE / "src" / "engines" / "cuda").rglob("*.[ch]pp"):
        text = file.read_text()
        pairs |= {pair for pair in re.findall(r'"(\w+)",\s*"(\w+)"', text) if pair[0] in images}
        literals |= set(re.findall(r'"(\w+)"', text))
        if "KernelName" in text:  # among them names that macros and arrays put beside an image
            named |= set(pattern.findall(text))
    assert len(pairs) > 60 and pairs - present == set()
    assert len(named) > 100 and named - kernels == set()
    assert kernels - literals == set()


# ---------------------------------------------------------------- budgets

def test_number_of_product_kernels():
    assert len(products(compiled())) <= MAX_PRODUCT_KERNELS


def slowdown(folder):
    """Returns how much slower this machine's compiler is than that of the budgets, at least 1."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    nvcc = re.search(r"^KINTSUGI_NVCC:\w+=(.*)$", cache, re.MULTILINE)[1]
    words = [nvcc, "-fatbin", "-c", "-std=c++20", "-O3", "-fmad=false"]
    for architecture in (80, 90):
        words += ["-gencode", f"arch=compute_{architecture},code=sm_{architecture}"]
    source = SOURCE / "tests" / "engines" / "cuda" / "yardstick.cu"
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*words, "-o", folder / "yardstick.fatbin", source], check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return max(1, (end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime) / YARDSTICK_SECONDS)


def test_time_of_the_build(tmp_path):
    """Files that came from a compile cache have no time; only a build without a cache measures all."""
    compiled()
    times = {file: time for file, time in script.seconds(BUILD).items() if time is not None}
    slower = slowdown(tmp_path) if times else 1
    assert {file: time for file, time in times.items() if time > MAX_SECONDS * slower} == {}
    assert sum(times.values()) / 2 <= MAX_BUILD_SECONDS * slower


def test_size_of_the_library(tmp_path):
    compiled()
    stripped = tmp_path / "libkintsugi.so"
    subprocess.run(["strip", "-o", stripped, os.environ["TESTED_LIBRARY"]], check=True)
    assert stripped.stat().st_size <= MAX_LIBRARY_BYTES
