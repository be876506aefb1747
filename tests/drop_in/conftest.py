"""Runs programs with the BLAS drop-in preloaded, in an environment without other settings."""

import json
import os
import pathlib
import subprocess

import jsonschema
import pytest

SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])
LIBRARY = os.environ.get("TESTED_BLAS")
CALLS = os.environ.get("TESTED_BLAS_CALLS")
CUBLAS = os.environ.get("TESTED_CUBLAS")
CUBLAS_CALLS = os.environ.get("TESTED_CUBLAS_CALLS")
BUILD = pathlib.Path(os.environ["TESTED_BUILD"])
SANITIZED = os.environ.get("TESTED_SANITIZED") == "1"


@pytest.fixture(autouse=True)
def drop_in_is_built():
    if not LIBRARY:
        pytest.skip("configured without the drop-in libraries")


class Preloaded:
    """Runs programs with the drop-in preloaded."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("KINTSUGI_")}
        self.environment["KINTSUGI_CONFIG"] = ""
        self.environment["HOME"] = str(folder)

    def __call__(self, *words, preload=True, **variables):
        settings = {f"KINTSUGI_{name.upper()}": value for name, value in variables.items()}
        loaded = {"LD_PRELOAD": LIBRARY} if preload else {}
        return subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, timeout=600,
                              env=self.environment | settings | loaded)

    def ok(self, *words, **keywords):
        result = self(*words, **keywords)
        assert result.returncode == 0, f"{words}: {result.stdout}{result.stderr}"
        return result

    def report(self, *words, **keywords):
        """Runs a program that must succeed and returns its report, after validating it."""
        self.ok(*words, report=str(self.folder / "report.json"), **keywords)
        return read_report(self.folder / "report.json")


def read_report(path):
    document = json.loads(path.read_text())
    schema = json.loads((SOURCE / "docs/schema/blas-report.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    for node in (schema, schema["definitions"]["problem"], schema["properties"]["other_problems"]):
        node["additionalProperties"] = False
    jsonschema.Draft7Validator(schema).validate(document)
    return document


@pytest.fixture
def preloaded(tmp_path):
    if SANITIZED:
        pytest.skip("the sanitizers' run-time must be loaded first")
    return Preloaded(tmp_path)
