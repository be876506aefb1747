"""Solve an ill-conditioned system: Hilbert's matrices in integers, with solutions that are known.

Run: python3 solve_ill_conditioned.py
"""

import math

import kintsugi
import matplotlib.pyplot as plt
import numpy as np


def system(n):
    """Returns a, x, b with a @ x = b exactly: all elements are integers below 2^53."""
    multiple = math.lcm(*range(1, 2 * n))  # of all denominators
    a = [[multiple // (i + j + 1) for j in range(n)] for i in range(n)]
    x = range(1, n + 1)
    b = [sum(value * factor for value, factor in zip(row, x)) for row in a]
    return (np.array(part, dtype=np.float64) for part in (a, x, b))


# kintsugi.solve refines LAPACK's solution by residuals that are correctly rounded.
conditions, plain, refined = [], [], []
print(f"{'n':>2} {'condition':>9} {'numpy.linalg.solve':>19} {'kintsugi.solve':>15}   largest relative errors")
for n in range(2, 12):
    a, x, b = system(n)
    conditions.append(np.linalg.cond(a))
    plain.append(abs(np.linalg.solve(a, b) / x - 1).max())
    refined.append(abs(kintsugi.solve(a, b) / x - 1).max())
    print(f"{n:2} {conditions[-1]:9.1e} {plain[-1]:19.1e} {refined[-1]:15.1e}")
assert max(refined) <= 2**-52

# The residual tells how good a solution is, even where b - a @ x in float64 has no right digit.
solution = np.linalg.solve(a, b)
print("exact residual of numpy's last solution:", kintsugi.residual(a, solution, b)[:4], "...")

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.loglog(conditions, np.maximum(plain, 1e-17), "o-", label="numpy.linalg.solve")
axes.loglog(conditions, np.maximum(refined, 1e-17), "s-", label="kintsugi.solve (1e-17: no error)")
axes.set(xlabel="condition of the matrix", ylabel="largest relative error")
axes.legend()
figure.savefig("solve_ill_conditioned.svg")
