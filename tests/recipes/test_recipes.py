"""Follows the four recipes of docs/ to the letter on a copy of the sources, builds it, and multiplies with the result;
and checks other pages against the code: the examples of README.md, the table of docs/ARCHITECTURE.md.

A fenced block of a recipe whose first line names a file is applied:

    ```cpp file=PATH                 the whole new file
    ```cpp file=PATH after='LINE'    inserted after the one line of the file that says this
    ```cpp file=PATH before='LINE'   before it
    ```cpp file=PATH replace='LINE'  in its place

Every other block (no file=) is for people and left alone.
"""

import json
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import numpy
import pytest

SOURCE = pathlib.Path(os.environ.get("TESTED_SOURCE", pathlib.Path(__file__).parents[2]))
RECIPES = {"format": "docs/ADDING-A-FORMAT.md", "scheme": "docs/ADDING-A-SCHEME.md", "engine": "docs/ADDING-AN-ENGINE.md",
           "gpu": "docs/ADDING-A-GPU.md"}
NOT_COPIED = shutil.ignore_patterns("build*", ".git", "data", "__pycache__", "*.pyc")
PLACES = ("after", "before", "replace")
BLOCK = re.compile(r"^```(\w+) +([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(attributes, text) of every block of a page that names a file."""
    for _, info, text in BLOCK.findall(page):
        attributes = dict(word.split("=", 1) for word in shlex.split(info))
        assert "file" in attributes and set(attributes) <= {"file", *PLACES}, info
        yield attributes, text


def apply_block(root, attributes, text):
    file = root / attributes["file"]
    place = next((attributes[way] for way in PLACES if way in attributes), None)
    if place is None:
        assert not file.exists(), f"{file} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return
    lines = file.read_text().splitlines(keepends=True)
    found = [number for number, line in enumerate(lines) if line.strip() == place]
    assert len(found) == 1, f"{attributes['file']} has {len(found)} lines that say {place}"
    first = found[0] + ("after" in attributes)
    last = found[0] + ("before" not in attributes)
    lines[first:last] = [text]
    file.write_text("".join(lines))


def contents(root):
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def follow(recipe, root):
    """Applies a recipe; returns the files that it touched."""
    before = contents(root)
    applied = list(blocks((SOURCE / RECIPES[recipe]).read_text()))
    assert applied, f"{RECIPES[recipe]} has no block to apply"
    for attributes, text in applied:
        apply_block(root, attributes, text)
    after = contents(root)
    return sorted(name for name in after if before.get(name) != after[name])


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("recipes") / "source"
    for name in ("CMakeLists.txt", "cmake", "include", "src", "lab", "tools"):
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, root / name, ignore=NOT_COPIED)
        else:
            root.mkdir(exist_ok=True)
            shutil.copy(SOURCE / name, root / name)
    return root


@pytest.fixture(scope="module")
def touched(tree):
    return {recipe: follow(recipe, tree) for recipe in RECIPES}


def test_a_scheme_is_two_files_of_one_folder(touched):
    assert touched["scheme"] == ["src/schemes/fp16x4.hpp", "src/schemes/registry.cpp"]


def test_a_format_is_a_header_a_name_and_a_line(touched):
    library = [name for name in touched["format"] if not name.startswith("src/engines/")]
    assert library == ["src/formats/format_id.hpp", "src/formats/formats.hpp"]
    # The engine whose models are listed one by one.
    assert set(touched["format"]) - set(library) == {"src/engines/reference/reference.cpp"}


def test_an_engine_is_a_folder_and_a_line(touched):
    assert touched["engine"] == ["src/engines/engines.def", "src/engines/plain/plain.cpp"]


def test_a_gpu_family_is_a_folder_of_tables_one_of_kernels_and_a_line(touched):
    assert touched["gpu"] == ["src/engines/cuda/arch/blackwell/family.cpp", "src/engines/cuda/arch/blackwell/tiles.hpp",
                              "src/engines/cuda/arch/families.def", "src/engines/cuda/gemm/blackwell/dmma_sm100a.cu"]


def clean_environment(folder):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KINTSUGI_", "XDG_"))}
    return {**kept, "HOME": str(folder)}


