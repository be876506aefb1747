"""Contract tensors: integrals of orbitals by numpy's einsum, the accuracy chosen outside.

Run: python3 contract_tensors.py
"""

import kintsugi
import kintsugi.numpy as knp
import matplotlib.pyplot as plt
import numpy as np

n = 16
rng = np.random.default_rng(1)
orbitals, _ = np.linalg.qr(rng.standard_normal((n, n)))
integrals = rng.standard_normal((n, n, n, n)) * np.exp(-rng.exponential(4, (n, n, n, n)))


# The function names no accuracy. kintsugi.numpy has numpy's products, and its other names are numpy's own.
def transformed(c, v):
    return knp.einsum("pa,qb,pqrs,rc,sd->abcd", c, c, v, c, c, optimize=True)


# einsum multiplies two operands at a time, each product at the accuracy that is in force.
with kintsugi.accuracy("exact"):
    exact = transformed(orbitals, integrals)
plain = np.einsum("pa,qb,pqrs,rc,sd->abcd", orbitals, orbitals, integrals, orbitals, orbitals, optimize=True)
errors = {"numpy": abs(plain - exact).max()}
for accuracy in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, "fp64"):
    with kintsugi.accuracy(accuracy, policy="emulate"):
        errors[str(accuracy)] = abs(transformed(orbitals, integrals) - exact).max()
    scheme = kintsugi.last_report()["candidates"][0]["scheme"]
    print(f"accuracy {accuracy!s:6}  largest error {errors[str(accuracy)]:.1e}  last product by {scheme}")
print(f"numpy            largest error {errors['numpy']:.1e}")
assert errors["fp64"] <= errors["numpy"]

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.bar(list(errors), list(errors.values()))
axes.set(yscale="log", xlabel="accuracy of the products", ylabel="largest error of an integral")
figure.savefig("contract_tensors.svg")
