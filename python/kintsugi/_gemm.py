"""Products of numpy arrays, and of tensors on a CUDA device."""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from typing import Any, Callable, ContextManager, Iterator, Literal

import numpy as np

from kintsugi import _abi, _torch
from kintsugi._abi import KintsugiError, library, this_thread
from kintsugi._arrays import (DOUBLE_DOUBLE, TYPES, Matrices, as_array, blas_matrices, check_writable, common_type,
                              readable)
from kintsugi._tensors import Allocator, Tensors, common_tensors, geometry


class Plan(dict):
    """What a product does, as the library describes it (docs/schema/plan.schema.json); str() puts it in words."""

    def __str__(self) -> str:
        return "\n".join(self["words"])


def _options(accuracy: str | float | None, scheme: str | None, engine: str | None, policy: str | None,
             threads: int | None, workspace_limit: int | None) -> _abi.Options:
    def text(value: Any) -> bytes | None:
        return None if value is None else str(value).encode()

    def number(value: int | None, name: str, most: int) -> int:
        if value is not None and value > most:  # ctypes would take its last bits alone
            raise ValueError(f"{name} = {value} is more than {most}")
        return value or 0

    return _abi.Options(struct_size=ctypes.sizeof(_abi.Options), accuracy=text(accuracy), scheme=text(scheme),
                        engine=text(engine), policy=text(policy), threads=number(threads, "threads", 2**31 - 1),
                        workspace_limit=number(workspace_limit, "workspace_limit", 2**63 - 1))


def _make_plan(problem: _abi.Problem, options: _abi.Options, allocator: Allocator | None) -> _abi.Owned:
    if allocator is not None:
        allocator.put_into(options)
    return _abi.Owned(library.kintsugi_plan_destroy, library.kintsugi_plan_create, this_thread.handle.pointer,
                      ctypes.byref(problem), ctypes.byref(options), uses=allocator)


@contextlib.contextmanager
def _errors_of(allocator: Allocator | None) -> Iterator[None]:
    """A call that failed for want of memory says what the tensors' library said of it."""
    try:
        yield
    except KintsugiError as error:
        if allocator is None or not allocator.errors:
            raise
        raise error from allocator.errors[-1]


class Prepared:
    """One operand, split once for any number of products; made by prepare().

    Attributes:
        side: "a" or "b", the side that it may stand on.
        shape: of the array that it was made of, (..., rows, columns).
        dtype: of its elements.
        on_device: made of a tensor on a CUDA device, and for products of such.
    """

    def __init__(self, side: str, shape: tuple[int, ...], dtype: np.dtype, on_device: bool, program: tuple[Any, ...],
                 owned: _abi.Owned):
        self.side = side
        self.shape = shape
        self.dtype = dtype
        self.on_device = on_device
        self._program = program  # accuracy, scheme and engine that it is for
        self._owned = owned

    def __repr__(self) -> str:
        return f"<kintsugi operand {self.side}, shape {self.shape}, {self.dtype}>"


class MissingEngineWarning(RuntimeWarning):
    """An engine that would be quicker cannot run here; products are right, and may take many times as long."""


_warned = False


def _warn_once(plan: _abi.Owned) -> None:
    """The warnings of the process's first plan on the CPU that may choose the engine, for the caller of matmul()."""
    global _warned
    if _warned:
        return
    _warned = True
    for text in describe(plan)["warnings"]:
        warnings.warn(text, MissingEngineWarning, stacklevel=4)


class _Operand:
    """A or B of a call: an array of two dimensions or more, or a prepared one. `read` gives an array, or the geometry
    of a tensor."""

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
        if self.dtype != dtype or self.shape[:-2] not in ((), batch):
            raise ValueError(f"an operand prepared for {self.dtype} and the batch {self.shape[:-2]} "
                             f"cannot stand in a product of {dtype} and the batch {batch}")
        if self.prepared.on_device != on_device:
            raise ValueError("operands of tensors on a device and of arrays do not meet in one product")

    def broadcast(self, batch: tuple[int, ...]) -> np.ndarray:
        return np.broadcast_to(self.array, batch + self.shape[-2:])


def _scalar(value: Any, name: str, dtype: np.dtype) -> np.ndarray:
    """alpha or beta in the type of the product."""
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


