"""Arrays as the C ABI takes them: element types, strides, batches."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np

from kintsugi import _torch

# kintsugi_type of each element type; the library itself says which of them it multiplies.
TYPES = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.complex64): 2, np.dtype(np.complex128): 3}
# Type of pairs, which numpy has no type for (matmul_dd).
DOUBLE_DOUBLE = 4


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


@dataclasses.dataclass
class Matrices:
    """A batch of matrices as a BLAS call takes them: unit stride along rows or columns."""

    array: np.ndarray  # (..., rows, columns); this reference keeps the memory alive
    row_major: bool  # elements of a row are adjacent
    ld: int  # leading dimension, in elements
    offsets: np.ndarray  # offsets of the batch items, in bytes

    @property
    def address(self) -> int:
        return self.array.ctypes.data

    def uniform_stride(self) -> int | None:
        """Returns the distance between batch items, in elements; None if the distances differ or are negative."""
        steps = np.diff(self.offsets)
        if steps.size == 0:
            return 0
        is_uniform = (steps == steps[0]).all() and steps[0] >= 0 and steps[0] % self.array.itemsize == 0
        return int(steps[0]) // self.array.itemsize if is_uniform else None

    def pointers(self) -> ctypes.Array:
        """Returns the addresses of the batch items."""
        return (ctypes.c_void_p * self.offsets.size)(*(self.address + int(offset) for offset in self.offsets))


def _leading_dimension(element_stride: int, line_stride: int, lines: int, length: int, itemsize: int) -> int | None:
    """Returns the leading dimension, in elements, of `lines` lines with `length` elements each. Returns None if BLAS cannot
    address them, because a line is not contiguous or lines overlap. Strides are in bytes."""
    if length > 1 and element_stride != itemsize:
        return None
    if lines == 1:
        return length
    return line_stride // itemsize if line_stride % itemsize == 0 and line_stride >= length * itemsize else None


def blas_matrices(array: np.ndarray, prefer_row_major: bool = True) -> Matrices | None:
    """Returns the array (..., rows, columns) as it lies in memory; None if BLAS cannot address it."""
    rows, columns = array.shape[-2:]
    if array.size == 0:  # nothing is read or written, and numpy's strides mean nothing
        items = np.arange(int(np.prod(array.shape[:-2])), dtype=np.int64)
        return Matrices(array, True, max(columns, 1), items * max(rows * columns, 1) * array.itemsize)
    row_stride, column_stride = array.strides[-2:]
    ld_of_rows = _leading_dimension(column_stride, row_stride, rows, columns, array.itemsize)
    ld_of_columns = _leading_dimension(row_stride, column_stride, columns, rows, array.itemsize)
    if not array.flags.aligned or not array.dtype.isnative or (ld_of_rows is None and ld_of_columns is None):
        return None
    row_major = ld_of_rows is not None and (prefer_row_major or ld_of_columns is None)
    offsets = np.zeros(1, dtype=np.int64)
    for length, stride in zip(array.shape[:-2], array.strides[:-2]):
        offsets = np.add.outer(offsets, stride * np.arange(length, dtype=np.int64)).ravel()
    return Matrices(array, row_major, ld_of_rows if row_major else ld_of_columns, offsets)


def readable(array: np.ndarray, dtype: np.dtype) -> Matrices:
    """Returns the matrices of the array in a type, for reading. They are a copy if BLAS cannot address the array."""
    array = array.astype(dtype, copy=False)
    return blas_matrices(array) or blas_matrices(np.array(array, order="C", copy=True))
