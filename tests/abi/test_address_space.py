"""Calls under RLIMIT_AS: a product, or a status, and never the end of the program or a call without end."""

import os
import subprocess
import sys

import pytest

# Limits the address space to so many MiB beyond what is used, before or after a small product, then multiplies.
PROGRAM = r"""
import array, ctypes, os, random, resource, sys
left, order, when, *settings = sys.argv[1:]
library = ctypes.CDLL(os.environ["TESTED_LIBRARY"])
library.kintsugi_last_error.restype = ctypes.c_char_p
handle = ctypes.c_void_p()
library.kintsugi_create(ctypes.byref(handle))
for setting in settings:
    name, value = setting.split("=")
    assert library.kintsugi_set(handle, name.encode(), value.encode()) == 0
random.seed(1)
numbers = array.array("d", [random.uniform(-1, 1) for _ in range(9973)])
def matrix(n):
    return (ctypes.c_double * (n * n)).from_buffer((numbers * (n * n // 9973 + 1))[:n * n])
def multiply(n, a, b, c):
    n, one, zero = ctypes.c_int64(n), ctypes.c_double(1), ctypes.c_double(0)
    return library.kintsugi_dgemm(handle, 0, 0, 0, n, n, n, one, a, n, b, n, zero, c, n)
n = int(order)
a, b, c, small = matrix(n), matrix(n), matrix(n), matrix(64)
if when == "after":
    assert multiply(64, small, small, matrix(64)) == 0
before = c[:1000]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, 2 * (used + int(left) * 2**20,))
status = multiply(n, a, b, c)
assert status == 0 or (status == 4 and c[:1000] == before and library.kintsugi_last_error())
if status == 0 and n < 500:
    for i in range(0, n, 37):
        expected = sum(a[i + l * n] * b[l + i * n] for l in range(n))
        assert abs(c[i + i * n] - expected) < 1e-9 * n
os._exit(status)
"""


@pytest.mark.skipif(os.environ.get("TESTED_SANITIZED") == "1", reason="the sanitizers reserve address space")
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("settings", ["accuracy=exact", "policy=emulate", "accuracy=reproducible", "accuracy=fp64", "policy=native"])
def test_products_end_with_a_status(threads, when, settings):
    environment = os.environ | {"OMP_NUM_THREADS": threads, "KINTSUGI_CONFIG": ""}
    for left, order in (("8", "100"), ("8", "1200"), ("64", "1200")):
        result = subprocess.run([sys.executable, "-c", PROGRAM, left, order, when, settings], env=environment, capture_output=True, text=True,
                                timeout=300)
        assert result.returncode in ((0, 4) if order == "1200" else (0,)), f"{left} MiB, n = {order}: {result.returncode} {result.stderr}"