def _memory_of(out: Any) -> np.ndarray | None:
    """None: it is neither an array nor a tensor of torch."""
    return as_array(out, "out") if isinstance(out, np.ndarray) or _torch.is_tensor(out) else None


class _Call:
    """One product of arrays: its operands, problem and result, ready to be planned and run. torch's tensors
    are stored ones."""

    memory = _abi.HOST
    allocator: Allocator | None = None  # None: the library's own

    def __init__(self, a: Any, b: Any, alpha: Any, beta: Any, out: Any):
        self.a, self.b = self._operand(a, "a"), self._operand(b, "b")
        (m, k), (inner, n) = self.a.shape[-2:], self.b.shape[-2:]
        if k != inner:
            raise ValueError(f"a has the shape {self.a.shape} and b {self.b.shape}: {k} columns meet {inner} rows")
        self.batch = np.broadcast_shapes(self.a.shape[:-2], self.b.shape[:-2])
        self.shape = self.batch + (m, n)
        self.dtype = common_type([self.a.dtype, self.b.dtype])
        self.alpha = _scalar(alpha, "alpha", self.dtype)
        self.beta = _scalar(beta, "beta", self.dtype)
        if out is None and self.beta != 0:
            raise ValueError(f"beta = {self.beta} scales the old entries of out, and no out is given")
        self.given = out
        self._choose_result(out)
        self.matrices_a, self.matrices_b = self._matrices(self.a), self._matrices(self.b)
        self._describe_problem(m, n, k)

    def current(self) -> ContextManager[Any]:
        """Inside, the call's device is the current one."""
        return contextlib.nullcontext()

    def _operand(self, given: Any, side: str) -> _Operand:
        return _Operand(given, side, as_array)

    def _matrices(self, operand: _Operand) -> Matrices | None:
        if operand.prepared is None:
            return self._read(operand)
        operand.check_prepared(self.batch, self.dtype, self.memory == _abi.DEVICE)
        return None

    def _read(self, operand: _Operand) -> Matrices:
        return readable(operand.broadcast(self.batch), self.dtype)

    def _result_shape(self) -> tuple[int, ...]:
        rows = () if self.a.is_vector else self.shape[-2:-1]
        return self.batch + rows + (() if self.b.is_vector else self.shape[-1:])

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """For a result: a tensor where an operand is one."""
        if any(_torch.is_tensor(side.given) for side in (self.a, self.b)):
            return _torch.empty(shape, dtype, "cpu")
        return np.empty(shape, dtype)

    def _new_result(self) -> Any:
        return self._empty(self._result_shape(), self.dtype)

    def _elements(self, out: Any) -> np.ndarray:
        """The elements of a result, in its memory."""
        array = _memory_of(out)
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
            if matrices is None:  # prepared: any that fits
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
        """Which counts no split of an operand that was prepared for it."""
        prepared = [side.prepared is not None and side.prepared._program == (accuracy, scheme, engine)
                    for side in (self.a, self.b)]
        self.problem.prepared_a, self.problem.prepared_b = prepared
        plan = _make_plan(self.problem, _options(accuracy, scheme, engine, policy, threads, workspace_limit),
                          self.allocator)
        if engine is None and self.memory == _abi.HOST:
            _warn_once(plan)
        return plan

    def _operands(self) -> tuple[_abi.Operands, list[Any]]:
        """And what has to live as long."""
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
        with _errors_of(self.allocator):
            _abi.check(library.kintsugi_plan_execute(this_thread.handle.pointer, plan.pointer, ctypes.byref(operands)))
        return self._finish()

    def _finish(self) -> Any:
        if not self._is_direct:
            self._target_array[...] = self.result.array.reshape(self._result_shape())
        return self._target[()] if isinstance(self._target, np.ndarray) else self._target


class _PairCall(_Call):
    """One product of double-double arrays. numpy has no such type: inside, a pair stands in the place of a complex128,
    whose size it has; nothing computes with it."""

    def _operand(self, given: Any, side: str) -> _Operand:
        if isinstance(given, Prepared):
            raise TypeError(f"{side} is a prepared operand; double-double ones are not prepared")
        return _Operand(given, side, lambda x, name: _as_pairs(as_array(x, name), name))

    def _type(self) -> int:
        return DOUBLE_DOUBLE

    def _new_result(self) -> Any:
        return self._empty(self._result_shape() + (2,), np.dtype(np.float64))

    def _elements(self, out: Any) -> np.ndarray:
        words = _memory_of(out)
        if words is None or words.dtype != np.float64 or not _holds_pairs(words):
            raise ValueError("out must be a float64 array whose last axis has the two words of double-double numbers "
                             "beside each other")
        return super()._elements(words.view(np.complex128)[..., 0])


