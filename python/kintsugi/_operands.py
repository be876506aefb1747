"""Operands of a product: arrays, prepared operands, and the scalars alpha and beta."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Literal

import numpy as np

from kintsugi import _accuracy, _core, _tensors, _torch
from kintsugi._accuracy import Accuracy, Policy
from kintsugi._arrays import as_array, common_type, readable, refuse_own_products, strided
from kintsugi._tensors import Tensors, common_tensors, geometry


class Prepared:
    """One operand, split once for any number of products; made by prepare().

    Attributes:
        side: "a" or "b", the side that it may stand on.
        shape: of the array that it was made of, (..., rows, columns).
        dtype: of its elements.
        on_device: True if it was made of a tensor on a CUDA device; it is then for products of such tensors.

    It never changes, so that a copy is the object itself. It cannot be pickled, nor sent to another process: its slices are
    for this processor or device. Pickle the array, and prepare it where it is used.
    """

    def __init__(self, side: str, shape: tuple[int, ...], dtype: np.dtype, on_device: bool,
                 prepared_for: tuple[Any, ...], prepared: Any, element_type: int):
        self.side = side
        self.shape = shape
        self.dtype = dtype
        self.on_device = on_device
        self._prepared_for = prepared_for  # accuracy, scheme and engine
        self._prepared = prepared  # the library's
        # What _core.matmul() reads of a matrix.
        self._matrix = ((side == "b", on_device, *shape, element_type, prepared, prepared_for) if len(shape) == 2
                        else None)

    def __copy__(self) -> Prepared:
        return self

    def __deepcopy__(self, memo: Any) -> Prepared:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled, nor sent to another process, since its slices are in the library's "
                        "memory: pickle the array, and call kintsugi.prepare() where it is used")

    def __repr__(self) -> str:
        return f"<kintsugi operand {self.side}, shape {self.shape}, {self.dtype}>"


class Operand:
    """A or B of a call: an array of two dimensions or more, or a prepared operand. read(given, side) returns an array, or
    the geometry of a tensor."""

    def __init__(self, given: Any, side: str, read: Callable[[Any, str], Any]):
        self.given = given
        self.prepared: Any = given if isinstance(given, Prepared) else None
        if self.prepared is not None and self.prepared.side != side:
            raise ValueError(f"an operand prepared as {self.prepared.side} is given as {side}")
        array: Any = None if self.prepared is not None else read(given, side)
        self.array = array
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
    refuse_own_products(value, name)
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


def _read(source: Any, array: np.ndarray, dtype: np.dtype, tensors: Tensors | None) -> tuple[np.ndarray, Any]:
    """Returns the operand's array, and an object that must live until the array has been read. The array is not copied if
    BLAS can address it (it may be transposed) and its batch items are equally spaced."""
    found = strided(array, dtype)
    if found is not None:
        return found, source
    if tensors is None:
        return readable(np.ascontiguousarray(array), dtype), source
    copy = tensors.copy_of(source, array.shape, array.shape, dtype)
    return geometry(copy), copy


def prepare(x: Any, *, side: Literal["a", "b"], accuracy: Accuracy | None = None, scheme: str | None = None,
            engine: str | None = None, policy: Policy | None = None,
            threads: int | None = None) -> Prepared:
    """Splits one operand once, for matmul(prepared, b) or matmul(a, prepared) as often as wanted.

    Args:
        x: (..., rows, columns), as matmul takes it. It is copied, and need not be kept.
        side: "a" for the left operand, "b" for the right one.
        accuracy, scheme, engine, policy, threads: those of the products to come. A product with another accuracy,
            scheme or engine has the same bits as without preparation, and may split again. Under "auto" a product with
            the same ones may be emulated that would be native without preparation.

    Raises:
        KintsugiError, TypeError, ValueError: as matmul().
    """
    if side not in ("a", "b"):
        raise ValueError(f"side is {side!r}, neither 'a' nor 'b'")
    accuracy, policy = _accuracy.chosen(accuracy, scheme, policy)
    x = _torch.as_stored(x, side)
    tensors = common_tensors({side: x})
    source: Any = as_array(x, side) if tensors is None else tensors.adopt(x)
    array = source if tensors is None else geometry(source)
    if array.ndim < 2:
        raise ValueError(f"{side} has the shape {array.shape}; a matrix has two dimensions")
    dtype = common_type([array.dtype], side, None if tensors is not None or _torch.is_tensor(x) else [array])
    readable_array, _alive = _read(source, array, dtype, tensors)
    # A problem with this operand and a vector, since preparation does not depend on the other operand.
    *batch, rows, columns = array.shape
    problem = (_core.problem(readable_array, None, np.empty((*batch, rows, 1), dtype), columns) if side == "a" else
               _core.problem(None, readable_array, np.empty((*batch, 1, columns), dtype), rows))
    problem[f"prepared_{side}"] = 1
    stream = allocate = None
    if tensors is not None:
        problem["memory"], stream, allocate = _tensors.MEMORY, tensors.stream(), tensors.allocate
    with contextlib.nullcontext() if tensors is None else tensors.current():
        plan = _core.plan(problem, (accuracy, scheme, engine, policy, threads, None), stream, allocate)
        prepared = _core.prepare(plan, side, readable_array)
    return Prepared(side, array.shape, dtype, tensors is not None, (accuracy, scheme, engine), prepared,
                    problem["type_a"])
