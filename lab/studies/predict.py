#!/usr/bin/env python3
"""Prints the speeds of emulated products that published numbers predict for the papers' cards, beside what the papers
measured. The model is that of src/engines/cuda/arch/predicted.cpp for large squares: every step reaches the share of
the published rate that it reaches on the device of a measured profile.

    lab/studies/predict.py [--n 8192] [--reference nvidia-h200]
"""

import argparse
import json
import pathlib

ARCH = pathlib.Path(__file__).resolve().parents[2] / "src" / "engines" / "cuda" / "arch"
FMA = 5e5  # multiplications with an addition per microsecond of one TFLOP/s
MODULI = 15  # of most FP64 products
OPERAND_INSTRUCTIONS, RESULT_INSTRUCTIONS = 10, 14  # in FP64, of an element; predicted.cpp counts them
# A device that is not NVIDIA's, so that the library has no card of it: AMD CDNA 2 Architecture (white paper).
MI210 = {"names": ["AMD Instinct MI210"], "sm_count": 104, "clock_mhz": 1700, "memory_gb_per_s": 1638,
         "tflops": {"fp32": 22.6, "fp64": 22.6, "fp64_matrix": 45.3, "fp16": 181, "bf16": 181, "int8": 181}}
# Card, what a paper measured there, and where. TFLOP/s of a native product's operations.
PAPERS = [
    ("TITAN RTX", "FP64 0.98 by fp16 slices, cuBLAS 0.54", "DGEMM-TC, abstract"),
    ("Tesla V100-SXM2-16GB", "FP64 1.06 by fp16 slices, cuBLAS 6.76 (PCIe card)", "DGEMM-TC, table 1"),
    ("Tesla T4", "no figure", "H2SGEMM, table 1, on the work of Ma et al."),
    ("NVIDIA A100-SXM4-40GB", "FP32 51 by ootomo, 64.2 by Ma et al.", "H2SGEMM, table 1"),
    ("NVIDIA A100-PCIE-40GB", "FP32 17.7 by cuBLAS, 32.0 by tf32x3, 35.6 by bf16x6, 2.71 times cuBLAS by mixpert",
     "MixPert, table 1 and section 4.2"),
    ("NVIDIA A800-SXM4-80GB", "FP32 1.37 times cuBLAS by legemm", "LE-GEMM, table 6"),
    ("AMD Instinct MI210", "FP32 1.31 times rocBLAS by legemm", "LE-GEMM, table 6"),
    ("NVIDIA GeForce RTX 3090", "FP32 21.7 by cuBLAS, 13.1 by tf32x3, 12.3 by bf16x6, 1.3 times cuBLAS by mixpert",
     "MixPert, table 1 (its peaks are those of an RTX 3080) and section 4.6"),
    ("NVIDIA GeForce RTX 4080", "\"not 4 times cuBLAS\" in FP32 (a 4080 Super)", "study of fp16 emulation"),
    ("NVIDIA GeForce RTX 4090", "no figure", "no paper of the laboratory"),
    ("NVIDIA H100 80GB HBM3", "FP32 3.44 and 2.25 times cuBLAS by mixpert, this project's kernels",
     "log of 2026-11-26, MixPert's figures"),
]


def cards():
    """{name: card} of all names."""
    table = json.loads((ARCH / "cards.json").read_text())["cards"] + [MI210]
    return {name: card for card in table for name in card["names"]}


def fp64_rate(card):
    return max(card["tflops"].get(kind, 0) for kind in ("fp64", "fp64_matrix"))


class Model:
    """Times of n x n x n products in microseconds, by the shares that the device of a profile reaches."""

    def __init__(self, profile):
        self.costs = profile["costs"]
        self.device = cards()[profile["device"]["name"]]

    def scaled(self, cost, card, published):
        """A cost of the profile's device, on a card with other published rates."""
        return self.costs[cost] * published(card) / published(self.device)

    def copy_rate(self, card):
        return self.scaled("call.copy_rate", card, lambda c: c["memory_gb_per_s"])

    def native(self, kind, card, n):
        published = fp64_rate if kind == "f64" else lambda c: c["tflops"]["fp32"]
        return 2 * n ** 3 / self.scaled(f"native.{kind}.vendor_rate", card, published)

    def fp16x3(self, card, n):
        """Splits into two fp16 slices, the multi-term kernel, C."""
        tile = 3 * 256 * 192 * 64  # multiplications of a k-block of the widest tile, on two SMs
        sms = self.device["sm_count"]
        ideal = tile / (2 * self.device["tflops"]["fp16"] * FMA / sms)
        share = ideal / self.costs["multi_term.fp16x3.256x192.block"]
        product = 3 * n ** 3 / (card["tflops"]["fp16"] * FMA * share)
        return product + (2 * n * n * (4 + 2 * 2) + 4 * n * n) / self.copy_rate(card)

    def ozaki2(self, card, n):
        """Splits into residues, int8 products, recombination. None: the card has no int8 unit."""
        if "int8" not in card["tflops"]:
            return None
        tile = 192 * 256 * 128
        ideal = tile / (2 * self.device["tflops"]["int8"] * FMA / self.device["sm_count"])
        share = ideal / self.costs["int8_tile.block"]
        product = MODULI * n ** 3 / (card["tflops"]["int8"] * FMA * share)
        fp64 = card["tflops"]["fp64"] * FMA

        def step(cost, instructions):
            by_memory = self.costs[cost] * MODULI * self.device["memory_gb_per_s"] / card["memory_gb_per_s"]
            return max(by_memory, instructions / fp64)

        return product + 2 * n * n * step("residues.f64.operand_slice", OPERAND_INSTRUCTIONS) + \
            n * n * step("residues.f64.result_slice", RESULT_INSTRUCTIONS)

    def row(self, card, n):
        """TFLOP/s: native FP32, fp16x3, native FP64, ozaki2."""
        times = (self.native("f32", card, n), self.fp16x3(card, n), self.native("f64", card, n), self.ozaki2(card, n))
        return [2e-6 * n ** 3 / time if time else None for time in times]


def table(model, n):
    lines = ["| card | native FP32 | `fp16x3` | native FP64 | `ozaki2`, 15 moduli | measured by papers | where |",
             "|---|---|---|---|---|---|---|"]
    for name, measured, where in PAPERS:
        speeds = ["no int8 unit" if speed is None else f"{speed:.3g}" for speed in model.row(cards()[name], n)]
        lines.append(f"| {name} | {' | '.join(speeds)} | {measured} | {where} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=8192)
    parser.add_argument("--reference", default="nvidia-h200", help="profile of src/engines/cuda/arch/hopper")
    options = parser.parse_args()
    profile = json.loads((ARCH / "hopper" / f"{options.reference}.json").read_text())
    print(table(Model(profile), options.n))


if __name__ == "__main__":
    main()
