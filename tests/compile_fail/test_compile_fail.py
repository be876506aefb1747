"""Misuse of kintsugi.hpp that the compiler must refuse, each for the reason in its first line."""

import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
INCLUDE = pathlib.Path(os.environ.get("TESTED_SOURCE", HERE.parents[1])) / "include"
SNIPPETS = sorted(file.name for file in HERE.glob("*.cpp") if file.name != "control.cpp")


def compile_only(file):
    command = [os.environ.get("TESTED_CXX", "c++"), "-std=c++20", "-pedantic-errors", "-fsyntax-only", f"-I{INCLUDE}",
               str(HERE / file)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})


def test_the_control_compiles():
    result = compile_only("control.cpp")
    assert result.returncode == 0, result.stderr


def test_there_are_snippets():
    assert len(SNIPPETS) >= 8


@pytest.mark.parametrize("file", SNIPPETS)
def test_misuse_is_refused(file):
    expected = re.match(r"// expect: (.*)", (HERE / file).read_text())[1]
    result = compile_only(file)
    assert result.returncode != 0, f"{file} compiled"
    assert re.search(expected, result.stderr), result.stderr
