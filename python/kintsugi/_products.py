"""Products of any operands. _core.matmul() and plans compute those of plain ones: arrays and tensors that the library can
read as they are. Here operands are converted, copied and broadcast, or refused; then _core plans and runs the product."""

from __future__ import annotations

import contextlib
import json
import warnings
from typing import Any, ContextManager

import numpy as np

from kintsugi import _core, _tensors, _torch
from kintsugi._arrays import as_array, check_writable, common_type, in_class_of, readable, refuse_own_products, strided
from kintsugi._errors import MissingEngineWarning
from kintsugi._operands import Operand, Prepared, make_scalar
from kintsugi._tensors import Tensors, common_tensors, geometry


def describe(plan: Any) -> dict[str, Any]:
    """Returns the description of a plan of the library."""
    description: dict[str, Any] = json.loads(_core.plan_text(plan))
    return description


_warned = False


def warn_once(plan: Any) -> None:
    """Passes the plan's warnings to the caller of matmul(). Does so once per process: for the first plan on the CPU without
    a named engine."""
    global _warned
    if _warned:
        return
    _warned = True
    _core.accept_host(True)
    for text in describe(plan)["warnings"]:
        warnings.warn(text, MissingEngineWarning, stacklevel=4)


def memory_of(out: Any) -> np.ndarray | None:
    """Returns the memory of an array or of a torch tensor as an array; None if `out` is neither."""
    return as_array(out, "out") if isinstance(out, np.ndarray) or _torch.is_tensor(out) else None


class Product:
    """One product of arrays on the CPU: operands, problem and result, ready to be planned and run. Tensors of torch must be
    results of _torch.as_stored()."""

    def __init__(self, a: Any, b: Any, alpha: Any, beta: Any, out: Any):
        self.a, self.b = self._operand(a, "a"), self._operand(b, "b")
        (m, k), (inner, n) = self.a.shape[-2:], self.b.shape[-2:]
        if k != inner:
            raise ValueError(f"a has the shape {self.a.shape} and b {self.b.shape}: {k} columns meet {inner} rows")
        try:
            self.batch = np.broadcast_shapes(self.a.shape[:-2], self.b.shape[:-2])
        except ValueError:
            raise ValueError(f"a has the shape {self.a.shape} and b {self.b.shape}, whose leading dimensions do not "
                             "broadcast") from None
        self.shape = self.batch + (m, n)
        self.dtype = common_type([self.a.dtype, self.b.dtype], "an operand", self._integers())
        self.alpha = make_scalar(alpha, "alpha", self.dtype)
        self.beta = make_scalar(beta, "beta", self.dtype)
        if out is None and self.beta != 0:
            raise ValueError(f"beta = {self.beta} scales the old elements of out, and no out is given")
        self.given_out = out
        self._choose_result(out)
        self._arrays = self._readable(self.a), self._readable(self.b)
        self.problem = self._describe(k)

    def current(self) -> ContextManager[Any]:
        """Returns a context in which the call's device is the current one."""
        return contextlib.nullcontext()

    def place(self) -> Any:
        """Returns what products that share a call have in common."""
        return "the CPU"

    def _memory(self) -> int:
        """Returns the kintsugi_memory of the operands."""
        return _core.HOST

    def _allocate(self) -> Any:
        """Returns the function that allocates workspaces (_core.plan()); None: the library allocates."""
        return None

    def _stream(self) -> int | None:
        """Returns the address of the CUDA stream in which the product runs; None: it is complete when the call returns."""
        return None

    def _operand(self, given: Any, side: str) -> Operand:
        return Operand(given, side, as_array)

    def _integers(self) -> list[np.ndarray] | None:
        """Returns the arrays whose integers are converted; None if none are: torch itself multiplies no mixed types."""
        if any(_torch.is_tensor(operand.given) for operand in (self.a, self.b)):
            return None
        return [operand.array for operand in (self.a, self.b) if operand.array is not None]

    def _readable(self, operand: Operand) -> Any:
        """Returns the operand's array, broadcast, or the library's prepared operand."""
        if operand.prepared is None:
            return self._read(operand)
        operand.check_prepared(self.batch, self.dtype, self._memory() == _core.DEVICE)
        return operand.prepared._prepared

    def _read(self, operand: Operand) -> np.ndarray:
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
            found = f"{type(out).__name__}, not numpy's nor torch's" if array is None else f"{array.dtype} {array.shape}"
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
        self._is_direct = not is_shared and not was_copied and _core.batch_kind(shaped) is not None
        self.result = shaped if self._is_direct else np.array(shaped, order="C")

    def _describe(self, k: int) -> dict[str, int]:
        return {**_core.problem(*self._arrays, self.result, k), "memory": self._memory()}

    def plan(self, accuracy: str | float | None, scheme: str | None, engine: str | None, policy: str | None,
             threads: int | None, workspace_limit: int | str | None) -> Any:
        """Returns a plan of the product. Its expected times do not include splits of operands that were prepared with the
        same options."""
        for side, operand in (("a", self.a), ("b", self.b)):
            is_ready = operand.prepared is not None and operand.prepared._prepared_for == (accuracy, scheme, engine)
            self.problem[f"prepared_{side}"] = int(is_ready)
        self.problem["adds_to_c"] = int(self._memory() == _core.DEVICE and self.beta != 0)
        plan = _core.plan(self.problem, (accuracy, scheme, engine, policy, threads, workspace_limit), None, self._allocate())
        if engine is None and self._memory() == _core.HOST:
            warn_once(plan)
        return plan

    def run(self, plan: Any) -> Any:
        """Runs a plan of the product and returns the result: the given out, or a new array or tensor."""
        _torch.note_write(self.given_out)
        _core.run(plan, *self._arrays, self.result, self.alpha.item(), self.beta.item(), self._stream())
        return self._finish()

    def group(self) -> tuple[Any, ...]:
        """Returns the product as one of _core.run_groups(), after which _finish() returns its result."""
        _torch.note_write(self.given_out)
        return {**self.problem}, *self._arrays, self.result, self.alpha.item(), self.beta.item()

    def _finish(self) -> Any:
        """Copies the result into the target unless it is there already. Returns the target; a new array in the class of the
        operands."""
        if not self._is_direct:
            self._target_array[...] = self.result.reshape(self._result_shape())
        if self.given_out is not None or not isinstance(self._target, np.ndarray):
            return self._target
        return in_class_of([operand.given for operand in (self.a, self.b)], self._target)


