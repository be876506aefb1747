"""FP64 by int8: how many int8 products a float64 product takes.

Run: python3 fp64_by_int8.py
"""

import kintsugi
import matplotlib.pyplot as plt
import numpy as np

# Scheme ozaki2 scales rows and columns to integers, multiplies them modulo some 8-bit numbers, one int8 product
# each, and puts the results together by the Chinese remainder theorem. Each modulus adds about four bits.
moduli = range(2, 21)
rng = np.random.default_rng(1)
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
print("moduli:", *(f"{number:7}" for number in moduli[::3]))
for place, phi in enumerate((0, 2)):  # phi: how far magnitudes within a row spread
    a, b = ((rng.random((256, 256)) - 0.5) * np.exp(phi * rng.standard_normal((256, 256))) for _ in "ab")
    exact, size = kintsugi.matmul(a, b, accuracy="exact"), abs(a) @ abs(b)

    def error(c):
        return (abs(c - exact) / size).max()

    errors = [error(kintsugi.matmul(a, b, scheme=f"ozaki2:moduli={number}")) for number in moduli]
    print(f"phi {phi}: ", *(f"{value:7.0e}" for value in errors[::3]), f"  numpy: {error(a @ b):.0e}")
    style = {"color": f"C{place}", "marker": "os"[place]}
    axes.semilogy(moduli, np.maximum(errors, 1e-18), label=f"ozaki2, phi = {phi}", **style)
    axes.axhline(error(a @ b), color=style["color"], linestyle=":", label=f"numpy, phi = {phi}")

# What runs without a scheme is chosen by the accuracy, and is proved on the data.
plan = kintsugi.explain(a, b, accuracy="fp64", policy="emulate")
print("fp64 by emulation tries:", *(candidate["scheme"] for candidate in plan["candidates"]))
axes.set(xlabel="moduli, each one int8 product", ylabel="largest error / |A||B|", xticks=moduli[::3])
axes.legend()
figure.savefig("fp64_by_int8.svg")