def _holds_pairs(array: np.ndarray) -> bool:
    return array.ndim > 0 and array.shape[-1] == 2 and (array.size == 0 or array.strides[-1] == array.itemsize)


def _as_pairs(array: np.ndarray, name: str) -> np.ndarray:
    """(..., 2) float64 as (...) of pairs; not copied where hi and lo stand beside each other."""
    if array.ndim < 2 or array.shape[-1] != 2 or array.dtype.kind not in "biuf":
        raise TypeError(f"{name} is {array.dtype} {array.shape}; double-double numbers are float64 with a last axis "
                        "of 2, hi and lo")
    words = array.astype(np.float64, copy=False)
    if not _holds_pairs(words) or not words.dtype.isnative:
        words = np.array(words, dtype=np.float64, order="C")
    return words.view(np.complex128)[..., 0]


def _pair_scalar(value: Any, name: str) -> complex:
    """A number, or (hi, lo), as a pair."""
    words = np.asarray(value, dtype=np.float64).ravel()
    if words.size not in (1, 2) or np.ndim(value) > 1:
        raise TypeError(f"{name} = {value!r} is neither a number nor a pair (hi, lo)")
    return complex(words[0], words[1] if words.size == 2 else 0.0)


def _on_stream(tensors: Tensors) -> _abi.Queue:
    """The tensors' stream; where their library is not known to have one, the call waits."""
    stream = tensors.stream()
    return _abi.Queue() if stream is None else _abi.Queue(kind=_abi.QUEUE_CUDA, stream=stream)


class _DeviceCall(_Call):
    """One product of tensors on a device, put into their library's current stream and with memory of its allocator.
    Where numpy's arrays have elements, this has geometries, and copies are the tensors' own."""

    memory = _abi.DEVICE

    def __init__(self, tensors: Tensors, a: Any, b: Any, alpha: Any, beta: Any, out: Any):
        self.tensors = tensors
        self.allocator = tensors.make_allocator()
        self._copies: list[Any] = []
        super().__init__(a, b, alpha, beta, out)

    def current(self) -> ContextManager[Any]:
        return self.tensors.current()

    def _operand(self, given: Any, side: str) -> _Operand:
        own = given if isinstance(given, Prepared) else self.tensors.own(given)
        return _Operand(own, side, lambda tensor, name: geometry(tensor))

    def _read(self, operand: _Operand) -> Matrices:
        array = operand.broadcast(self.batch)
        return _strided(array, self.dtype) or self._dense(operand.given, operand.array.shape, array.shape)

    def _dense(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...]) -> Matrices:
        self._copies.append(self.tensors.copy_of(tensor, shape, broadcast, self.dtype))
        return blas_matrices(geometry(self._copies[-1]))

    def _choose_result(self, out: Any) -> None:
        shape = self._result_shape()
        self._target = self.tensors.empty(shape, self.dtype) if out is None else self.tensors.own(out)
        array = geometry(self._target)
        if array.dtype != self.dtype or array.shape != shape:
            raise ValueError(f"out is {array.dtype} {array.shape}; this product needs a tensor, {self.dtype} {shape}")
        check_writable(array)
        rows = np.newaxis if self.a.is_vector else slice(None)
        columns = np.newaxis if self.b.is_vector else slice(None)
        shared = any(side.array is not None and np.may_share_memory(array, side.array) for side in (self.a, self.b))
        direct = None if shared else _strided(array[..., rows, columns], self.dtype)
        self.result = direct or self._dense(self._target, self.shape, self.shape)
        self._result_copy = None if direct is not None else self._copies[-1]

    def _queue(self) -> _abi.Queue:
        return _on_stream(self.tensors)

    def _finish(self) -> Any:
        if self._result_copy is not None:
            self.tensors.assign(self._target, self._result_copy.reshape(self._result_shape()))
        self.tensors.finish()
        return self.tensors.as_result(self._target) if self.given is None else self.given


def _strided(array: np.ndarray, dtype: np.dtype) -> Matrices | None:
    """As it lies in memory, where type, strides and batch allow; pointers to batch entries would have to be on the
    device."""
    matrices = blas_matrices(array) if array.dtype == dtype else None
    return None if matrices is None or matrices.uniform_stride() is None else matrices


