"""Train faster: an unchanged torch model, its FP32 products by kintsugi.

Run: python3 train_faster.py [--device cuda] [--width 2048] [--steps 20]
Gains are for GPUs (docs/FEATURES.md); on a CPU the products are the system's BLAS unless an accuracy is asked for.
"""

import argparse
import statistics
import time

import kintsugi.torch
import matplotlib.pyplot as plt
import torch

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="example: train_faster.py --device cuda")
parser.add_argument("--device", default="cpu", help="cpu or cuda [cpu]")
parser.add_argument("--width", type=int, default=128, help="of the hidden layers [128]")
parser.add_argument("--steps", type=int, default=20, help="steps of the training [20]")
arguments = parser.parse_args()


def train() -> tuple[list[float], float]:
    """Returns the losses of a perceptron that learns a random function, and the median seconds of a step."""
    torch.manual_seed(1)
    width = arguments.width
    layers = [torch.nn.Linear(64, width), torch.nn.GELU(), torch.nn.Linear(width, width), torch.nn.GELU(),
              torch.nn.Linear(width, 1)]
    model = torch.nn.Sequential(*layers).to(arguments.device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs = torch.randn(4 * width, 64, device=arguments.device)
    targets = inputs.sin().prod(1, keepdim=True) + inputs[:, :1]
    losses, times = [], []
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - begin)
    return losses, statistics.median(times)


# While enable() is in force, torch's products are kintsugi's, gradients included.
stock, stock_time = train()
with kintsugi.torch.enable():
    ours, our_time = train()
print(f"loss: torch {stock[0]:.6f} -> {stock[-1]:.6f}, kintsugi {ours[0]:.6f} -> {ours[-1]:.6f}")
print(f"a step: torch {stock_time * 1e3:.2f} ms, kintsugi {our_time * 1e3:.2f} ms")
print("products:", kintsugi.torch.statistics())
assert abs(ours[-1] - stock[-1]) < 1e-3 * abs(stock[-1])

figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.plot(stock, label="torch")
axes.plot(ours, "--", label="kintsugi.torch.enable()")
axes.set(xlabel="step", ylabel="loss")
axes.legend()
figure.savefig("train_faster.svg")
