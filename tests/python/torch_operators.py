"""Errors of torch's own operators under kintsugi.torch.enable(), over torch's database of operators and samples:

    python3 tests/python/torch_operators.py [--device cuda] [--accuracy exact] [--operators matmul,einsum] [--samples 20]
                                            [--jobs 8]

The criterion: with a unit of eps(type) times the largest magnitude of the reference, the error of every result and of
every gradient is at most 3 times torch's own error plus 8 units. The reference is torch's result in float64 or
complex128 of the same inputs. For these types there is no wider one: torch's result is the reference, and as torch's
own error counts the largest change of its result when the inputs change by an eps, of three random changes. Where
that is infinite, since the reference is 0, the result is counted as not judged.

Only samples that call a routed operator count. Prints a line for every operator and type, and all violations; the exit
status is 1 if there is one. It needs torch with its testing modules (expecttest).
"""

import argparse
import concurrent.futures
import multiprocessing
import sys
import warnings

import kintsugi.torch
import torch
from torch.utils._pytree import tree_leaves, tree_map

WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128, torch.float64: torch.float64,
         torch.complex128: torch.complex128}


def operators(names):
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if names is None or op.name in names]


def in_type(sample, dtype):
    """Returns (input, args, kwargs) of a sample with fresh leaves, its floating-point tensors in a type."""

    def convert(x):
        if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
            return x
        if x.is_floating_point() or x.is_complex():
            wide = dtype.to_complex() if x.is_complex() else dtype.to_real()
            return x.detach().clone().to(wide).requires_grad_(x.requires_grad)
        return x.detach().clone()

    return tree_map(convert, (sample.input, sample.args, sample.kwargs))


def run(op, given):
    """Returns the floating-point results of the operator, and the gradients of its inputs."""
    torch.manual_seed(1)
    x, args, kwargs = given
    results = [y for y in tree_leaves(op(x, *args, **kwargs)) if isinstance(y, torch.Tensor) and
               (y.is_floating_point() or y.is_complex())]
    leaves = [y for y in tree_leaves(given) if isinstance(y, torch.Tensor) and y.requires_grad]
    outputs = [y for y in results if y.requires_grad]
    gradients = []
    if leaves and outputs:
        torch.manual_seed(2)
        seeds = [torch.randn_like(y, dtype=WIDER.get(y.dtype)).to(y.dtype) for y in outputs]
        gradients = torch.autograd.grad(outputs, leaves, seeds, allow_unused=True)
    return [y.detach() for y in results] + [y for y in gradients if y is not None]


def changed(given, dtype, seed):
    """Returns the inputs with every number changed by at most an eps."""
    generator = torch.Generator().manual_seed(seed)

    def change(x):
        if not isinstance(x, torch.Tensor) or not (x.is_floating_point() or x.is_complex()):
            return x
        random = torch.rand(x.shape, dtype=torch.float64, generator=generator).to(x.device)
        factor = 1 + torch.finfo(dtype).eps * (2 * random - 1)
        return (x.detach() * factor).to(x.dtype).requires_grad_(x.requires_grad)

    return tree_map(change, given)


def units(value, reference, dtype):
    """Returns the largest error in units; 0 where both are no numbers."""
    if value.numel() == 0:
        return 0.0
    wide = torch.complex128 if reference.is_complex() else torch.float64
    value, reference = value.to(wide), reference.to(wide)
    finite = torch.isfinite(reference) & torch.isfinite(value)
    if not torch.equal(torch.isfinite(reference), torch.isfinite(value)):
        return float("inf")
    scale = reference[finite].abs().max().item() if finite.any() else 0.0
    error = (value - reference)[finite].abs().max().item() if finite.any() else 0.0
    return 0.0 if error == 0 else error / (torch.finfo(dtype).eps * scale) if scale > 0 else float("inf")


def check(op, dtype, device, most, accuracy, bad, unjudged):
    """Returns (samples that were routed, routed products, worst of torch's errors, worst error under enable())."""
    samples = routed = 0
    worst_stock = worst = 0.0
    requires_grad = dtype in op.supported_backward_dtypes(device) and op.supports_autograd
    for number, sample in enumerate(op.sample_inputs(device, dtype, requires_grad=requires_grad)):
        if number >= most:
            break
        try:
            stock = run(op, in_type(sample, dtype))
            if WIDER[dtype] == dtype:
                reference = stock
                own = [run(op, changed(in_type(sample, dtype), dtype, seed)) for seed in range(3)]
            else:
                reference, own = run(op, in_type(sample, WIDER[dtype])), [stock]
        except Exception:  # a sample that the operator does not take as it is
            continue
        kintsugi.torch.statistics(reset=True)
        with kintsugi.torch.enable(accuracy):
            ours = run(op, in_type(sample, dtype))
        count = sum(entry["routed"] for entry in kintsugi.torch.statistics().values())
        if count == 0:
            continue
        samples, routed = samples + 1, routed + count
        for place, (x, y, z) in enumerate(zip(stock, ours, reference)):
            before, after = max(units(found[place], z, dtype) for found in own), units(y, z, dtype)
            if before == float("inf"):
                unjudged.append(place)
                continue
            worst_stock, worst = max(worst_stock, before), max(worst, after)
            if not after <= 3 * before + 8 or y.dtype != x.dtype or y.shape != x.shape:
                moved = max(units(run(op, changed(in_type(sample, dtype), dtype, seed))[place], z, dtype)
                            for seed in range(5))
                bad.append(f"{op.name}.{op.variant_test_name} {dtype} sample {number}, result {place}: {after:.3g} "
                           f"units, torch {before:.3g}, and {moved:.3g} of inputs changed by an eps")
    return samples, routed, worst_stock, worst


def check_all_types(task):
    """task: the number of an operator, and the program's options. Returns (lines, totals, violations, results not judged)."""
    number, options = task
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    op = operators(options.operators)[number]
    lines, total, bad, unjudged = [], [0, 0, 0], [], []
    for dtype in WIDER:
        if dtype not in op.supported_dtypes(options.device):
            continue
        try:
            samples, routed, stock, ours = check(op, dtype, options.device, options.samples, options.accuracy, bad, unjudged)
        except Exception as error:
            bad.append(f"{op.name}.{op.variant_test_name} {dtype}: {error!r}")
            continue
        if samples > 0:
            lines.append(f"{op.name + '.' + op.variant_test_name:45} {str(dtype):16} {samples:4} samples {routed:6} routed, "
                         f"units: torch {stock:.3g}, kintsugi {ours:.3g}")
            total = [total[0] + 1, total[1] + samples, total[2] + routed]
    return lines, total, bad, unjudged


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accuracy")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--operators", type=lambda text: text.split(","))
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    bad, unjudged, total = [], [], [0, 0, 0]
    tasks = [(number, options) for number in range(len(operators(options.operators)))]
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for done in concurrent.futures.as_completed([pool.submit(check_all_types, task) for task in tasks]):
            lines, found, wrong, left = done.result()
            if lines:
                print("\n".join(lines), flush=True)
            total = [x + y for x, y in zip(total, found)]
            bad, unjudged = bad + wrong, unjudged + left
    print(f"{total[0]} operators and types, {total[1]} samples, {total[2]} routed products, {len(unjudged)} results "
          f"not judged, {len(bad)} violations")
    print("\n".join(bad))
    return 1 if bad or total[2] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
