"""The reference BLAS's and CBLAS's level-3 testers under the drop-in, by default and with every product emulated."""

import importlib.machinery
import importlib.util
import os
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).with_name("run")


def load_script():
    loader = importlib.machinery.SourceFileLoader("run_testers", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_testers", loader))
    loader.exec_module(module)
    return module


suite = load_script()
LIBRARY = os.environ.get("TESTED_BLAS")
FOLDER = suite.testers_folder()
TESTERS = list(suite.testers(FOLDER)) if FOLDER else []

needs_testers = pytest.mark.skipif(not LIBRARY or not FOLDER or os.environ.get("TESTED_SANITIZED") == "1",
                                   reason="no drop-in, no package libblas-test, or a sanitized library")


@needs_testers
@pytest.mark.parametrize("policy", suite.POLICIES)
@pytest.mark.parametrize("tester", TESTERS, ids=[tester[0] for tester in TESTERS])
def test_tester(tester, policy):
    row = suite.run(tester, LIBRARY, policy, full=False)
    assert row["passed"], "\n".join(row["trouble"])


@needs_testers
def test_a_tester_that_is_not_forced_is_seen():
    """The judge of forced runs sees native calls."""
    row = suite.run(TESTERS[1], LIBRARY, "auto", full=False)
    assert row["calls"]["native"] > 0 and row["calls"]["emulated"] == 0


def test_few_sizes_replace_those_of_the_input():
    text = "16.0     THRESHOLD\n6                 NUMBER OF VALUES OF N\n0 1 2 3 5 9       VALUES OF N\n3      NUMBER OF VALUES OF BETA\n"
    few = suite.with_few_sizes(text).splitlines()
    assert few[1] == "3                 NUMBER OF VALUES OF N" and few[2] == "0 1 5       VALUES OF N"
    assert few[0] == "16.0     THRESHOLD" and few[3].startswith("3 ")


@pytest.mark.parametrize("line", [" DGEMM  FAILED ON CALL NUMBER:", " ***** FATAL ERROR - TESTS ABANDONED *****",
                                  " DGEMM  COMPLETED THE COMPUTATIONAL TESTS\n ******* BUT WITH MAXIMUM TEST RATIO 17 - SUSPECT *******"])
def test_trouble_is_seen(line):
    assert suite.TROUBLE.search(line)
