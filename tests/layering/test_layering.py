"""The layers: who may include whom (docs/ARCHITECTURE.md), and the same in CMake."""

import os
import pathlib
import re

import pytest

SOURCE = pathlib.Path(os.environ.get("TESTED_SOURCE", pathlib.Path(__file__).parents[2]))

# The modules that each module may include, besides itself.
ALLOWED = {
    "src/base": [],
    "src/formats": ["src/base"],
    "src/arith": ["src/formats", "src/base"],
    "src/split": ["src/arith", "src/formats", "src/base"],
    "src/recombine": ["src/arith", "src/formats", "src/base"],
    "src/schedule": ["src/formats", "src/base"],
    # The open files of src/engines: interfaces that all engines share, and the registry.
    "src/engines": ["src/schedule", "src/arith", "src/split", "src/recombine", "src/formats", "src/base"],
    "src/engines/*": ["src/engines", "src/schedule", "src/arith", "src/split", "src/recombine", "src/formats",
                      "src/base"],
    "src/schemes": ["src/schedule", "src/recombine", "src/split", "src/arith", "src/formats", "src/base"],
    # The engine cuda has no interface: planner and execution call its functions.
    "src/planner": ["src/engines", "src/engines/cuda", "src/schemes", "src/schedule", "src/recombine", "src/split",
                    "src/arith", "src/formats", "src/base"],
    "src/execute": ["src/planner", "src/engines", "src/engines/cuda", "src/schemes", "src/schedule", "src/recombine",
                    "src/split", "src/arith", "src/formats", "src/base"],
    # Measures kernels of the engine cuda one by one, and whole calls of cuda and cpu.
    "src/calibrate": ["src/execute", "src/planner", "src/engines/cpu", "src/engines/cuda", "src/engines", "src/schemes",
                      "src/schedule", "src/split", "src/recombine", "src/formats", "src/base"],
    "src/front": ["src/calibrate", "src/execute", "src/planner", "src/engines", "src/schemes", "src/formats", "src/base",
                  "include"],
    "include": [],
    # The compiler pass, and the table of call sites that it writes.
    "tuner": [],
    "drop_in": ["include", "tuner"],
    # Measures for the programs and the tests.
    "tools/measure": ["src/arith", "src/formats", "src/base"],
    "tools": ["include", "tools/measure", "tuner"],
    "lab": ["include", "tools", "tools/measure", "src/arith", "src/formats", "src/base"],
    "python": ["include"],
    "examples": ["include"],
    "tests": ["*"],
}

C_HEADERS = "assert ctype errno fenv float inttypes limits locale math setjmp signal stdalign stdarg stdbool stddef " \
            "stdint stdio stdlib string time".split()
POSIX = ["dlfcn.h", "fcntl.h", "pthread.h", "sched.h", "spawn.h", "sys/*", "unistd.h"]
INTRINSICS = ["immintrin.h", "xmmintrin.h", "pmmintrin.h", "emmintrin.h", "cpuid.h"]

# Headers beyond the C and C++ standard libraries that a module may include.
EXTERNAL = {
    "src/base": ["link.h", "ucontext.h"] + INTRINSICS + POSIX,  # the loaded libraries; the floating-point environment; the settings file
    "src/split": ["omp.h"],
    "src/recombine": ["omp.h"],
    "src/engines": ["nlohmann/*"],  # profiles
    "src/engines/*": ["omp.h"] + INTRINSICS + POSIX,
    "src/engines/cpu": ["nlohmann/*", "omp.h"] + INTRINSICS + POSIX,
    "src/engines/cuda": ["nlohmann/*", "omp.h"] + INTRINSICS + POSIX,
    "src/planner": ["omp.h"],
    "src/execute": ["omp.h"],
    "src/calibrate": [],
    "src/front": ["nlohmann/*"],
    "tuner": ["elf.h", "llvm/*"],
    "drop_in": ["nlohmann/*", "link.h", "unwind.h"] + POSIX,
    "tools/measure": ["omp.h", "fmt/*"] + POSIX,
    "lab": ["nlohmann/*", "fmt/*", "CLI/*", "omp.h", "immintrin.h"] + POSIX,
    "tools": ["nlohmann/*", "fmt/*", "CLI/*", "elf.h", "omp.h"] + POSIX,
    "python": ["Python.h", "dlfcn.h"],
    "examples": ["dlfcn.h"],
    "tests": ["*"],
}
# The only files of the library that know {fmt}; everything else says base/text/format_text.hpp.
EXTERNAL_OF_FILE = {"src/base/text/format_text.hpp": ["fmt/*"], "src/base/text/format_text.cpp": ["fmt/*"],
                    "python/jax/matmul.cpp": ["xla/*"]}
# CUDA's own, which its compiler brings: for device code alone. No file for the host sees them.
OF_DEVICE_CODE = {"src/engines/cuda": ["cooperative_groups.h", "cuda_bf16.h", "cuda_fp16.h"],
                  "tools/measure": ["cuda_bf16.h", "cuda_fp16.h"],
                  "lab": ["cuda_fp16.h", "cuda_pipeline.h", "mma.h"]}
