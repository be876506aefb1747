"""Operands and results of numpy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from kintsugi import _namespace, _torch
from kintsugi._arrays import as_array, common_type


def common_operands(*given: Any, dtype: Any = None) -> list[Any]:
    """Returns the operands as arrays of one library and type: dtype, or the one that numpy promotes their types to,
    where integers alone become float64.

    Raises:
        TypeError: an element type that is not multiplied, complex operands of a real dtype, or arrays of numpy beside
            CuPy's.
        ValueError: integers beyond 2**53.
    """
    library = _namespace.namespace(*given)
    if any(_torch.is_tensor(x) for x in given) or (library is not np and any(isinstance(x, np.ndarray) for x in given)):
        raise TypeError("kintsugi.numpy takes arrays of numpy, or of CuPy: kintsugi.matmul() takes tensors of torch, "
                        "tensor.numpy() and cupy.asarray() convert")
    arrays = [x if _namespace.is_cupy(x) else as_array(x, f"operand {i + 1}") for i, x in enumerate(given)]
    # Python's numbers adapt to the type of the other operands.
    kinds = [x if isinstance(x, (int, float, complex)) else array.dtype for x, array in zip(given, arrays)]
    if dtype is None:
        common = common_type(kinds, "an operand", None if library is not np else arrays)
    else:
        common = common_type([np.dtype(dtype)], "dtype")
        if not np.can_cast(np.result_type(*kinds), common, "same_kind"):
            raise TypeError(f"the operands are {np.result_type(*kinds)}, which does not become dtype = {common}")
    return [library.asarray(x, common) for x in arrays]


def store(result: Any, out: Any) -> Any:
    """Returns the result, in `out` if that is given.

    Raises:
        ValueError, TypeError: an out of another shape, or of a type that cannot have the result.
    """
    if out is None:
        return result
    if tuple(out.shape) != np.shape(result):
        raise ValueError(f"out has the shape {tuple(out.shape)}, and the result {np.shape(result)}")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(f"out is {out.dtype}, and the result {result.dtype}")
    out[...] = result
    return out