def run(*command, **options):
    completed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert completed.returncode == 0, f"{command}:\n{completed.stdout[-6000:]}"
    return completed.stdout


class Package:
    """The Python package around the library of the changed sources, in a process of its own."""

    def __init__(self, library, folder):
        self.folder = folder
        self.environment = {**clean_environment(folder), "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        shutil.copytree(SOURCE / "python/kintsugi", folder / "kintsugi", ignore=NOT_COPIED)
        shutil.copy(library, folder / "kintsugi/libkintsugi.so.0")
        shutil.copy(os.environ["TESTED_PYTHON_CORE"], folder / "kintsugi")

    def __call__(self, expression):
        """The value of an expression of `kintsugi`, as JSON."""
        return json.loads(run(sys.executable, "-c", f"import json, kintsugi\nprint(json.dumps({expression}))",
                              cwd=self.folder, env=self.environment, timeout=120))

    def matmul(self, a, b, scheme, engine):
        numpy.savez(self.folder / "operands.npz", a=a, b=b)
        run(sys.executable, "-c", "import kintsugi, numpy\nx = numpy.load('operands.npz')\n"
            f"numpy.save('c.npy', kintsugi.matmul(x['a'], x['b'], scheme={scheme!r}, engine={engine!r}))",
            cwd=self.folder, env=self.environment, timeout=120)
        return numpy.load(self.folder / "c.npy")


@pytest.fixture(scope="module")
def package(tree, touched):
    if "TESTED_PYTHON_CORE" not in os.environ:
        pytest.skip("the build has no Python package")
    build = tree.parent / "build"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    compiler = [f"-DCMAKE_CXX_COMPILER={os.environ['TESTED_CXX']}"] if "TESTED_CXX" in os.environ else []
    # The library alone: debug information, optimisation, the program and device code cost more time than they save here.
    run("cmake", "-S", str(tree), "-B", str(build), *generator, *compiler, "-DKINTSUGI_TESTS=OFF", "-DKINTSUGI_TOOLS=OFF",
        "-DKINTSUGI_DROP_IN=OFF", "-DKINTSUGI_PYTHON_CORE=OFF", "-DKINTSUGI_PRECOMPILED_HEADERS=ON", "-DKINTSUGI_UNITY_BUILD=ON",
        "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0", "-DKINTSUGI_DEVICE_CODE=off")
    run("cmake", "--build", str(build), "-j", str(min(os.cpu_count() or 1, 2)), "--target", "kintsugi")
    return Package(build / "libkintsugi.so", tree.parent)


def test_new_files_include_what_they_use(tree, touched):
    """Precompiled headers, and the files of the folder that are compiled with it, would hide a missing #include."""
    added = [name for names in touched.values() for name in names if name.endswith(".cpp") and not (SOURCE / name).exists()]
    assert added == ["src/engines/plain/plain.cpp", "src/engines/cuda/arch/blackwell/family.cpp"]
    for name in added:
        run(os.environ.get("TESTED_CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{tree}/src", "-DFMT_HEADER_ONLY",
            str(tree / name))


def test_the_new_scheme_is_listed(package):
    names = package("[scheme['name'] for scheme in kintsugi.schemes()]")
    assert "fp16x4" in names and "fp16x3" in names


def test_the_new_engine_is_listed_and_multiplies_the_new_format(package):
    engines = {engine["name"]: engine for engine in package("kintsugi.engines()")}
    assert engines["plain"]["available"] is True
    assert list(engines) == ["cpu", "reference", "plain", "cuda"]
    for engine in ("cpu", "reference", "plain"):
        assert "fp32" in engines[engine]["accumulators"]["fp8_e3m4"]


def componentwise_error(package, scheme, k, engine="plain"):
    """max |C - AB| / (|A||B|) of 64 x 64 elements; FP32 products are exact in double, their sums nearly."""
    random = numpy.random.default_rng(k)
    a, b = (random.uniform(-1, 1, shape).astype(numpy.float32) for shape in ((64, k), (k, 64)))
    c = package.matmul(a, b, scheme, engine)
    assert c.dtype == numpy.float32
    a, b = a.astype(numpy.float64), b.astype(numpy.float64)
    return numpy.max(numpy.abs(c - a @ b) / (numpy.abs(a) @ numpy.abs(b)))


@pytest.mark.parametrize("k", [1, 7, 64, 300])
def test_the_new_scheme_on_the_new_engine_keeps_its_bound(package, k):
    split = 2.0**-22 * (1 + 2.0**-20)
    accumulation = (k + 1) * 2.0**-24 * 1.01
    assert componentwise_error(package, "fp16x4", k) <= split + accumulation


def test_the_new_term_counts(package):
    """At k = 1 the product of the residuals, up to 2^-22, is all that the two schemes differ by."""
    assert componentwise_error(package, "fp16x4", 1) < 0.75 * componentwise_error(package, "fp16x3", 1)


def test_the_engines_agree_on_small_integers(package):
    a = numpy.arange(-40, 40, dtype=numpy.float32).reshape(8, 10)
    for engine in ("plain", "reference"):
        assert (package.matmul(a, a.T, "fp16x4", engine) == a @ a.T).all()


def test_the_kernels_of_the_new_family_are_compiled(tree, touched, tmp_path):
    cache = pathlib.Path(os.environ.get("TESTED_BUILD", "")) / "CMakeCache.txt"
    nvcc = re.search(r"^KINTSUGI_NVCC:\w+=(/.*)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    if not nvcc:
        pytest.skip("needs a build that knows a toolkit: run it through ctest")
    source = tree / "src/engines/cuda/gemm/blackwell/dmma_sm100a.cu"
    log = run(nvcc[1], "-cubin", "-arch=sm_100a", "-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr",
              "-DFMT_CONSTEVAL=", "-DFMT_HEADER_ONLY", "-Werror", "all-warnings", "-Xptxas", "-v,-Werror,-warn-spills",
              "-I", str(tree / "src"), "-o", str(tmp_path / "dmma.cubin"), str(source))
    compiled = set(re.findall(r"Compiling entry function '(\w+)' for 'sm_100a'", log))
    table = (tree / "src/engines/cuda/arch/blackwell/family.cpp").read_text()
    assert compiled == set(re.findall(r'\{"dmma_sm100a", "(\w+)"', table)) and len(compiled) == 2


PRINT_FAMILY = """#include <cstdio>
#include "engines/cuda/arch/family.hpp"
int main() {
  const kintsugi::core::cuda::Family& found = kintsugi::core::cuda::current_family();
  const kintsugi::core::cuda::DmmaKernels* dmma = found.available_dmma(kintsugi::core::ElementType::f64);
  std::printf("%s %d\\n", found.name.data(), dmma == nullptr ? 0 : dmma->tiles[0].rows());
}
"""


@pytest.fixture(scope="module")
def print_family(tree, package):
    """A program that prints the table of the current device, in the library with the new one."""
    source = tree.parent / "print_family.cpp"
    source.write_text(PRINT_FAMILY)
    libraries = [str(file) for file in sorted((tree.parent / "build/src").glob("lib*.a"))]
    program = tree.parent / "print_family"
    run(os.environ.get("TESTED_CXX", "c++"), "-std=c++20", str(source), f"-I{tree}/src", "-Wl,--start-group", *libraries,
        "-Wl,--end-group", "-ldl", "-fopenmp", "-o", str(program))
    return program


@pytest.mark.parametrize("capability, expected", [("10.0", "blackwell 64"), ("12.0", "sm86 0"), ("9.0", "hopper 128")])
def test_devices_of_the_new_family_get_its_table(print_family, capability, expected):
    """The fake driver says what the device is; another family's table stays as it was."""
    fakes = pathlib.Path(os.environ.get("TESTED_BUILD", "")) / "tests/fakes"
    if not (fakes / "libcuda.so.1").exists():
        pytest.skip("needs the fake driver: run it through ctest")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fakes), "FAKE_CUDA_CAPABILITY": capability}
    assert run(print_family, env=environment).strip() == expected


# ---------------------------------------------------------------- other pages

def example(page, language):
    """The first fenced block of a language in a page."""
    return re.search(rf"^```{language}\n(.*?)^```$", (SOURCE / page).read_text(), re.MULTILINE | re.DOTALL)[1]


# Around the lines of an example, which multiply a and b of m x k and k x n elements into c.
MAIN = """#include <stdio.h>
{includes}
int main(void) {{
  enum {{ m = 2, n = 2, k = 2 }};
  const {type} a[] = {{1, 2, 3, 4}}, b[] = {{5, 6, 7, 8}}; /* column-major */
  {type} c[4];
{lines}
  printf("%g %g\\n%g %g\\n", c[0], c[2], c[1], c[3]);
  return 0;
}}
"""


@pytest.mark.parametrize("language, element", [("c", "float"), ("cpp", "double")])
def test_the_examples_in_c_and_cpp_run(language, element, tmp_path):
    if "TESTED_LIBRARY" not in os.environ:
        pytest.skip("needs a built library: run it through ctest")
    library = pathlib.Path(os.environ["TESTED_LIBRARY"])
    include, _, lines = example("README.md", language).partition("\n")
    (tmp_path / f"snippet.{language}").write_text(MAIN.format(includes=include, type=element, lines=lines))
    compiler = [os.environ.get("TESTED_CC", "cc")] if language == "c" else [os.environ.get("TESTED_CXX", "c++"), "-std=c++20"]
    run(*compiler, "-Wall", "-Wextra", "-Werror", str(tmp_path / f"snippet.{language}"), f"-I{SOURCE}/include",
        str(library), f"-Wl,-rpath,{library.parent}", "-o", str(tmp_path / "snippet"))
    assert run(tmp_path / "snippet", cwd=tmp_path, env=clean_environment(tmp_path)) == "23 31\n34 46\n"


def test_the_commands_of_the_readme_run(tmp_path):
    if "TESTED_PROGRAM" not in os.environ:
        pytest.skip("needs the built program: run it through ctest")
    environment = clean_environment(tmp_path)
    environment["PATH"] = os.path.dirname(os.environ["TESTED_PROGRAM"]) + os.pathsep + environment["PATH"]
    commands = example("README.md", "sh").splitlines()
    assert {command.split()[1] for command in commands} >= {"generate", "gemm", "bench"}
    for command in commands:
        run("sh", "-c", command, cwd=tmp_path, env=environment)
    assert numpy.load(tmp_path / "C.npy").shape == (512, 512)


def test_the_table_of_modules_is_that_of_the_layering_test():
    layering = runpy.run_path(str(SOURCE / "tests" / "layering" / "test_layering.py"))
    names = {"the public headers": "include", "everything": "*"}
    section = (SOURCE / "docs" / "ARCHITECTURE.md").read_text().split("A module may include")[1].split("\n\n")[1]
    table = {}
    for line in section.splitlines()[2:]:
        _, module, modules, _, _ = (cell.strip() for cell in line.split("|"))
        modules = [name.removesuffix(" (its open files)") for name in modules.split(", ") if name]
        for key in module.split("`")[1::2]:
            table[key.replace("NAME", "*")] = sorted(names.get(name) or (name if (SOURCE / name).is_dir() else "src/" + name)
                                                     for name in modules)
    assert table == {module: sorted(modules) for module, modules in layering["ALLOWED"].items()}


# ---------------------------------------------------------------- the harness sees what is wrong

def test_a_block_that_finds_no_place_is_caught(tmp_path):
    (tmp_path / "f.hpp").write_text("one\ntwo\none\n")
    with pytest.raises(AssertionError, match="0 lines"):
        apply_block(tmp_path, {"file": "f.hpp", "after": "three"}, "x\n")
    with pytest.raises(AssertionError, match="2 lines"):
        apply_block(tmp_path, {"file": "f.hpp", "after": "one"}, "x\n")
    apply_block(tmp_path, {"file": "f.hpp", "after": "two"}, "x\n")
    apply_block(tmp_path, {"file": "f.hpp", "before": "two"}, "w\n")
    apply_block(tmp_path, {"file": "f.hpp", "replace": "two"}, "y\n")
    assert (tmp_path / "f.hpp").read_text() == "one\nw\ny\nx\none\n"