class PairProduct(Product):
    """One product of double-double arrays. A number is two float64 words, hi and lo, along the last axis. numpy has no such
    type, so this class views a pair as a complex128, which has the same size. numpy computes nothing with it."""

    def _operand(self, given: Any, side: str) -> Operand:
        if isinstance(given, Prepared):
            raise TypeError(f"{side} is a prepared operand; double-double ones are not prepared")
        return Operand(given, side, lambda x, name: _as_pairs(as_array(x, name), name))

    def _describe(self, k: int) -> dict[str, int]:
        return {**super()._describe(k),
                **dict.fromkeys(("type_a", "type_b", "type_c", "type_scalar"), _core.DOUBLE_DOUBLE)}

    def _new_result(self) -> Any:
        return self._empty(self._result_shape() + (2,), np.dtype(np.float64))

    def _elements(self, out: Any) -> np.ndarray:
        words = memory_of(out)
        if words is None or words.dtype != np.float64 or not _holds_pairs(words):
            raise ValueError("out must be a float64 array whose last axis has the two words of double-double numbers "
                             "beside each other")
        return super()._elements(words.view(np.complex128)[..., 0])


def _holds_pairs(array: np.ndarray) -> bool:
    """Returns True if the last axis has two adjacent words."""
    return array.ndim > 0 and array.shape[-1] == 2 and (array.size == 0 or array.strides[-1] == array.itemsize)


def _as_pairs(array: np.ndarray, name: str) -> np.ndarray:
    """Returns an array (..., 2) of float64 as an array (...) of pairs. It is not copied if hi and lo are adjacent."""
    if array.ndim < 2 or array.shape[-1] != 2 or array.dtype.kind not in "biuf":
        raise TypeError(f"{name} is {array.dtype} {array.shape}; double-double numbers are float64 with a last axis "
                        "of 2, hi and lo")
    words = array.astype(np.float64, copy=False)
    if not _holds_pairs(words) or not words.dtype.isnative:
        words = np.array(words, dtype=np.float64, order="C")
    return words.view(np.complex128)[..., 0]


def pair_scalar(value: Any, name: str) -> complex:
    """Returns a number, or (hi, lo), as a pair."""
    refuse_own_products(value, name)
    words = np.asarray(value, dtype=np.float64).ravel()
    if words.size not in (1, 2) or np.ndim(value) > 1:
        raise TypeError(f"{name} = {value!r} is neither a number nor a pair (hi, lo)")
    return complex(words[0], words[1] if words.size == 2 else 0.0)


