"""Products of numpy arrays, and of tensors on a CUDA device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kintsugi import _accuracy, _core, _torch
from kintsugi._accuracy import Accuracy, Policy
from kintsugi._products import PairProduct, make_product, pair_scalar


def matmul(a: Any, b: Any, *, accuracy: Accuracy | None = None, scheme: str | None = None,
           engine: str | None = None, policy: Policy | None = None, alpha: Any = 1,
           beta: Any = 0, out: Any = None, threads: int | None = None, workspace_limit: int | str | None = None) -> Any:
    """Returns alpha * a @ b + beta * out.

    Args:
        a: (..., m, k), or (k,) for one row; on the CPU an array, a nested list, a tensor of torch, whatever has
            DLPack, or a Prepared; or all operands are on one CUDA device: tensors of torch or CuPy, in whose current
            stream the product is put, or arrays of any library with DLPack, of which it is complete when this returns.
        b: (..., k, n), or (k,) for one column. Leading dimensions are a batch and broadcast as numpy's.
        accuracy: "fp32", "fp64", "dd", "exact", "reproducible" or a tolerance such as 1e-10, relative to
            (|a| @ |b|); None: that of accuracy(), else the type's own.
        scheme: a name of schemes(), with parameters as in "ozaki2:moduli=20". It is an error if that scheme cannot run
            here, or cannot give an accuracy that is set too.
        engine: a name of engines(); None: the fastest.
        policy: "auto", "emulate" or "native".
        alpha, beta: numbers of the operands' type.
        out: where the result goes, (..., m, n) of the operands' type; needed where beta is not 0.
        threads: 0 or None: as many as OpenMP offers.
        workspace_limit: at most this many bytes of workspace, a number or a text such as "1G". C is then computed in
            smaller blocks, with the same bits.

    Returns:
        The result, (..., m, n) without the dimension that a vector does not have; out itself where it was given.
        For tensors and arrays with DLPack it is one of the same library, or a DeviceArray (with __dlpack__) if that
        library takes none; on the CPU one of torch if a or b is, and for subclasses of numpy's array what numpy returns.
        Inputs whose rows or columns have unit stride (C or Fortran order, transposes,
        slices of them) are not copied; lazy conjugates and negatives of torch are. Where a tensor of torch requires a gradient,
        so does the result; the gradient's products have the same options.

    Raises:
        KintsugiError: what the library refuses, with its message; out is untouched.
        TypeError: an element type that it does not multiply, a masked array, a class with products of its own (a DataFrame);
            an out or a prepared operand beside a tensor that requires a gradient.
        ValueError: shapes that do not fit, or an out that cannot take the result.

    Warns:
        MissingEngineWarning: once a process, where there is no BLAS for the engine "cpu".
    """
    if _accuracy.current() is not None:
        accuracy, policy = _accuracy.chosen(accuracy, scheme, policy)
    result = _core.matmul(a, b, alpha, beta, out, accuracy, scheme, engine, policy, threads, workspace_limit)
    if result is not NotImplemented:
        return result
    if _torch.needs_operator(a) or _torch.needs_operator(b):
        from kintsugi._torch_ops import matmul_by_operator  # imports torch
        return matmul_by_operator(a, b, alpha, beta, out, accuracy, scheme=scheme, engine=engine, policy=policy,
                                  threads=threads, workspace_limit=workspace_limit)
    product = make_product(a, b, alpha, beta, out)  # an operand must be converted, or refused
    with product.current():
        result = product.run(product.plan(accuracy, scheme, engine, policy, threads, workspace_limit))
    return result if out is None else _torch.give_back(out, result)


def matmul_grouped(a: Sequence[Any], b: Sequence[Any], *, accuracy: Accuracy | None = None, scheme: str | None = None,
                   engine: str | None = None, policy: Policy | None = None, alpha: Any = 1, beta: Any = 0,
                   out: Sequence[Any] | None = None, threads: int | None = None,
                   workspace_limit: int | str | None = None) -> list[Any]:
    """Returns [alpha * x @ y + beta * z for x, y, z in zip(a, b, out)], products of different shapes. On a GPU one launch
    computes float32 products where that is quicker, as those of a layer of experts.

    Args:
        a, b, out: sequences of equal length, whose elements are those of matmul(); all on the CPU or all on one device,
            of one library. No element may require a gradient. No out may overlap another one or an operand.
        alpha, beta: numbers of all products.
        accuracy, scheme, engine, policy, threads, workspace_limit: as of matmul().

    Returns:
        A list of the results, each as matmul() returns it.

    Raises:
        KintsugiError: what the library refuses. TypeError, ValueError: as matmul(), or sequences of different lengths. The
            message names the group.
    """
    accuracy, policy = _accuracy.chosen(accuracy, scheme, policy)
    outs = [None] * len(a) if out is None else list(out)
    if not len(a) == len(b) == len(outs):
        raise ValueError(f"a has {len(a)} operands, b {len(b)} and out {len(outs)}")
    for i, x in enumerate([*a, *b]):
        if _torch.needs_operator(x):
            raise TypeError(f"{'ab'[i // len(a)]}[{i % len(a)}] requires a gradient: multiply it by matmul()")
    products = []
    for i, operands in enumerate(zip(a, b, outs)):
        try:
            products.append(make_product(*operands[:2], alpha, beta, operands[2]))
        except (TypeError, ValueError) as error:
            raise type(error)(f"group {i}: {error}") from error
    if not products:
        return []
    for i, product in enumerate(products):
        if product.place() != products[0].place():
            raise ValueError(f"the operands of group {i} are on {product.place()}, those of group 0 on {products[0].place()}")
    with products[0].current():
        _core.run_groups([product.group() for product in products],
                         (accuracy, scheme, engine, policy, threads, workspace_limit), products[0]._stream())
        results = [product._finish() for product in products]
    return [x if z is None else _torch.give_back(z, x) for z, x in zip(outs, results)]


def matmul_stored(a: Any, b: Any, *, accuracy: str | None = None, scheme: str | None = None, engine: str | None = None,
                  policy: str | None = None, alpha: Any = 1, beta: Any = 0, out: Any = None, threads: int | None = None,
                  workspace_limit: str | None = None) -> Any:
    """Returns matmul() for the kernel of an operator, which has dealt with gradients, tangents and vmap."""
    result = _core.matmul(a, b, alpha, beta, out, accuracy, scheme, engine, policy, threads, workspace_limit)
    if result is not NotImplemented:
        return result
    product = make_product(a, b, alpha, beta, out)
    with product.current():
        result = product.run(product.plan(accuracy, scheme, engine, policy, threads, workspace_limit))
    return result if out is None else _torch.give_back(out, result)


def matmul_dd(a: Any, b: Any, *, accuracy: Accuracy | None = None, scheme: str | None = None,
              engine: str | None = None, policy: Policy | None = None, alpha: Any = 1,
              beta: Any = 0, out: Any = None, threads: int | None = None,
              workspace_limit: int | str | None = None) -> Any:
    """Returns alpha * a @ b + beta * out of double-double numbers, which have some 106 significant bits in two float64
    words.

    Args:
        a: (..., m, k, 2) or (k, 2) of float64, on the CPU: hi and lo of every number along the last axis. Any two
            finite words count as their sum. Where hi and lo stand beside each other, what matmul does not copy is not
            copied.
        b: (..., k, n, 2) or (k, 2).
        accuracy: "dd", "exact" or a tolerance such as 1e-25, relative to (|a| @ |b|); None: "dd".
        alpha, beta: numbers, or pairs (hi, lo).
        out: (..., m, n, 2) of float64 for the result; needed where beta is not 0.
        scheme, engine, policy, threads, workspace_limit: as of matmul().

    Returns:
        (..., m, n, 2): hi, the number rounded to float64, and lo, what that leaves; out itself where it was given. A
        tensor of torch where a or b is one.

    Raises:
        KintsugiError, TypeError, ValueError: as matmul().
    """
    accuracy, policy = _accuracy.chosen(accuracy, scheme, policy)
    product = PairProduct(_torch.as_stored(a, "a"), _torch.as_stored(b, "b"), pair_scalar(alpha, "alpha"),
                          pair_scalar(beta, "beta"), _torch.as_stored(out, "out"))
    result = product.run(product.plan(accuracy, scheme, engine, policy, threads, workspace_limit))
    return result if out is None else _torch.give_back(out, result)
