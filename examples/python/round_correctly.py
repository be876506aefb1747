"""Round correctly: errors of products in units in the last place, judged by fractions.

Run: python3 round_correctly.py
"""

from fractions import Fraction

import kintsugi
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(1)
a, b = rng.standard_normal((40, 100)), rng.standard_normal((100, 40))


def units(c):
    """Returns the errors of all elements, in distances of neighbouring float64 numbers."""
    errors = []
    for i, row in enumerate(a.tolist()):
        for j, column in enumerate(b.T.tolist()):
            exact = sum(Fraction(x) * Fraction(y) for x, y in zip(row, column))
            errors.append(float((Fraction(float(c[i, j])) - exact) / Fraction(float(np.spacing(abs(float(exact)))))))
    return np.array(errors)


# Under "exact" no float64 number is nearer to the exact element: the error is at most half a unit.
errors = {"numpy": units(a @ b), "kintsugi, exact": units(kintsugi.matmul(a, b, accuracy="exact"))}
for name, found in errors.items():
    print(f"{name:16} largest error {abs(found).max():8.3f} units, median {np.median(abs(found)):.3f}")
assert abs(errors["kintsugi, exact"]).max() <= 0.5

# Elements that cancel are the worst, and need it most.
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
for name, found in errors.items():
    axes.plot(np.sort(abs(found)), np.linspace(0, 100, found.size), label=name)
axes.axvline(0.5, color="grey", linestyle=":", label="half a unit")
axes.set(xscale="log", xlim=(1e-2, None))
axes.set(xlabel="error, units in the last place", ylabel="elements below it, per cent")
axes.legend()
figure.savefig("round_correctly.svg")
