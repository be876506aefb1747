"""Use FP16 units: orthogonal matrices by Newton and Schulz, as the optimizer Muon makes them.

Run: python3 use_fp16_units.py
"""

import kintsugi
import matplotlib.pyplot as plt
import numpy as np

matrix = np.random.default_rng(1).standard_normal((128, 192)).astype(np.float32)
matrix /= np.linalg.norm(matrix, 2)


def errors_of_iteration(scheme, steps=16):
    """Returns the largest element of x @ x.T - 1 after each step."""
    x, errors = matrix, []
    for _ in range(steps):
        gram = kintsugi.matmul(x, x.T, scheme=scheme)
        x = np.float32(1.5) * x - np.float32(0.5) * kintsugi.matmul(gram, x, scheme=scheme)
        wide = x.astype(np.float64)
        errors.append(abs(wide @ wide.T - np.eye(len(x))).max())
    return errors


# One product of FP16 or BF16 stops early. Three of FP16, or six of BF16, get as far as FP32 itself. Schemes are named
# for trials like this one; who asks for an accuracy gets one that is proved for the data.
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
last = {}
for scheme, style in {"bf16": "-", "fp16": "-", "bf16x6": "-", "fp16x3": "-", "native": "k:"}.items():
    found = errors_of_iteration(scheme)
    last[scheme] = found[-1]
    print(f"{scheme:7} error after {len(found)} steps {found[-1]:.1e}")
    axes.semilogy(range(1, len(found) + 1), found, style, label="native FP32" if scheme == "native" else scheme)
assert last["fp16x3"] < 2 * last["native"] < last["fp16"] / 100
axes.set(xlabel="step", ylabel="largest element of X Xᵀ − 1")
axes.legend()
figure.savefig("use_fp16_units.svg")
