"""Destinations of the library's log lines. Run by test_package.py with the Python that the package is installed in."""

import os
import subprocess
import sys

import pytest

PRODUCT = "import numpy, kintsugi; kintsugi.matmul(numpy.eye(3), numpy.eye(3))"


def run(code, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KINTSUGI_")}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**environment, **settings})
    assert result.returncode == 0, result.stderr
    return [line for line in result.stderr.splitlines() if "m = 3" in line], result.stderr


def test_lines_go_to_standard_error():
    (line,), _ = run(PRODUCT, KINTSUGI_LOG="info")
    assert line.startswith("kintsugi log: gemm m = 3, n = 3, k = 3")


def test_without_the_setting_there_are_none():
    assert "kintsugi log" not in run(PRODUCT)[1]


@pytest.mark.parametrize("level", ["info", "debug"])
def test_lines_go_to_logging_where_it_is_configured(level):
    """The setting is the threshold, not the root logger's level, which is that of warnings."""
    code = "import logging; logging.basicConfig(format='%(name)s/%(levelname)s/%(message)s'); " + PRODUCT
    lines, everything = run(code, KINTSUGI_LOG=level)
    assert lines[0].startswith("kintsugi/INFO/gemm m = 3") and "kintsugi log:" not in everything
    assert ("kintsugi/DEBUG/" in everything) == (level == "debug")


def test_a_program_may_silence_them():
    code = "import logging; logging.getLogger('kintsugi').setLevel(logging.ERROR); logging.basicConfig(); " + PRODUCT
    assert run(code, KINTSUGI_LOG="info")[1] == ""


def test_a_package_that_is_imported_again_logs():
    code = ("import sys, gc, numpy\nfor _ in range(3):\n    import kintsugi\n    kintsugi.matmul(numpy.eye(3), numpy.eye(3))\n"
            "    for name in [name for name in sys.modules if name.startswith('kintsugi')]:\n        del sys.modules[name]\n"
            "    del kintsugi\n    gc.collect()")
    assert len(run(code, KINTSUGI_LOG="info")[0]) == 3
