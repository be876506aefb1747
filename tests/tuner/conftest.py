"""Compiles programs with the compiler pass and without it, and runs them with the BLAS drop-in or without it."""

import json
import os
import pathlib
import subprocess

import jsonschema
import pytest
from drop_in.conftest import Preloaded, read_report

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
PROGRAMS = pathlib.Path(__file__).parent / "programs"
CLANG = os.environ.get("TESTED_CLANG")
PLAIN_CLANG = os.environ.get("TESTED_PLAIN_CLANG")
BLAS = "-l:libopenblas.so.0"


@pytest.fixture(autouse=True)
def everything_is_built():
    for variable, missing in {"TESTED_CLANG": "the compiler pass: LLVM 14's development files or clang-14 are missing",
                              "TESTED_BLAS": "the drop-in libraries", "TESTED_PROGRAM": "the program kintsugi"}.items():
        if not os.environ.get(variable):
            pytest.skip(f"configured without {missing}")


def run(*words, **keywords):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, **keywords)
    assert result.returncode == 0, f"{words}: {result.stdout}{result.stderr}"
    return result


def compile(*words, with_pass=True, **keywords):
    """Compiles with the wrapper, or with the clang that it starts; C++ where a word ends in .cpp."""
    is_cpp = any(str(word).endswith(".cpp") for word in words)
    if with_pass:
        return run(CLANG + ("++" if is_cpp else ""), *words, **keywords)
    return run(PLAIN_CLANG, f"--driver-mode={'g++' if is_cpp else 'gcc'}", *words, **keywords)


def table(file):
    """The sites of a file, by `kintsugi sites --json`."""
    document = json.loads(run(os.environ["TESTED_PROGRAM"], "sites", file, "--json").stdout)
    schema = json.loads((SOURCE / "docs/schema/program-sites.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema | {"additionalProperties": False}).validate(document)
    return document["sites"]


def names(file):
    return sorted(site["site"] for site in table(file))


class Sites:
    """Runs programs under the drop-in with a sites file."""

    def __init__(self, folder):
        self.preloaded = Preloaded(folder)
        self.folder = folder

    def file(self, rules):
        path = self.folder / "sites.json"
        path.write_text(json.dumps({"format": "kintsugi.sites", "format_version": 1, "sites": rules}))
        return str(path)

    def run(self, program, rules):
        """Standard output and the report's sites by name."""
        result = self.preloaded.ok(program, sites=self.file(rules), report=str(self.folder / "report.json"))
        report = read_report(self.folder / "report.json")
        return result.stdout, {site["site"]: site for site in report["sites"]}


@pytest.fixture
def sites(tmp_path):
    return Sites(tmp_path)
