"""Reproduce results: the same bits with any number of threads, and of a part as of the whole.

Run: python3 reproduce_bits.py
"""

import kintsugi
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(1)
a, b = rng.standard_normal((256, 500)), rng.standard_normal((500, 256))

# Ways to compute a product that differ in nothing but the order of additions.
ways = {
    "1 thread": lambda multiply: multiply(a, b, threads=1),
    "row by row": lambda multiply: np.vstack([multiply(row[None, :], b) for row in a]),
    "half of the columns": lambda multiply: multiply(a, np.ascontiguousarray(b[:, :129])),
    "transposed": lambda multiply: multiply(np.ascontiguousarray(b.T), np.ascontiguousarray(a.T)).T,
}


def native(x, y, threads=None):
    return kintsugi.matmul(x, y, policy="native", threads=threads)


# Under "reproducible" an element depends on its row, its column and their length alone, on any machine.
def reproducible(x, y, threads=None):
    return kintsugi.matmul(x, y, accuracy="reproducible", threads=threads)


counts = {}
for multiply in (native, reproducible):
    whole = multiply(a, b)
    parts = {way: compute(multiply) for way, compute in ways.items()}
    found = [100 * np.mean(part != whole[:, :part.shape[1]]) for part in parts.values()]
    counts[multiply.__name__] = found
    print(f"{multiply.__name__:13}", *(f"{way}: {count:.1f} %" for way, count in zip(ways, found)), sep="  ")
assert not any(counts["reproducible"])

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
for place, (name, values) in enumerate(counts.items()):
    bars = axes.barh(np.arange(len(ways)) + 0.4 * place, values, 0.4, label=name)
    axes.bar_label(bars, fmt="%.0f", padding=2)
axes.set_yticks(np.arange(len(ways)) + 0.2, ways)
axes.set(xlabel="elements with other bits, per cent", xlim=(0, 110))
axes.legend(loc="upper right")
figure.savefig("reproduce_bits.svg")