def _make_call(a: Any, b: Any, alpha: Any, beta: Any, out: Any) -> _Call:
    stored = {name: _torch.as_stored(x, name) for name, x in (("a", a), ("b", b), ("out", out))}
    tensors = common_tensors({name: x for name, x in stored.items() if x is not None and not isinstance(x, Prepared)})
    if tensors is None:
        return _Call(**stored, alpha=alpha, beta=beta)
    return _DeviceCall(tensors, **stored, alpha=alpha, beta=beta)


def matmul(a: Any, b: Any, *, accuracy: str | float | None = None, scheme: str | None = None,
           engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None, alpha: Any = 1,
           beta: Any = 0, out: Any = None, threads: int | None = None, workspace_limit: int | None = None) -> Any:
    """alpha * a @ b + beta * out.

    Args:
        a: (..., m, k), or (k,) for one row; on the CPU an array, a nested list, a tensor of torch, whatever has
            DLPack, or a Prepared; or all operands are on one CUDA device: tensors of torch or CuPy, in whose current
            stream the product is put, or arrays of any library with DLPack, of which it is complete when this returns.
        b: (..., k, n), or (k,) for one column. Leading dimensions are a batch and broadcast as numpy's.
        accuracy: "fp32", "fp64", "dd", "exact" or a tolerance such as 1e-10, relative to (|a| @ |b|); None: the
            type's own.
        scheme: a name of schemes(), with parameters as in "ozaki2:moduli=20": that program or an error, which an accuracy
            is too that it cannot give.
        engine: a name of engines(); None: the quickest.
        policy: "auto", "emulate" or "native".
        alpha, beta: numbers of the operands' type.
        out: where the result goes, (..., m, n) of the operands' type; needed where beta is not 0.
        threads: 0 or None: as many as OpenMP offers.
        workspace_limit: bytes; blocks the problem and changes no bit.

    Returns:
        The result, (..., m, n) without the dimension that a vector does not have; out itself where it was given.
        Of tensors it is one of the same library, or a DeviceArray (with __dlpack__) where that takes none; on the CPU
        one of torch where a or b is. Inputs whose rows or columns have unit stride (C or Fortran order, transposes,
        slices of them) are not copied; lazy conjugates and negatives of torch are.

    Raises:
        KintsugiError: what the library refuses, with its message; out is untouched.
        TypeError: an element type that it does not multiply, or a tensor that requires a gradient.
        ValueError: shapes that do not fit, or an out that cannot take the result.

    Warns:
        MissingEngineWarning: once a process, where there is no BLAS for the engine "cpu".
    """
    call = _make_call(a, b, alpha, beta, out)
    with call.current():
        this_thread.plan = call.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
        result = call.run(this_thread.plan)
    return result if out is None else _torch.give_back(out, result)


def matmul_dd(a: Any, b: Any, *, accuracy: str | float | None = None, scheme: str | None = None,
              engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None, alpha: Any = 1,
              beta: Any = 0, out: Any = None, threads: int | None = None,
              workspace_limit: int | None = None) -> Any:
    """alpha * a @ b + beta * out of double-double numbers, some 106 significant bits in two float64 words.

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
    call = _PairCall(*(_torch.as_stored(x, name) for name, x in (("a", a), ("b", b))), _pair_scalar(alpha, "alpha"),
                     _pair_scalar(beta, "beta"), _torch.as_stored(out, "out"))
    this_thread.plan = call.plan(accuracy, scheme, engine, policy, threads, workspace_limit)
    result = call.run(this_thread.plan)
    return result if out is None else _torch.give_back(out, result)


def explain(a: Any, b: Any, *, accuracy: str | float | None = None, scheme: str | None = None,
            engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None,
            threads: int | None = None, workspace_limit: int | None = None) -> Plan:
    """The plan that matmul() would make with these arguments; nothing is multiplied. Errors as matmul()'s."""
    call = _make_call(a, b, 1, 0, None)
    with call.current():
        return describe(call.plan(accuracy, scheme, engine, policy, threads, workspace_limit))


def describe(plan: _abi.Owned) -> Plan:
    return Plan(_abi.read_json(lambda *buffer: library.kintsugi_plan_describe(plan.pointer, *buffer)))


