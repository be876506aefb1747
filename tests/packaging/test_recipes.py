"""Recipes for conda-forge and Spack: their syntax, the project's version, and options that CMake knows. They are not built."""

import ast
import os
import pathlib
import re

import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
CONDA = SOURCE / "packaging/conda/recipe.yaml"
SPACK = SOURCE / "packaging/spack/package.py"


def version():
    header = (SOURCE / "include/kintsugi/kintsugi.h").read_text()
    return ".".join(re.findall(r"#define KINTSUGI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def test_conda():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(CONDA.read_text())
    assert recipe["schema_version"] == 1 and recipe["context"]["version"] == version()
    assert [output["package"]["name"] for output in recipe["outputs"]] == ["libkintsugi", "kintsugi"]
    for file in recipe["about"]["license_file"]:
        assert (SOURCE / file).is_file()


def test_spack():
    (recipe,) = [node for node in ast.parse(SPACK.read_text()).body if isinstance(node, ast.ClassDef)]
    assert recipe.name == "Kintsugi" and recipe.bases[0].id == "CMakePackage"
    calls = [node.value for node in recipe.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    versions = [call.args[0].value for call in calls if call.func.id == "version"]
    assert versions == [version()]


@pytest.mark.parametrize("file", [CONDA, SPACK], ids=lambda file: file.parent.name)
def test_options_are_those_of_cmake(file):
    known = "".join(path.read_text() for path in [SOURCE / "CMakeLists.txt", *SOURCE.glob("cmake/*.cmake"), *SOURCE.glob("tuner/**/CMakeLists.txt")])
    options = set(re.findall(r"KINTSUGI_(?!CPU_BLAS)[A-Z_]+", file.read_text()))
    assert len(options) >= 3
    for option in options:
        assert re.search(rf"(option|set)\({option}\b", known), option
