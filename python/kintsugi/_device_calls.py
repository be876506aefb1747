"""One product of tensors in device memory, and the choice between a call on a device and a call on the CPU."""

from __future__ import annotations

from typing import Any, ContextManager

import numpy as np

from kintsugi import _abi, _torch
from kintsugi._arrays import Matrices, blas_matrices, check_writable
from kintsugi._calls import Call
from kintsugi._operands import Operand, Prepared
from kintsugi._tensors import Allocator, Tensors, common_tensors, geometry


def on_stream(tensors: Tensors) -> _abi.Queue:
    """Returns the current stream of the tensors' library as a queue. If the library's streams are not known, returns an
    empty queue; the call then waits for its work."""
    stream = tensors.stream()
    return _abi.Queue() if stream is None else _abi.Queue(kind=_abi.QUEUE_CUDA, stream=stream)


class DeviceCall(Call):
    """One product of tensors on a device. It runs in the current stream of the tensors' library, with memory of that
    library's allocator. Its arrays are geometries, whose elements the CPU cannot read. Its copies are tensors of the
    library."""

    memory = _abi.DEVICE

    def __init__(self, tensors: Tensors, a: Any, b: Any, alpha: Any, beta: Any, out: Any):
        self.tensors = tensors
        self._copies: list[Any] = []
        super().__init__(a, b, alpha, beta, out)

    def make_allocator(self) -> Allocator | None:
        return self.tensors.make_allocator()

    def current(self) -> ContextManager[Any]:
        return self.tensors.current()

    def _operand(self, given: Any, side: str) -> Operand:
        tensor = given if isinstance(given, Prepared) else self.tensors.adopt(given)
        return Operand(tensor, side, lambda tensor, name: geometry(tensor))

    def _read(self, operand: Operand) -> Matrices:
        array = operand.broadcast(self.batch)
        return strided(array, self.dtype) or self._dense(operand.given, operand.array.shape, array.shape)

    def _dense(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...]) -> Matrices:
        """Returns the matrices of a dense copy of the tensor, reshaped and broadcast. Keeps the copy alive."""
        self._copies.append(self.tensors.copy_of(tensor, shape, broadcast, self.dtype))
        return blas_matrices(geometry(self._copies[-1]))

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
        self.result = direct or self._dense(self._target, self.shape, self.shape)
        self._result_copy = None if direct is not None else self._copies[-1]

    def _queue(self) -> _abi.Queue:
        return on_stream(self.tensors)

    def _finish(self) -> Any:
        if self._result_copy is not None:
            self.tensors.assign(self._target, self._result_copy.reshape(self._result_shape()))
        self.tensors.finish()
        return self.tensors.as_result(self._target) if self.given_out is None else self.given_out


def strided(array: np.ndarray, dtype: np.dtype) -> Matrices | None:
    """Returns the matrices of the array without a copy. Returns None if the array has another type, if BLAS cannot address
    it, or if its batch items are not equally spaced. (An array of pointers to them would have to be on the device.)"""
    matrices = blas_matrices(array) if array.dtype == dtype else None
    return None if matrices is None or matrices.uniform_stride() is None else matrices


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


def make_call(a: Any, b: Any, alpha: Any, beta: Any, out: Any) -> Call:
    """Returns the product as a Call or a DeviceCall, depending on the memory of its operands."""
    stored = {name: _torch.as_stored(x, name) for name, x in (("a", a), ("b", b), ("out", out))}
    tensors = common_tensors({name: x for name, x in stored.items() if x is not None and not isinstance(x, Prepared)})
    if tensors is None:
        _check_both_prepared(a, b)
        return Call(**stored, alpha=alpha, beta=beta)
    return DeviceCall(tensors, **stored, alpha=alpha, beta=beta)
