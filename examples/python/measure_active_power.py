"""Complex products: active power of a coil from samples of voltage and current in complex64.

Run: python3 measure_active_power.py
"""

import kintsugi.numpy as knp
import kintsugi
import matplotlib.pyplot as plt
import numpy as np

# The current lags nearly 90 degrees. What the coil loses is the small real part of vdot(voltage, current).
rng = np.random.default_rng(1)
samples = 4096
losses = 10.0 ** -np.arange(1, 8)
voltage = (rng.standard_normal(samples) + 1j * rng.standard_normal(samples)).astype(np.complex64)
results = []
for loss in losses:
    current = ((loss - 1j) * voltage.astype(np.complex128)).astype(np.complex64)
    wide = np.vdot(voltage.astype(np.complex128), current.astype(np.complex128)).real  # complex128 has enough digits
    with kintsugi.accuracy("exact"):
        exact = knp.vdot(voltage, current).real
    results.append((abs(np.vdot(voltage, current).real / wide - 1), abs(exact / wide - 1)))

# Under "exact" real and imaginary part are rounded correctly each, in the type of the samples.
print("loss angle  numpy.vdot  exact   relative errors of the active power")
for loss, (plain, ours) in zip(losses, results):
    print(f"{loss:10.0e} {plain:11.0e} {ours:6.0e}")
plain, ours = np.array(results).T
assert ours.max() <= 2**-24

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.loglog(losses, plain, "o-", label="numpy.vdot, complex64")
axes.loglog(losses, np.maximum(ours, 1e-10), "s-", label="kintsugi.numpy.vdot, exact")
axes.set(xlabel="loss angle", ylabel="relative error of the active power")
axes.legend()
figure.savefig("measure_active_power.svg")
