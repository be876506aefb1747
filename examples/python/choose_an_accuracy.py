"""Choose an accuracy: what a tolerance costs, what it gives, and the plan in words.

Run: python3 choose_an_accuracy.py
"""

import textwrap

import kintsugi
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(1)
a, b = rng.standard_normal((400, 400)), rng.standard_normal((400, 400))
exact, size = kintsugi.matmul(a, b, accuracy="exact"), abs(a) @ abs(b)

# A tolerance bounds the error relative to |a| @ |b|. The plan says which candidates were made for it; the report of
# a call, which of them ran: the first that is proved for the data.
tolerances, errors = 10.0 ** -np.arange(2, 15), []
print("tolerance    error  scheme            int8 products  workspace")
for tolerance in tolerances:
    plan = kintsugi.plan(a, b, accuracy=tolerance, policy="emulate")
    errors.append((abs(plan(a, b) - exact) / size).max())
    ran = kintsugi.last_report()["candidates"][0]["scheme"]
    products = {made["scheme"]: len(made["program"]["schedule"]["terms"]) for made in plan["candidates"]}[ran]
    workspace = plan["workspace_bytes"] / 2**20
    print(f"{tolerance:9.0e} {errors[-1]:8.1e}  {ran:17} {products:13} {workspace:6.1f} MiB")
assert all(errors <= tolerances)

print()
for line in kintsugi.explain(a, b, accuracy=1e-6, policy="emulate")["words"]:
    print(textwrap.fill(line, 100))

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.loglog(tolerances, tolerances, ":", color="grey", label="the tolerance")
axes.loglog(tolerances, errors, "o-", label="largest error / |a| @ |b|")
axes.set(xlabel="accuracy asked for", ylabel="error")
axes.legend()
figure.savefig("choose_an_accuracy.svg")
