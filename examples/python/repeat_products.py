"""Repeat products: one matrix is split once, and multiplied many times.

Run: python3 repeat_products.py
"""

import timeit

import kintsugi
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(1)
matrix = rng.standard_normal((384, 384))
scheme = "ozaki2"  # FP64 by int8

# An emulated product splits its operands first. For few columns that is most of the work; prepare() does it once.
prepared = kintsugi.prepare(matrix, side="a", scheme=scheme)
times = {"matmul(matrix, x)": [], "matmul(prepared, x)": []}
columns = [1, 4, 16, 64]
for n in columns:
    x = rng.standard_normal((384, n))
    for name, a in zip(times, (matrix, prepared)):
        def call():
            return kintsugi.matmul(a, x, scheme=scheme)
        times[name].append(1e6 * min(timeit.repeat(call, number=5, repeat=5)) / 5)
    assert np.array_equal(kintsugi.matmul(matrix, x, scheme=scheme), kintsugi.matmul(prepared, x, scheme=scheme))
print(f"{'columns':20}", *(f"{n:6}" for n in columns))
for name, found in times.items():
    print(f"{name:20}", *(f"{value:6.0f}" for value in found), " microseconds a call")

# A plan chooses once for a shape. Its calls check that the operands fit, and run.
plan = kintsugi.plan(matrix, x, scheme=scheme)
assert np.array_equal(plan(matrix, x), kintsugi.matmul(matrix, x, scheme=scheme))

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
for (name, found), marker in zip(times.items(), "os"):
    axes.loglog(columns, found, marker + "-", label=name)
axes.set(xlabel="columns of x", ylabel="microseconds a call", xticks=columns, xticklabels=columns)
axes.minorticks_off()
axes.legend()
figure.savefig("repeat_products.svg")
