"""Arrays as the library reads them: element types, memory, strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from kintsugi import _core, _torch

# Element types that are multiplied, in the order of kintsugi_type.
TYPES = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex64), np.dtype(np.complex128)]


def refuse_masked(x: Any, name: str) -> None:
    """Raises TypeError for a masked array, and for lists that contain one: its memory has numbers below the mask, which
    would be multiplied like all others."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array and kintsugi multiplies every element: give {name}.filled(0), which "
                        f"has 0 for those that are masked, or {name}.data, which ignores the mask")
    if isinstance(x, (list, tuple)) and x and isinstance(x[0], (list, tuple, np.ndarray)):
        for item in x:
            refuse_masked(item, f"an item of {name}")


def as_array(x: Any, name: str) -> np.ndarray:
    """Returns x as an array, without a copy where possible. x is an array, a stored tensor of torch, an object with DLPack
    on the CPU, or a nested list. Raises TypeError for masked arrays."""
    refuse_masked(x, name)
    if isinstance(x, np.ndarray):
        return x
    if _torch.is_tensor(x):
        return _torch.as_array(x, name)
    if hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} is a {type(x).__name__}, which is no array of numbers")
    return array


def common_type(dtypes: list[np.dtype]) -> np.dtype:
    """Returns the type in which a product of operands of these types is computed."""
    dtype = np.result_type(*dtypes).newbyteorder("=")
    if dtype not in TYPES:
        names = ", ".join(str(kind) for kind in TYPES)
        raise TypeError(f"kintsugi multiplies {names}; the operands are {', '.join(str(kind) for kind in dtypes)}")
    return dtype


def check_writable(out: np.ndarray) -> None:
    """Raises ValueError if the array is read-only, or if two of its elements may share memory. Elements share no memory if
    every stride is at least as large as the memory that the dimensions with smaller strides span. This test also refuses
    some valid interleaved views, which only as_strided makes."""
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    reach = out.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(out.strides, out.shape) if length > 1):
        if stride < reach and out.size > 0:
            raise ValueError(f"elements of out share memory: its shape is {out.shape} and its strides {out.strides} bytes")
        reach += stride * (length - 1)


def readable(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns the array (..., rows, columns) in a type, for reading. It is a copy if BLAS cannot address the array."""
    array = array.astype(dtype, copy=False)
    return array if _core.batch_kind(array) is not None else np.array(array, order="C", copy=True)


def strided(array: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Returns the array. Returns None if it has another type, if BLAS cannot address it, or if its batch items are not
    equally spaced."""
    return array if array.dtype == dtype and _core.batch_kind(array) == "strided" else None
