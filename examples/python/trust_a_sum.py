"""Sums that do not depend on the order: heights of a geoid that cancel, added up forwards, backwards and shuffled.

Run: python3 trust_a_sum.py
"""

import pathlib

import kintsugi
import numpy as np

heights = np.load(pathlib.Path(__file__).parents[1] / "data" / "geoid.npy").astype(np.float64).ravel()
anomalies = np.concatenate([heights, 1e12 + heights, np.full(heights.size, -1e12)])  # 1e12 cancels
orders = {"forwards": anomalies, "backwards": anomalies[::-1],
          "shuffled": np.random.default_rng(1).permutation(anomalies)}

print(f"{anomalies.size} numbers, twice the heights and what cancels")
print(f"{'order':10} {'numpy.sum':>24} {'kintsugi.sum':>24}")
sums = set()
for name, numbers in orders.items():
    exact = kintsugi.sum(numbers)
    sums.add(float(exact))
    print(f"{name:10} {np.sum(numbers):24.17g} {exact:24.17g}")
assert len(sums) == 1

# The same holds for products: under "exact" every element is the nearest number to the exact one.
with kintsugi.accuracy("exact"):
    gram = kintsugi.matmul(anomalies[None, :], anomalies[:, None])[0, 0]
    again = kintsugi.matmul(orders["shuffled"][None, :], orders["shuffled"][:, None])[0, 0]
assert gram == again == kintsugi.dot(anomalies, anomalies)
print(f"sum of squares, both orders: {gram:.17g}; norm {kintsugi.norm2(anomalies):.17g}")
