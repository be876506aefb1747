"""Runs kintsugi-lab as a user does, and kintsugi for its commands, in an own folder."""

import os
import sys

import pytest
from tools.conftest import PROGRAM, SOURCE, Program, random, schema, validate  # noqa: F401

sys.path.append(str(SOURCE / "tests" / "tools"))  # for test_json and test_output, whose functions these tests use
LAB = os.environ["TESTED_LAB"]
COMMANDS = ("accuracy", "analyse", "predict", "report", "reproduce")


class Laboratory(Program):
    def executable(self, words):
        return LAB if not words or words[0] in (*COMMANDS, "help", "--help", "--version") else super().executable(words)


@pytest.fixture
def program(tmp_path):
    return Laboratory(tmp_path)
