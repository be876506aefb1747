"""The few functions of arrays whose names differ between numpy, CuPy and torch."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

import numpy as np

from kintsugi import _torch
from kintsugi._arrays import as_array, common_type


def is_cupy(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "cupy" and hasattr(x, "__cuda_array_interface__")


def namespace(*arrays: Any) -> Any:
    """Returns the module torch, cupy or numpy, whose functions take these arrays."""
    for x in arrays:
        if _torch.is_tensor(x):
            return sys.modules["torch"]
        if is_cupy(x):
            return importlib.import_module("cupy")
    return np


def as_operand(x: Any, name: str) -> Any:
    """Returns x as an array of CuPy, a tensor of torch, or else an array of numpy, of a type that is multiplied.
    Integers of numpy become float64.

    Raises:
        TypeError: a type that is not multiplied.
        ValueError: integers beyond 2**53.
    """
    x = _torch.as_stored(x, name) if _torch.is_tensor(x) else x if is_cupy(x) else as_array(x, name)
    return converted(x, common_type([dtype_of(x)], name, [x] if isinstance(x, np.ndarray) else None))


def dtype_of(x: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = _torch.dtype_of(x) if _torch.is_tensor(x) else x.dtype
    return dtype


def converted(x: Any, dtype: np.dtype[Any]) -> Any:
    """Returns x in another type; x itself if it has that type."""
    return x.to(getattr(sys.modules["torch"], dtype.name)) if _torch.is_tensor(x) else x.astype(dtype, copy=False)


def ones(example: Any, count: int) -> Any:
    """Returns a vector of ones of the example's library, type and device."""
    return example.new_ones(count) if _torch.is_tensor(example) else namespace(example).ones(count, example.dtype)


def as_like(array: np.ndarray[Any, Any], example: Any) -> Any:
    """Returns an array of numpy as one of the example's library, on its device."""
    if _torch.is_tensor(example):
        return sys.modules["torch"].as_tensor(array, device=example.device)
    return namespace(example).asarray(array)


def on_host(x: Any) -> np.ndarray[Any, Any]:
    """Returns x as an array of numpy."""
    array: np.ndarray[Any, Any] = x.cpu().numpy() if _torch.is_tensor(x) else x.get() if is_cupy(x) else np.asarray(x)
    return array


def joined(arrays: list[Any], axis: int) -> Any:
    return namespace(*arrays).concatenate(arrays, axis=axis)


def copy_of(x: Any) -> Any:
    return x.clone() if _torch.is_tensor(x) else x.copy()


def permuted(x: Any, axes: list[int]) -> Any:
    return x.permute(axes) if _torch.is_tensor(x) else x.transpose(axes)


def largest(x: Any) -> Any:
    """Returns the largest element along the last axis, which is not empty; NaN where one is."""
    return x.amax(-1) if _torch.is_tensor(x) else x.max(axis=-1)


def parts(x: Any) -> Any:
    """Returns complex numbers (...) as real ones (..., 2)."""
    if _torch.is_tensor(x):
        return sys.modules["torch"].view_as_real(x)
    real = np.dtype(x.dtype.char.lower())
    return namespace(x).ascontiguousarray(x).view(real).reshape(x.shape + (2,))


def of_parts(x: Any) -> Any:
    """Returns real numbers (..., 2) as complex ones (...)."""
    if _torch.is_tensor(x):
        return sys.modules["torch"].view_as_complex(x.contiguous())
    return namespace(x).ascontiguousarray(x).view(np.dtype(x.dtype.char.upper())).reshape(x.shape[:-1])


def reduced_last(x: Any, axis: int | tuple[int, ...] | None) -> tuple[Any, tuple[int, ...]]:
    """Returns the array with the axes that a reduction over `axis` reduces flattened into a last one, and the shape
    that the result has with keepdims.

    Raises:
        ValueError: an axis that x does not have, or twice. (numpy.AxisError, which is one.)
    """
    if axis is None:
        axes: tuple[int, ...] = tuple(range(x.ndim))
    else:
        axes = tuple(_axis(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
        if len(set(axes)) != len(axes):
            raise ValueError(f"axis = {axis} has an axis twice")
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = tuple(x.shape)
    flat = permuted(x, kept + list(axes)).reshape(tuple(shape[a] for a in kept) + (math.prod(shape[a] for a in axes),))
    return flat, tuple(1 if a in axes else shape[a] for a in range(x.ndim))


def _axis(axis: int, dimensions: int) -> int:
    if not -dimensions <= axis < dimensions:
        raise ValueError(f"axis = {axis}, and the array has {dimensions} dimensions")
    return axis % dimensions