class DeviceProduct(Product):
    """One product of tensors on a device. It runs in the current stream of the tensors' library, with memory of that
    library's allocator. Its arrays are geometries, whose elements the CPU cannot read. Its copies are tensors of the
    library."""

    def __init__(self, tensors: Tensors, a: Any, b: Any, alpha: Any, beta: Any, out: Any):
        self.tensors = tensors
        self._copies: list[Any] = []
        super().__init__(a, b, alpha, beta, out)

    def current(self) -> ContextManager[Any]:
        return self.tensors.current()

    def place(self) -> Any:
        return f"{self.tensors.name}'s device {getattr(self.tensors, 'device', '')}"

    def _memory(self) -> int:
        return _tensors.MEMORY

    def _allocate(self) -> Any:
        return self.tensors.allocate

    def _stream(self) -> int | None:
        return self.tensors.stream()

    def _operand(self, given: Any, side: str) -> Operand:
        tensor = given if isinstance(given, Prepared) else self.tensors.adopt(given)
        return Operand(tensor, side, lambda tensor, name: geometry(tensor))

    def _integers(self) -> None:
        """Integers on a device cannot be read by the CPU."""
        return None

    def _read(self, operand: Operand) -> np.ndarray:
        """A copy has equally spaced batch items, since an array of pointers to them would have to be on the device."""
        array = operand.broadcast(self.batch)
        found = strided(array, self.dtype)
        return self._dense(operand.given, operand.array.shape, array.shape) if found is None else found

    def _dense(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...]) -> np.ndarray:
        """Returns the geometry of a dense copy of the tensor, reshaped and broadcast. Keeps the copy alive."""
        self._copies.append(self.tensors.copy_of(tensor, shape, broadcast, self.dtype))
        return geometry(self._copies[-1])

    def _choose_result(self, out: Any) -> None:
        shape = self._result_shape()
        self._target = self.tensors.empty(shape, self.dtype) if out is None else self.tensors.adopt(out)
        array = geometry(self._target)
        if array.dtype != self.dtype or array.shape != shape:
            raise ValueError(f"out is {array.dtype} {array.shape}; this product needs a tensor, {self.dtype} {shape}")
        check_writable(array)
        rows = np.newaxis if self.a.is_vector else slice(None)
        columns = np.newaxis if self.b.is_vector else slice(None)
        is_shared = any(operand.array is not None and np.may_share_memory(array, operand.array)
                        for operand in (self.a, self.b))
        direct = None if is_shared else strided(array[..., rows, columns], self.dtype)
        self.result = self._dense(self._target, self.shape, self.shape) if direct is None else direct
        self._result_copy = None if direct is not None else self._copies[-1]

    def _finish(self) -> Any:
        if self._result_copy is not None:
            tensors: Any = self.tensors  # DlpackTensors makes no copies, and has no assign()
            tensors.assign(self._target, self._result_copy.reshape(self._result_shape()))
        self.tensors.finish()
        return self.tensors.as_result(self._target) if self.given_out is None else self.given_out


def _check_both_prepared(a: Any, b: Any) -> None:
    """Raises ValueError if both operands are prepared on a device and there is no `out`, since nothing then says whether the
    result is a tensor of torch or CuPy. Also raises it if the operands were prepared in different memories."""
    if not (isinstance(a, Prepared) and isinstance(b, Prepared)):
        return
    if a.on_device != b.on_device:
        first, second = ("a", "b") if a.on_device else ("b", "a")
        raise ValueError(f"{first} was prepared of a tensor on a device and {second} of an array on the CPU; "
                         "prepare both in one place")
    if a.on_device:
        raise ValueError("a and b are both prepared and on a device: give out, the tensor for the result; "
                         "without it nothing says which library's tensor that would be")


def make_product(a: Any, b: Any, alpha: Any, beta: Any, out: Any) -> Product:
    """Returns a Product or a DeviceProduct, depending on the memory of its operands."""
    stored = {name: _torch.as_stored(x, name) for name, x in (("a", a), ("b", b), ("out", out))}
    tensors = common_tensors({name: x for name, x in stored.items() if x is not None and not isinstance(x, Prepared)})
    if tensors is None:
        _check_both_prepared(a, b)
        return Product(**stored, alpha=alpha, beta=beta)
    return DeviceProduct(tensors, **stored, alpha=alpha, beta=beta)
