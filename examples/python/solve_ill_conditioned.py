"""A linear system whose condition is 1e12: Hilbert's matrix in integers, with a solution that is known.

Run: python3 solve_ill_conditioned.py
"""

import math

import kintsugi
import numpy as np

n = 9
multiple = math.lcm(*range(1, 2 * n))  # of all denominators: the matrix is exact
a = np.array([[multiple // (i + j + 1) for j in range(n)] for i in range(n)], dtype=np.float64)
x = np.arange(1.0, n + 1)
b = np.array([sum(multiple // (i + j + 1) * (j + 1) for j in range(n)) for i in range(n)], dtype=np.float64)

plain = np.linalg.solve(a, b)
refined = kintsugi.solve(a, b)
print(f"condition {np.linalg.cond(a):.1e}")
print(f"{'x':>3} {'numpy.linalg.solve':>22} {'kintsugi.solve':>16}")
for wanted, first, second in zip(x, plain, refined):
    print(f"{wanted:3.0f} {first:22.15g} {second:16.15g}")
assert abs(refined - x).max() <= 4e-15 * n
print(f"largest errors: {abs(plain - x).max():.1e}, {abs(refined - x).max():.1e}")
print("exact residual of numpy's solution:", kintsugi.residual(a, plain, b))
