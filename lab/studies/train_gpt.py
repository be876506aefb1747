#!/usr/bin/env python3
"""Trains a GPT-like model of 98 million parameters in FP32 on a GPU, stock, under the drop-in for cuBLAS or under
kintsugi.torch.enable(): losses, and the median time of a step.

    lab/studies/train_gpt.py --seeds 0,1,2 --output stock.json
    kintsugi run -- lab/studies/train_gpt.py --output preload.json
    lab/studies/train_gpt.py --enable --output enable.json

Needs torch, and for --enable the Python package.
"""

import argparse
import contextlib
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH, BATCH = 16384, 768, 12, 12, 512, 8
WARM = 20  # steps that are not timed


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.joined, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = (y.unflatten(2, (HEADS, -1)).transpose(1, 2) for y in self.joined(self.first(x)).split(WIDTH, 2))
        x = x + self.out(functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers, self.norm = nn.Sequential(*(Layer() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02 / ((2 * LAYERS)**0.5 if ".out." in name or ".down." in name else 1))

    def forward(self, x):
        return self.head(self.norm(self.layers(self.tokens(x) + self.places.weight)))


def sentences(count, seed, device):
    """Returns count sentences of a language that is the same for all seeds: mostly the next token is one of four that the
    last one determines, with odds 8:4:2:1; once in ten it is any, by Zipf's law."""
    odds = 1 / torch.arange(1, VOCABULARY + 1, dtype=torch.float64)
    follow = torch.multinomial(odds, VOCABULARY * 4, True, generator=torch.Generator().manual_seed(1)).view(-1, 4).to(device)
    generator = torch.Generator(device).manual_seed(1000 + seed)
    shape = (count, LENGTH + 1)

    def draws(weights):
        return torch.multinomial(weights.float().to(device), count * (LENGTH + 1), True, generator=generator).view(shape)

    free, which = draws(odds), draws(torch.tensor([8, 4, 2, 1]))
    jump = torch.rand(shape, generator=generator, device=device) < 0.1
    tokens = [free[:, 0]]
    for place in range(1, LENGTH + 1):
        tokens.append(torch.where(jump[:, place], free[:, place], follow[tokens[-1], which[:, place]]))
    return torch.stack(tokens, 1)


def train(seed, steps, device):
    """Returns the losses, the median milliseconds of a step and the number of parameters."""
    torch.manual_seed(seed)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 6e-4, fused=True)
    losses, times = [], []
    for batch in sentences(steps * BATCH, seed, device).split(BATCH):
        begin = time.perf_counter()
        loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(1e3 * (time.perf_counter() - begin))
    return {"seed": seed, "losses": losses, "milliseconds": statistics.median(times[WARM:]),
            "parameters": sum(weight.numel() for weight in model.parameters())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="example: train_gpt.py --output stock.json")
    parser.add_argument("--enable", action="store_true", help="under kintsugi.torch.enable()")
    parser.add_argument("--seeds", default="0", help="of weights and sentences, with commas [0]")
    parser.add_argument("--steps", type=int, default=200, help="steps of a training [200]")
    parser.add_argument("--output", required=True, help="file for the results, JSON")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    context = contextlib.nullcontext()
    if arguments.enable:
        import kintsugi.torch
        context = kintsugi.torch.enable()
    document = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "runs": []}
    with context:
        for seed in map(int, arguments.seeds.split(",")):
            found = train(seed, arguments.steps, torch.device("cuda"))
            document["runs"].append(found)
            print(f"seed {seed}, {found['parameters'] / 1e6:.1f} million parameters: {found['milliseconds']:.2f} ms a step, loss "
                  f"{found['losses'][0]:.4f} -> {statistics.mean(found['losses'][-20:]):.5f} (last 20)", flush=True)
    if arguments.enable:
        document["statistics"] = kintsugi.torch.statistics()
        print(document["statistics"])
    with open(arguments.output, "w") as file:
        json.dump(document, file)


if __name__ == "__main__":
    main()
