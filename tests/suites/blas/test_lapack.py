"""LAPACK's testers of linear equations under the drop-in, by default and with emulated products."""

import importlib.machinery
import importlib.util
import os
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).with_name("lapack")


def load_script():
    loader = importlib.machinery.SourceFileLoader("run_lapack", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_lapack", loader))
    loader.exec_module(module)
    return module


suite = load_script()
LIBRARY = os.environ.get("TESTED_BLAS")
FOLDER = suite.testers_folder()


@pytest.mark.skipif(not LIBRARY or not FOLDER or os.environ.get("TESTED_SANITIZED") == "1",
                    reason="no drop-in, no package liblapack-test, or a sanitized library")
@pytest.mark.parametrize("policy", ["auto", "emulate"])
@pytest.mark.parametrize("letter", ["d", "z"])
def test_tester(letter, policy):
    row = suite.run(letter, LIBRARY, policy, full=False, folder=FOLDER)
    assert not row["trouble"] and row["passed"] > 50, row


def test_few_sizes_replace_those_of_the_input():
    text = "7                      Number of values of M\n0 1 2 3 5 10 50        Values of M (row dimension)\n" \
           "3                      Number of values of NRHS\n1 2 15                 Values of NRHS (number of right hand sides)\n"
    few = suite.with_few_sizes(text).splitlines()
    assert few[0].startswith("3  ") and few[1].split()[:3] == ["1", "10", "50"] and few[1].endswith("(row dimension)")
    assert few[2].startswith("1  ") and few[3].split()[0] == "15"


def test_a_failure_is_seen():
    passed, failed = suite.results_of(" DGE routines passed the tests of the error exits\n DPO:   3 out of 100 tests failed to pass\n"
                                      " *** Illegal value of parameter number 3 not detected by DGETRF ***\n")
    assert len(passed) == 1 and len(failed) == 2
