"""lab/studies/torch_calls.py with stand-ins for torch and kintsugi: what it measures, and which rows miss their goal."""

import json
import os
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(os.environ["TESTED_SOURCE"]) / "lab/studies/torch_calls.py"

# Tensors are numpy's arrays of a class with torch's methods.
TORCH = """
import types, numpy
class Tensor(numpy.ndarray):
    mT = property(lambda self: self.T)
    double = lambda self: self.astype(numpy.float64)
    abs = lambda self: numpy.abs(self)
float32, float64, __version__ = numpy.dtype("float32"), numpy.dtype("float64"), "0"
cuda = types.SimpleNamespace(synchronize=lambda: None, get_device_name=lambda: "Stand-in")
randn = lambda shape, dtype, device: (numpy.arange(shape[0] * shape[1]) % 7 - 3).reshape(shape).astype(dtype).view(Tensor)
results = {}
def mm(a, b):  # fast, so that the script takes seconds
    key = a.shape, b.shape, a.strides, b.strides
    if key not in results:
        results[key] = (a.double() @ b.double()).astype(a.dtype)
    return results[key]
"""
KINTSUGI = """
import os, time, torch
def matmul(a, b, policy=None):
    if a.shape[0] == 16:
        time.sleep(1e-3)
    return 2 * torch.mm(a, b) if "WRONG" in os.environ else torch.mm(a, b)
last_report = lambda: {"candidates": [{"scheme": "fp16x3", "items": 0}, {"scheme": "native", "items": 1}]}
"""


def torch_calls(folder, **variables):
    (folder / "torch.py").write_text(TORCH)
    (folder / "kintsugi.py").write_text(KINTSUGI)
    words = ["--rounds", "2", "--types", "float32", "--shapes", "16x64x64,32x64x48", "--json", folder / "found.json"]
    return subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(folder), **variables})


def test_slow_calls_miss_the_goal(tmp_path):
    result = torch_calls(tmp_path)
    assert result.returncode == 1, result.stderr
    document = json.loads((tmp_path / "found.json").read_text())
    rows = {(row["shape"], row["layout"]): row for row in document["rows"]}
    assert document["device"] == "Stand-in" and len(rows) == 2 * 4
    slow = rows["16x64x64", "b transposed"]
    assert slow["difference"] > 500 and slow["kintsugi host"] > 900 and slow["schemes"] == ["native"]
    assert sum("missed" in line for line in result.stdout.splitlines()) == sum(row["difference"] > 5 for row in rows.values())
    assert {shape for (shape, _), row in rows.items() if row["difference"] > 500} == {"16x64x64"}


def test_wrong_results_are_not_timed(tmp_path):
    result = torch_calls(tmp_path, WRONG="1")
    assert result.returncode == 1 and "16, 64) by (64, 64): the error is" in result.stderr
