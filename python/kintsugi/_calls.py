"""One product of arrays on the CPU: from operands to a problem of the C ABI, and from its plan to the result."""

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
    """The memory of an array or a tensor of torch; None if it is neither."""
    return as_array(out, "out") if isinstance(out, np.ndarray) or _torch.is_tensor(out) else None


class Call:
    """One product of arrays: its operands, problem and result, ready to be planned and run. torch's tensors
    are stored ones."""

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
        self.given = out
        self._choose_result(out)
        self.matrices_a, self.matrices_b = self._matrices(self.a), self._matrices(self.b)
        self._describe_problem(m, n, k)

    def make_allocator(self) -> Allocator | None:
        """The allocator for workspaces; None: kintsugi's own."""
        return None

    def current(self) -> ContextManager[Any]:
        """A context in which the call's device is the current one."""
        return contextlib.nullcontext()

    def _operand(self, given: Any, side: str) -> Operand:
        return Operand(given, side, as_array)

    def _matrices(self, operand: Operand) -> Matrices | None:
        if operand.prepared is None:
            return self._read(operand)
        operand.check_prepared(self.batch, self.dtype, self.memory == _abi.DEVICE)
        return None

    def _read(self, operand: Operand) -> Matrices:
        return readable(operand.broadcast(self.batch), self.dtype)

    def _result_shape(self) -> tuple[int, ...]:
        rows = () if self.a.is_vector else self.shape[-2:-1]
        return self.batch + rows + (() if self.b.is_vector else self.shape[-1:])

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Memory for a result: a tensor if an operand is one, else an array."""
        if any(_torch.is_tensor(side.given) for side in (self.a, self.b)):
            return _torch.empty(shape, dtype, "cpu")
        return np.empty(shape, dtype)

    def _new_result(self) -> Any:
        return self._empty(self._result_shape(), self.dtype)

    def _elements(self, out: Any) -> np.ndarray:
        """The elements of a result, in its memory."""
        array = memory_of(out)
        if array is None or array.dtype != self.dtype or array.shape != self._result_shape():
            found = type(out).__name__ if array is None else f"{array.dtype} {array.shape}"
            raise ValueError(f"out is {found}; this product needs an array, {self.dtype} {self._result_shape()}")
        return array

    def _choose_result(self, out: Any) -> None:
        self._target = self._new_result() if out is None else out
        self._target_array = array = self._elements(self._target)
        check_writable(array)
        shaped = array.reshape(self.shape) if (self.a.is_vector or self.b.is_vector) else array
        shared = any(side.array is not None and np.may_share_memory(array, side.array) for side in (self.a, self.b))
        direct = None if shared or not np.may_share_memory(shaped, array) else blas_matrices(shaped)
        self.result = direct or blas_matrices(np.array(shaped, order="C"))
        self._is_direct = direct is not None

    def _describe_problem(self, m: int, n: int, k: int) -> None:
        row_major = self.result.row_major

        def stored(matrices: Matrices | None, rows: int, columns: int) -> tuple[int, int]:
            if matrices is None:  # prepared: any valid leading dimension will do
                return _abi.OP_N, max(columns if row_major else rows, 1)
            return _abi.OP_N if matrices.row_major == row_major else _abi.OP_T, matrices.ld

        op_a, lda = stored(self.matrices_a, m, k)
        op_b, ldb = stored(self.matrices_b, k, n)
        kind = self._type()
        self.problem = _abi.Problem(
            struct_size=ctypes.sizeof(_abi.Problem), m=m, n=n, k=k, lda=lda, ldb=ldb, ldc=self.result.ld,
            batch_count=self.result.offsets.size, op_a=op_a, op_b=op_b, type_a=kind, type_b=kind, type_c=kind,
            type_scalar=kind, layout=_abi.ROW_MAJOR if row_major else _abi.COLUMN_MAJOR, memory=self.memory)
        strides = [0 if side is None else side.uniform_stride()
                   for side in (self.matrices_a, self.matrices_b, self.result)]
        if None in strides:
            self.problem.batch_kind = _abi.BATCH_POINTERS
        else:
            self.problem.stride_a, self.problem.stride_b, self.problem.stride_c = strides

    def _type(self) -> int:
        """The operands' kintsugi_type."""
        return TYPES[self.dtype]

    def plan(self, accuracy: str | float | None, scheme: str | None, engine: str | None, policy: str | None,
             threads: int | None, workspace_limit: int | None) -> _abi.Owned:
        """A plan of the call, whose expected times leave out the split of operands prepared with the same options."""
        prepared = [side.prepared is not None and side.prepared._prepared_for == (accuracy, scheme, engine)
                    for side in (self.a, self.b)]
        self.problem.prepared_a, self.problem.prepared_b = prepared
        plan = make_plan(self.problem, make_options(accuracy, scheme, engine, policy, threads, workspace_limit),
                         self.make_allocator())
        if engine is None and self.memory == _abi.HOST:
            warn_once(plan)
        return plan

    def _operands(self) -> tuple[_abi.Operands, list[Any]]:
        """The call's operands, and objects that have to live as long as they are used."""
        by_pointers = self.problem.batch_kind == _abi.BATCH_POINTERS
        tables = [None if side is None else side.pointers() if by_pointers else side.address
                  for side in (self.matrices_a, self.matrices_b, self.result)]
        addresses = [ctypes.addressof(table) if isinstance(table, ctypes.Array) else table for table in tables]
        prepared = [None if side.prepared is None else side.prepared._owned.pointer for side in (self.a, self.b)]
        operands = _abi.Operands(struct_size=ctypes.sizeof(_abi.Operands), alpha=self.alpha.ctypes.data,
                                 beta=self.beta.ctypes.data, a=addresses[0], b=addresses[1], c=addresses[2],
                                 prepared_a=prepared[0], prepared_b=prepared[1])
        return operands, tables

    def _queue(self) -> _abi.Queue:
        return _abi.Queue()

    def run(self, plan: _abi.Owned) -> Any:
        """The result: what was given as out, or a new one."""
        _torch.note_write(self.given)
        operands, _alive = self._operands()
        operands.queue = self._queue()
        with errors_of(plan.uses):
            _abi.check(library.kintsugi_plan_execute(this_thread.handle.pointer, plan.pointer, ctypes.byref(operands)))
        return self._finish()

    def _finish(self) -> Any:
        if not self._is_direct:
            self._target_array[...] = self.result.array.reshape(self._result_shape())
        return self._target[()] if isinstance(self._target, np.ndarray) else self._target
