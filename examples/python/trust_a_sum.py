"""Trust a sum: heights of a geoid that cancel, added up in any order.

Run: python3 trust_a_sum.py
"""

import pathlib

import kintsugi
import matplotlib.pyplot as plt
import numpy as np

# Three numbers a point: its height, 1e12 metres more, and -1e12. The sum is twice that of all heights.
heights = np.load(pathlib.Path(__file__).parents[1] / "data" / "geoid.npy").astype(np.float64).ravel()
numbers = np.concatenate([heights, 1e12 + heights, np.full(heights.size, -1e12)])

# numpy's sum depends on the order. kintsugi's is the float64 number next to the exact sum, in every order.
exact = kintsugi.sum(numbers)
orders = [np.random.default_rng(seed).permutation(numbers) for seed in range(100)]
plain = np.array([np.sum(order) for order in orders])
assert all(kintsugi.sum(order) == exact for order in orders)
print(f"{numbers.size} numbers in 100 orders")
print(f"numpy.sum:    {plain.min():.6f} to {plain.max():.6f}, {np.unique(plain).size} different sums")
print(f"kintsugi.sum: {exact:.6f} in all of them")

# So are dot products, norms, and under "exact" every element of a product of matrices.
square = kintsugi.dot(numbers, numbers)
with kintsugi.accuracy("exact"):
    assert square == kintsugi.matmul(orders[1][None, :], orders[1][:, None])[0, 0]
print(f"sum of squares {square:.17g}, norm {kintsugi.norm2(numbers):.17g}")

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.plot(plain - exact, ".", label="numpy.sum")
axes.axhline(0, color="C1", label="kintsugi.sum")
axes.set(xlabel="order of the numbers", ylabel="sum less the exact one, metres")
axes.legend()
figure.savefig("trust_a_sum.svg")