def prepare(x: Any, *, side: Literal["a", "b"], accuracy: str | float | None = None, scheme: str | None = None,
            engine: str | None = None, policy: Literal["auto", "emulate", "native"] | None = None,
            threads: int | None = None) -> Prepared:
    """Splits one operand once, for matmul(prepared, b) or matmul(a, prepared) as often as wanted.

    Args:
        x: (..., rows, columns), as matmul takes it. It is copied and may go.
        side: "a" for the left operand, "b" for the right one.
        accuracy, scheme, engine, policy, threads: those of the products to come. A product with another accuracy,
            scheme or engine has the same bits as without preparation, and may split again. Under "auto" one with the
            same may be emulated where it would be native without preparation.

    Raises:
        KintsugiError, TypeError, ValueError: as matmul().
    """
    if side not in ("a", "b"):
        raise ValueError(f"side is {side!r}, neither 'a' nor 'b'")
    x = _torch.as_stored(x, side)
    tensors = common_tensors({side: x})
    # Kept until it was read: it may be the only reference to a copy.
    source = as_array(x, side) if tensors is None else tensors.own(x)
    array = source if tensors is None else geometry(source)
    if array.ndim < 2:
        raise ValueError(f"{side} has the shape {array.shape}; a matrix has two dimensions")
    dtype = common_type([array.dtype])
    # Rows are stored as they lie, so that a transpose is no copy; batches by one stride.
    matrices = _strided(array, dtype)
    if matrices is None and tensors is None:
        matrices = readable(np.ascontiguousarray(array), dtype)
    elif matrices is None:
        copy = tensors.copy_of(source, array.shape, array.shape, dtype)
        matrices = blas_matrices(geometry(copy))
    rows, columns = array.shape[-2:]
    m, n, k = (rows, 1, columns) if side == "a" else (1, columns, rows)
    kind = TYPES[dtype]
    problem = _abi.Problem(struct_size=ctypes.sizeof(_abi.Problem), m=m, n=n, k=k, lda=max(k, 1), ldb=1, ldc=max(n, 1),
                           batch_count=matrices.offsets.size, type_a=kind, type_b=kind, type_c=kind, type_scalar=kind,
                           stride_c=max(m * n, 1), layout=_abi.ROW_MAJOR,
                           memory=(_Call if tensors is None else _DeviceCall).memory)
    op = _abi.OP_N if matrices.row_major else _abi.OP_T
    if side == "a":
        problem.op_a, problem.lda, problem.stride_a = op, matrices.ld, matrices.uniform_stride()
        problem.prepared_a = 1
    else:
        problem.op_b, problem.ldb, problem.stride_b = op, matrices.ld, matrices.uniform_stride()
        problem.prepared_b = 1
    options = _options(accuracy, scheme, engine, policy, threads, None)
    if tensors is not None:
        options.queue = _on_stream(tensors)
    with contextlib.nullcontext() if tensors is None else tensors.current():
        allocator = None if tensors is None else tensors.make_allocator()
        plan = _make_plan(problem, options, allocator)
        with _errors_of(allocator):
            owned = _abi.Owned(library.kintsugi_prepared_destroy, library.kintsugi_prepare, this_thread.handle.pointer,
                               plan.pointer, 0 if side == "a" else 1, ctypes.c_void_p(matrices.address),
                               uses=allocator)
    return Prepared(side, array.shape, dtype, tensors is not None, (accuracy, scheme, engine), owned)


def last_plan() -> Plan | None:
    """The plan of this thread's last matmul(); None before the first."""
    return None if this_thread.plan is None else describe(this_thread.plan)


def last_report() -> dict[str, Any]:
    """What this thread's last matmul() did: engine, how many products each scheme did, spans, blocks
    (docs/schema/report.schema.json)."""
    return _abi.read_json(lambda *buffer: library.kintsugi_report(this_thread.handle.pointer, *buffer))


def schemes() -> list[dict[str, Any]]:
    """The schemes: name, summary, program, bound, window and source of each (docs/schema/schemes.schema.json)."""
    return _abi.read_json(library.kintsugi_describe_schemes)["schemes"]


def engines() -> list[dict[str, Any]]:
    """The engines: what each can do on this machine, and why not more (docs/schema/engines.schema.json)."""
    return _abi.read_json(library.kintsugi_describe_engines)["engines"]
