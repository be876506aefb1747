"""Prepared operands. They are split once and may be multiplied any number of times."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Literal

import numpy as np

from kintsugi import _abi, _device_calls, _torch
from kintsugi._abi import library, this_thread
from kintsugi._arrays import TYPES, Matrices, as_array, blas_matrices, common_type, readable
from kintsugi._calls import Call
from kintsugi._operands import Prepared
from kintsugi._options import errors_of, make_options, make_plan
from kintsugi._tensors import Tensors, common_tensors, geometry


def _read(source: Any, array: np.ndarray, dtype: np.dtype, tensors: Tensors | None) -> tuple[Matrices, Any]:
    """Returns the operand's matrices, and an object that must live until the matrices have been read. The array is not
    copied if BLAS can address it (it may be transposed) and its batch items are equally spaced."""
    matrices = _device_calls.strided(array, dtype)
    if matrices is not None:
        return matrices, source
    if tensors is None:
        return readable(np.ascontiguousarray(array), dtype), source
    copy = tensors.copy_of(source, array.shape, array.shape, dtype)
    return blas_matrices(geometry(copy)), copy


def _problem(side: str, shape: tuple[int, ...], dtype: np.dtype, matrices: Matrices, memory: int) -> _abi.Problem:
    """Returns a problem with this operand and a vector, since preparation does not depend on the other operand."""
    rows, columns = shape[-2:]
    m, n, k = (rows, 1, columns) if side == "a" else (1, columns, rows)
    kind = TYPES[dtype]
    problem = _abi.Problem(struct_size=ctypes.sizeof(_abi.Problem), m=m, n=n, k=k, lda=max(k, 1), ldb=1, ldc=max(n, 1),
                           batch_count=matrices.offsets.size, type_a=kind, type_b=kind, type_c=kind, type_scalar=kind,
                           stride_c=max(m * n, 1), layout=_abi.ROW_MAJOR, memory=memory)
    op = _abi.OP_N if matrices.row_major else _abi.OP_T
    for name, value in (("op", op), ("stride", matrices.uniform_stride()), ("prepared", 1)):
        setattr(problem, f"{name}_{side}", value)
    setattr(problem, f"ld{side}", matrices.ld)
    return problem


def prepare(x: Any, *, side: Literal["a", "b"], accuracy: str | float | None = None, scheme: str | None = None,
            engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None,
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
    x = _torch.as_stored(x, side)
    tensors = common_tensors({side: x})
    source = as_array(x, side) if tensors is None else tensors.adopt(x)
    array = source if tensors is None else geometry(source)
    if array.ndim < 2:
        raise ValueError(f"{side} has the shape {array.shape}; a matrix has two dimensions")
    dtype = common_type([array.dtype])
    matrices, _alive = _read(source, array, dtype, tensors)
    memory = (Call if tensors is None else _device_calls.DeviceCall).memory
    problem = _problem(side, array.shape, dtype, matrices, memory)
    options = make_options(accuracy, scheme, engine, policy, threads, None)
    if tensors is not None:
        options.queue = _device_calls.on_stream(tensors)
    with contextlib.nullcontext() if tensors is None else tensors.current():
        allocator = None if tensors is None else tensors.make_allocator()
        plan = make_plan(problem, options, allocator)
        with errors_of(allocator):
            owned = _abi.Owned(library.kintsugi_prepared_destroy, library.kintsugi_prepare, this_thread.handle.pointer,
                               plan.pointer, 0 if side == "a" else 1, ctypes.c_void_p(matrices.address),
                               uses=allocator)
    return Prepared(side, array.shape, dtype, tensors is not None, (accuracy, scheme, engine), owned)