# Made by the build: the commit of the sources.
GENERATED = {"tools": ["kintsugi_commit.hpp"]}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
ENDINGS = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".def", ".inc"}


def matches(name, patterns):
    return any(pattern == "*" or name == pattern or (pattern.endswith("/*") and name.startswith(pattern[:-1]))
               for pattern in patterns)


def module_of(path):
    """The module of a file given relative to the root: "src/planner", "src/engines/cpu", "tools", ..."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[:2] in (("tools", "measure"), ("lab", "tests")):
        return {"tools": "tools/measure", "lab": "tests"}[parts[0]]
    if parts[0] != "src":
        return parts[0]
    if parts[1] == "engines" and len(parts) > 3:
        return "/".join(parts[:3])
    return "/".join(parts[:2])


def row_of(module, table):
    """The element of a module in a table: its own, else that of its siblings."""
    if module in table:
        return table[module]
    return table.get(module.rpartition("/")[0] + "/*")


def resolve(root, file, name):
    """The file of the repository that an include means, relative to the root, or None."""
    for folder in (file.parent, root / "src", root / "include", root, root / file.relative_to(root).parts[0]):
        candidate = folder / name
        if candidate.is_file() and candidate.resolve().is_relative_to(root.resolve()):
            return candidate.resolve().relative_to(root.resolve()).as_posix()
    return None


def is_standard(name):
    if name.endswith(".h"):
        return name[:-2] in C_HEADERS
    return "/" not in name and "." not in name


def judge(root, file, quote, name):
    """Returns what is wrong with one include, or None."""
    here = file.relative_to(root).as_posix()
    module = module_of(here)
    allowed = row_of(module, ALLOWED)
    if allowed is None:
        return f"{here}: {module} is no module that the table knows"
    target = resolve(root, file, name)
    if target is not None:
        there = module_of(target)
        if there == module or "*" in allowed or matches(there, allowed):
            return None
        return f"{here}: {module} may not include {there} ({name})"
    if name in GENERATED.get(module, []):
        return None
    if quote == '"':
        return f"{here}: no file {name}"
    external = (row_of(module, EXTERNAL) or []) + EXTERNAL_OF_FILE.get(here, [])
    if file.suffix in (".cu", ".cuh"):
        external = external + OF_DEVICE_CODE.get(module, [])
    if is_standard(name) or matches(name, external):
        return None
    return f"{here}: {module} may not include <{name}>"


def violations(root, skip=()):
    found = []
    for top in ("src", "include", "tuner", "drop_in", "tools", "lab", "python", "examples", "tests"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in ENDINGS or file in skip:
                continue
            for quote, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
                wrong = judge(root, file, quote, name)
                if wrong:
                    found.append(wrong)
    return found


def test_every_include_keeps_to_the_table():
    assert violations(SOURCE) == []


def test_something_was_read():
    files = [file for file in (SOURCE / "src").rglob("*") if file.suffix in ENDINGS]
    assert len(files) > 20


@pytest.mark.parametrize("path, text, expected", [
    ("src/base/bad.hpp", '#include "planner/plan.hpp"\n', "src/base may not include src/planner"),
    ("src/base/bad.hpp", "#include <fmt/format.h>\n", "src/base may not include <fmt/format.h>"),
    ("src/split/bad.cpp", '#include "schedule/schedule.hpp"\n', "src/split may not include src/schedule"),
    ("src/engines/cpu/bad.cpp", '#include "engines/reference/reference.hpp"\n',
     "src/engines/cpu may not include src/engines/reference"),
    ("src/planner/bad.cpp", '#include "execute/execute.hpp"\n', "src/planner may not include src/execute"),
    ("src/planner/bad.cpp", '#include "engines/reference/reference.hpp"\n',
     "src/planner may not include src/engines/reference"),
    ("src/schemes/bad.cpp", '#include "planner/plan.hpp"\n', "src/schemes may not include src/planner"),
    ("src/front/bad.cpp", '#include "schedule/schedule.hpp"\n', "src/front may not include src/schedule"),
    ("tools/bad.cpp", '  #  include "../src/base/status.hpp"\n', "tools may not include src/base"),
    ("tools/bad.cpp", '#include "lab/lab.hpp"\n', "tools may not include lab"),
    ("tools/measure/bad.cpp", "#include <mpfr.h>\n", "tools/measure may not include <mpfr.h>"),
    ("lab/bad.cpp", '#include "planner/plan.hpp"\n', "lab may not include src/planner"),
    ("drop_in/blas/bad.cpp", '#include "base/status.hpp"\n', "drop_in may not include src/base"),
    ("drop_in/blas/bad.cpp", "#include <cblas.h>\n", "drop_in may not include <cblas.h>"),
    ("python/core/bad.cpp", '#include "../src/base/status.hpp"\n', "python may not include src/base"),
    ("examples/bad.c", '#include "lab/lab.hpp"\n', "examples may not include lab"),
    ("include/kintsugi/bad.hpp", '#include "base/status.hpp"\n', "include may not include src/base"),
    ("src/base/bad.hpp", '#include "nowhere.hpp"\n', "no file nowhere.hpp"),
    ("src/attic/bad.hpp", "#include <vector>\n", "no module"),
    ("src/engines/cuda/bad.hpp", "#include <cuda_fp16.h>\n", "src/engines/cuda may not include <cuda_fp16.h>"),
    ("src/engines/cuda/bad.cu", "#include <cuda_runtime.h>\n", "src/engines/cuda may not include <cuda_runtime.h>"),
    ("src/planner/bad.cu", "#include <cuda_fp16.h>\n", "src/planner may not include <cuda_fp16.h>"),
])
def test_a_bad_include_is_caught(tmp_path, path, text, expected):
    for good in ("src/execute/execute.hpp", "src/planner/plan.hpp", "src/schedule/schedule.hpp", "src/engines/engine.hpp", "src/base/status.hpp",
                 "src/engines/reference/reference.hpp", "lab/lab.hpp"):
        (tmp_path / good).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / good).write_text("#pragma once\n")
    assert violations(tmp_path) == []
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    found = violations(tmp_path)
    assert len(found) == 1 and expected in found[0]


# ---------------------------------------------------------------- the same in CMake

def cmake_modules():
    """{module: modules it links directly}, as tests/CMakeLists.txt wrote it from the configured targets."""
    if "TESTED_BUILD" not in os.environ:
        pytest.skip("needs a build folder: run it through ctest")
    modules = {}
    for line in (pathlib.Path(os.environ["TESTED_BUILD"]) / "tests/modules.txt").read_text().splitlines():
        target, _, linked = line.partition(":")
        modules[folder_of(target)] = sorted({folder_of(name) for name in re.findall(r"kintsugi_\w+", linked)} - {None})
    return modules


def folder_of(target):
    """src/engines/cpu of kintsugi_engines_cpu, src/planner of kintsugi_planner; None of what is no module."""
    name = target.removeprefix("kintsugi_")
    for folder in ("src/" + name, "src/" + name.replace("_", "/", 1)):
        if (SOURCE / folder).is_dir():
            return folder
    return None


def closure(modules, module):
    reached, waiting = set(), list(modules[module])
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += modules[other]
    return reached


def test_cmake_links_only_what_the_table_allows():
    for module, linked in cmake_modules().items():
        allowed = row_of(module, ALLOWED) + (["src/engines/*"] if module == "src/engines" else [])
        for other in linked:
            assert matches(other, allowed), f"{module} may not link {other}"


def test_every_room_has_a_target():
    modules = cmake_modules()
    for file in (SOURCE / "src").rglob("*.[ch]pp"):
        assert module_of(file.relative_to(SOURCE).as_posix()) in modules, file


def test_every_include_is_linked():
    """A module sees only what its CMake row, followed to its end, gives it."""
    modules = cmake_modules()
    missing = []
    for module in modules:
        reached = closure(modules, module) | {module}
        for file in (SOURCE / module).rglob("*"):
            here = file.relative_to(SOURCE).as_posix()
            if file.suffix not in ENDINGS or module_of(here) != module:
                continue
            for _, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
                target = resolve(SOURCE, file, name)
                if target is None or not target.startswith("src/"):
                    continue
                # An engine is linked by src/engines, and reads engine.hpp and its like, headers, from there.
                if module_of(target) not in reached and not (
                        module_of(target) == "src/engines" and target.endswith(".hpp")):
                    missing.append(f"{here}: {name}")
    assert missing == []


# Names of families of GPUs, of architectures and of cards.
GPU_NAMES = re.compile(
    r"(?<![a-z0-9])(?:volta|turing|ampere|hopper|blackwell|sm_?\d{2,3}[af]?|[vahb][1-8]00|gh200)(?![a-z0-9])", re.IGNORECASE)
# Where they belong: the tables and kernels of each family, the lists of families and of recorded matrix units, the
# models of these units, and the setting that names a family.
NAMES_GPUS = re.compile(
    r"src/engines/(?:cuda/(?:arch|gemm)/\w+/|cuda/arch/families\.def$|reference/)|src/base/settings\.def$|src/schedule/tensor_cores\.def$")


def test_only_families_name_gpus():
    """So that a family of GPUs is its tables and one folder of kernels (docs/ADDING-A-GPU.md)."""
    files = [file for file in sorted((SOURCE / "src").rglob("*")) if file.suffix in {*ENDINGS, ".txt"}]
    named = {file.relative_to(SOURCE).as_posix(): GPU_NAMES.findall(file.read_text()) for file in files}
    assert named["src/engines/cuda/arch/hopper/family.cpp"] and named["src/engines/cuda/arch/families.def"]
    assert {file: names for file, names in named.items() if names and not NAMES_GPUS.match(file)} == {}
