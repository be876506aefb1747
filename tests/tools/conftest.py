"""Runs the program as a user does: own folder, no settings but those that a test gives."""

import json
import os
import pathlib
import subprocess

import jsonschema
import numpy
import pytest

PROGRAM = os.environ["TESTED_PROGRAM"]
SOURCE = pathlib.Path(os.environ["TESTED_SOURCE"])


class Result:
    def __init__(self, completed):
        self.status = completed.returncode
        self.stdout = completed.stdout.decode("utf-8", "replace")
        self.stderr = completed.stderr.decode("utf-8", "replace")

    def json(self):
        assert self.status == 0, self.stderr
        return json.loads(self.stdout)


class Program:
    def __init__(self, folder):
        self.folder = folder
        home = folder / "home"
        home.mkdir()
        # Variables of the caller's shell must not change a test.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("KINTSUGI_", "XDG_"))}
        self.environment["HOME"] = str(home)

    def executable(self, words):
        return PROGRAM

    def __call__(self, *words, environment=None, preexec=None, stdin=None):
        completed = subprocess.run(
            [self.executable(words), *[str(word) for word in words]],
            cwd=self.folder,
            env={**self.environment, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            preexec_fn=preexec,
            timeout=300,
        )
        return Result(completed)

    def ok(self, *words, **keywords):
        result = self(*words, **keywords)
        assert result.status == 0, f"{words}: {result.stderr}"
        assert result.stderr == "", f"{words}: {result.stderr}"
        return result

    def bad(self, *words, **keywords):
        """Bad input: status 2, nothing on stdout, one line on stderr; returns that line."""
        result = self(*words, **keywords)
        assert result.status == 2, f"{words}: status {result.status}, {result.stdout}{result.stderr}"
        assert result.stdout == "", result.stdout
        name = pathlib.Path(self.executable(words)).name + ": "
        assert result.stderr.startswith(name), result.stderr
        assert result.stderr.endswith("\n") and result.stderr.count("\n") == 1, result.stderr
        return result.stderr[len(name) : -1]

    def save(self, name, array):
        numpy.save(self.folder / name, array)
        return name

    def load(self, name):
        return numpy.load(self.folder / name)

    def files(self):
        return sorted(os.listdir(self.folder))


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


@pytest.fixture
def random():
    return numpy.random.default_rng(20240607)


def schema(name):
    files = [SOURCE / folder / "schema" / f"{name}.schema.json" for folder in ("docs", "lab")]
    return json.loads(next(file for file in files if file.exists()).read_text())


@pytest.fixture
def validate():
    def check(document, name):
        text = schema(name)
        jsonschema.Draft7Validator.check_schema(text)
        jsonschema.Draft7Validator(text).validate(document)
        assert document["format"] == f"kintsugi.{name}"

    return check
