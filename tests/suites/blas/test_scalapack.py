"""ScaLAPACK's pdgemm on two ranks under the drop-in (Debian: libscalapack-openmpi2.2, openmpi-bin)."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

LIBRARY = os.environ.get("TESTED_BLAS")
MPIRUN = shutil.which("mpirun") or shutil.which("orterun")
PROGRAM = pathlib.Path(__file__).with_name("pdgemm.py")


def has_scalapack():
    try:
        ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
        ctypes.CDLL("libscalapack-openmpi.so.2.2")
    except OSError:
        return False
    return True


@pytest.mark.skipif(not LIBRARY or not MPIRUN or not has_scalapack() or os.environ.get("TESTED_SANITIZED") == "1",
                    reason="no drop-in, no ScaLAPACK with Open MPI, or a sanitized library")
@pytest.mark.parametrize("policy, depth, is_native", [("auto", 32, True), ("force", 512, False)])
def test_products_are_as_deep_as_emulation_needs(tmp_path, policy, depth, is_native):
    variables = {"KINTSUGI_CONFIG": "", "KINTSUGI_POLICY": policy, "KINTSUGI_REPORT": str(tmp_path / "report-%p.json"),
                 "LD_PRELOAD": LIBRARY}
    flags = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KINTSUGI_")}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    result = subprocess.run([MPIRUN, "--oversubscribe", "-np", "2", *flags, sys.executable, str(PROGRAM)], cwd=tmp_path,
                            env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    reports = [json.loads(path.read_text()) for path in tmp_path.glob("report-*.json")]
    assert len(reports) == 2
    for report in reports:
        products = [problem for problem in report["problems"] if problem["symbol"] == "dgemm_" and problem["k"] > 0]
        assert {problem["k"] for problem in products} == {depth}
        assert all((problem["native_calls"] == problem["calls"]) == is_native for problem in products)
