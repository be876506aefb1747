"""Operands of a call: arrays, prepared operands, and the scalars alpha and beta."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from kintsugi import _abi, _torch
from kintsugi._arrays import refuse_masked


class Prepared:
    """One operand, split once for any number of products; made by prepare().

    Attributes:
        side: "a" or "b", the side that it may stand on.
        shape: of the array that it was made of, (..., rows, columns).
        dtype: of its elements.
        on_device: True if it was made of a tensor on a CUDA device; it is then for products of such tensors.
    """

    def __init__(self, side: str, shape: tuple[int, ...], dtype: np.dtype, on_device: bool,
                 prepared_for: tuple[Any, ...], owned: _abi.Owned):
        self.side = side
        self.shape = shape
        self.dtype = dtype
        self.on_device = on_device
        self._prepared_for = prepared_for  # accuracy, scheme and engine
        self._owned = owned

    def __repr__(self) -> str:
        return f"<kintsugi operand {self.side}, shape {self.shape}, {self.dtype}>"


class Operand:
    """A or B of a call: an array of two dimensions or more, or a prepared operand. read(given, side) returns an array, or
    the geometry of a tensor."""

    def __init__(self, given: Any, side: str, read: Callable[[Any, str], np.ndarray]):
        self.given = given
        self.prepared = given if isinstance(given, Prepared) else None
        if self.prepared is not None and self.prepared.side != side:
            raise ValueError(f"an operand prepared as {self.prepared.side} is given as {side}")
        self.array = None if self.prepared is not None else read(given, side)
        self.is_vector = self.prepared is None and self.array.ndim == 1
        if self.prepared is None and self.array.ndim == 0:
            raise ValueError(f"{side} has no dimensions; a matrix has two")
        if self.is_vector:
            self.array = self.array[np.newaxis, :] if side == "a" else self.array[:, np.newaxis]
        self.shape = given.shape if self.prepared is not None else self.array.shape
        self.dtype = given.dtype if self.prepared is not None else self.array.dtype

    def check_prepared(self, batch: tuple[int, ...], dtype: np.dtype, on_device: bool) -> None:
        """Raises ValueError unless the prepared operand fits a product of this batch, type and memory."""
        side = self.prepared.side
        if self.dtype != dtype:
            raise ValueError(f"{side} was prepared as {self.dtype} and the product is one of {dtype}; prepare "
                             f"{side}.astype({dtype}), or give the other operand as {self.dtype}")
        if self.shape[:-2] not in ((), batch):
            raise ValueError(f"{side} was prepared with the batch {self.shape[:-2]} and the product has the batch {batch}; "
                             "a prepared operand has that one or none")
        if self.prepared.on_device != on_device:
            memory, other_memory = ("a device", "on the CPU") if self.prepared.on_device else ("the CPU", "on a device")
            raise ValueError(f"{side} was prepared on {memory} and the other operand is {other_memory}")

    def broadcast(self, batch: tuple[int, ...]) -> np.ndarray:
        return np.broadcast_to(self.array, batch + self.shape[-2:])


def make_scalar(value: Any, name: str, dtype: np.dtype) -> np.ndarray:
    """Returns alpha or beta in the type of the product."""
    refuse_masked(value, name)
    given = np.asarray(_torch.as_stored(value, name))
    if given.shape != () or given.dtype.kind not in "biufc":
        raise TypeError(f"{name} = {value!r} is no number")
    if given.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"{name} = {value!r} is complex and the product is {dtype}")
    with np.errstate(over="ignore"):
        scalar = np.array(given, dtype=dtype)
    if np.isfinite(given) and not np.isfinite(scalar):
        raise ValueError(f"{name} = {value!r} is beyond {dtype}")
    return scalar
