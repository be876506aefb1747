"""One product of arrays on the CPU. Makes a problem of the C ABI from the operands, and runs a plan for it."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, ContextManager

import numpy as np

from kintsugi import _abi, _torch
from kintsugi._abi import library, this_thread
from kintsugi._arrays import TYPES, Matrices, as_array, blas_matrices, check_writable, common_type, readable
from kintsugi._operands import Operand, make_scalar
from kintsugi._options import errors_of, make_options, make_plan, warn_once
from kintsugi._tensors import Allocator


def memory_of(out: Any) -> np.ndarray | None:
    """Returns the memory of an array or of a torch tensor as an array; None if `out` is neither."""
    return as_array(out, "out") if isinstance(out, np.ndarray) or _torch.is_tensor(out) else None


class Call:
    """One product of arrays: operands, problem and result, ready to be planned and run. Tensors of torch must be results of
    _torch.as_stored()."""

    memory = _abi.HOST

    def __init__(self, a: Any, b: Any, alpha: Any, beta: Any, out: Any):
        self.a, self.b = self._operand(a, "a"), self._operand(b, "b")
        (m, k), (inner, n) = self.a.shape[-2:], self.b.shape[-2:]
        if k != inner:
            raise ValueError(f"a has the shape {self.a.shape} and b {self.b.shape}: {k} columns meet {inner} rows")
        self.batch = np.broadcast_shapes(self.a.shape[:-2], self.b.shape[:-2])
        self.shape = self.batch + (m, n)
        self.dtype = common_type([self.a.dtype, self.b.dtype])
        self.alpha = make_scalar(alpha, "alpha", self.dtype)
        self.beta = make_scalar(beta, "beta", self.dtype)
        if out is None and self.beta != 0:
            raise ValueError(f"beta = {self.beta} scales the old elements of out, and no out is given")
        self.given_out = out
        self._choose_result(out)
        self.matrices_a, self.matrices_b = self._matrices(self.a), self._matrices(self.b)
        self._describe_problem(m, n, k)

    def make_allocator(self) -> Allocator | None:
        """Returns the allocator for workspaces; None: the library allocates."""
        return None

    def current(self) -> ContextManager[Any]:
        """Returns a context in which the call's device is the current one."""
        return contextlib.nullcontext()

    def _operand(self, given: Any, side: str) -> Operand:
        return Operand(given, side, as_array)

    def _matrices(self, operand: Operand) -> Matrices | None:
        """Returns the operand's matrices; None if it is prepared."""
        if operand.prepared is None:
            return self._read(operand)
        operand.check_prepared(self.batch, self.dtype, self.memory == _abi.DEVICE)
        return None

    def _read(self, operand: Operand) -> Matrices:
        return readable(operand.broadcast(self.batch), self.dtype)

    def _result_shape(self) -> tuple[int, ...]:
        """Returns the shape of the result, without the dimensions that vectors do not have."""
        rows = () if self.a.is_vector else self.shape[-2:-1]
        return self.batch + rows + (() if self.b.is_vector else self.shape[-1:])

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns memory for a result: a tensor of torch if an operand is one, else an array."""
        if any(_torch.is_tensor(operand.given) for operand in (self.a, self.b)):
            return _torch.empty(shape, dtype, "cpu")
        return np.empty(shape, dtype)

    def _new_result(self) -> Any:
        return self._empty(self._result_shape(), self.dtype)

    def _elements(self, out: Any) -> np.ndarray:
        """Returns the array of a result's elements, in its memory. Raises ValueError if it does not fit the product."""
        array = memory_of(out)
        if array is None or array.dtype != self.dtype or array.shape != self._result_shape():
            found = type(out).__name__ if array is None else f"{array.dtype} {array.shape}"
            raise ValueError(f"out is {found}; this product needs an array, {self.dtype} {self._result_shape()}")
        return array

    def _choose_result(self, out: Any) -> None:
        """Sets self.result, the memory for C. It is the memory of `out` if BLAS can address `out` and if `out` shares no
        memory with an operand. Otherwise it is a copy, and _finish() copies the product into `out`."""
        self._target = self._new_result() if out is None else out
        self._target_array = array = self._elements(self._target)
        check_writable(array)
        shaped = array.reshape(self.shape) if (self.a.is_vector or self.b.is_vector) else array
        is_shared = any(operand.array is not None and np.may_share_memory(array, operand.array)
                        for operand in (self.a, self.b))
        was_copied = not np.may_share_memory(shaped, array)  # True if reshape() has made a copy
        direct = None if is_shared or was_copied else blas_matrices(shaped)
        self.result = direct or blas_matrices(np.array(shaped, order="C"))
        self._is_direct = direct is not None

    def _describe_problem(self, m: int, n: int, k: int) -> None:
        row_major = self.result.row_major

        def stored(matrices: Matrices | None, rows: int, columns: int) -> tuple[int, int]:
            if matrices is None:  # The operand is prepared, so any valid leading dimension may be returned.
                return _abi.OP_N, max(columns if row_major else rows, 1)
            return _abi.OP_N if matrices.row_major == row_major else _abi.OP_T, matrices.ld

        op_a, lda = stored(self.matrices_a, m, k)
        op_b, ldb = stored(self.matrices_b, k, n)
        kind = self._type()
        self.problem = _abi.Problem(
            struct_size=ctypes.sizeof(_abi.Problem), m=m, n=n, k=k, lda=lda, ldb=ldb, ldc=self.result.ld,
            batch_count=self.result.offsets.size, op_a=op_a, op_b=op_b, type_a=kind, type_b=kind, type_c=kind,
            type_scalar=kind, layout=_abi.ROW_MAJOR if row_major else _abi.COLUMN_MAJOR, memory=self.memory)
        strides = [0 if matrices is None else matrices.uniform_stride()
                   for matrices in (self.matrices_a, self.matrices_b, self.result)]
        if None in strides:
            self.problem.batch_kind = _abi.BATCH_POINTERS
        else:
            self.problem.stride_a, self.problem.stride_b, self.problem.stride_c = strides

    def _type(self) -> int:
        """Returns the operands' kintsugi_type."""
        return TYPES[self.dtype]

    def plan(self, accuracy: str | float | None, scheme: str | None, engine: str | None, policy: str | None,
             threads: int | None, workspace_limit: int | None) -> _abi.Owned:
        """Returns a plan of the call. Its expected times do not include splits of operands that were prepared with the same
        options."""
        prepared = [operand.prepared is not None and operand.prepared._prepared_for == (accuracy, scheme, engine)
                    for operand in (self.a, self.b)]
        self.problem.prepared_a, self.problem.prepared_b = prepared
        self.problem.adds_to_c = self.memory == _abi.DEVICE and bool(self.beta != 0)
        plan = make_plan(self.problem, make_options(accuracy, scheme, engine, policy, threads, workspace_limit),
                         self.make_allocator())
        if engine is None and self.memory == _abi.HOST:
            warn_once(plan)
        return plan

    def _operands(self) -> tuple[_abi.Operands, list[Any]]:
        """Returns the call's operands, and objects that have to live as long as the operands are used."""
        by_pointers = self.problem.batch_kind == _abi.BATCH_POINTERS
        places = [None if matrices is None else matrices.pointers() if by_pointers else matrices.address
                  for matrices in (self.matrices_a, self.matrices_b, self.result)]
        addresses = [ctypes.addressof(place) if isinstance(place, ctypes.Array) else place for place in places]
        prepared = [None if operand.prepared is None else operand.prepared._owned.pointer
                    for operand in (self.a, self.b)]
        operands = _abi.Operands(struct_size=ctypes.sizeof(_abi.Operands), alpha=self.alpha.ctypes.data,
                                 beta=self.beta.ctypes.data, a=addresses[0], b=addresses[1], c=addresses[2],
                                 prepared_a=prepared[0], prepared_b=prepared[1])
        return operands, places

    def _queue(self) -> _abi.Queue:
        return _abi.Queue()

    def run(self, plan: _abi.Owned) -> Any:
        """Runs a plan of the call and returns the result: the given out, or a new array or tensor."""
        _torch.note_write(self.given_out)
        operands, _alive = self._operands()
        operands.queue = self._queue()
        with errors_of(plan.uses):
            _abi.check(library.kintsugi_plan_execute(this_thread.handle.pointer, plan.pointer, ctypes.byref(operands)))
        return self._finish()

    def _finish(self) -> Any:
        """Copies the result into the target unless it is there already. Returns the target, or the number in a target
        without dimensions."""
        if not self._is_direct:
            self._target_array[...] = self.result.array.reshape(self._result_shape())
        return self._target[()] if isinstance(self._target, np.ndarray) else self._target
