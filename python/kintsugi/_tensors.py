"""Tensors in the memory of a CUDA device: torch's, CuPy's, and those of other libraries by DLPack. This module imports no
library before it gets one of its tensors."""

from __future__ import annotations

import importlib
import sys
from typing import Any, ContextManager, Union

import numpy as np

from kintsugi import _core, _dlpack, _torch
from kintsugi._arrays import in_library_of

MEMORY = _core.DEVICE  # kintsugi_memory of products of tensors


class _Memory:
    """Device memory as a numpy array. It is used only for numpy's arithmetic of shapes, strides and addresses."""

    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = {key: interface[key] for key in ("shape", "typestr", "data", "strides", "version")
                                    if key in interface}


def geometry(tensor: Any) -> np.ndarray:
    """Returns an array of the tensor's type, shape, strides and address. Its elements are on the device: never read one."""
    interface = tensor.__cuda_array_interface__
    if 0 in interface["shape"]:
        return np.empty(interface["shape"], np.dtype(interface["typestr"]))
    return np.asarray(_Memory(interface))


class _LibraryTensors:
    """Tensors of one library (torch or CuPy) on one device. Products run in the library's current stream, and new tensors
    come from its allocator. Arrays of other libraries are used in place: from_dlpack makes the stream wait for them."""

    device: Any

    def __init__(self, library: Any, tensor: Any):
        self._library = library
        self._has_foreign_tensors = False
        self.device = tensor.device

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        raise NotImplementedError

    def allocate(self, size: int, alignment: int) -> tuple[int, Any]:
        """Returns the address of memory for the library, and the tensor that owns it. So the tensors' library reuses the
        memory in the order of its streams."""
        tensor = self.empty((size,), np.dtype(np.uint8))
        if geometry(tensor).ctypes.data % alignment != 0:
            tensor = self.empty((size + alignment,), np.dtype(np.uint8))
        address = geometry(tensor).ctypes.data
        return address + -address % alignment, tensor

    def owns(self, tensor: Any) -> bool:
        raise NotImplementedError

    def accepts(self, x: Any, device_number: int | None) -> bool:
        """Returns True if x can be multiplied with tensors of that CUDA device."""
        return self.owns(x) or (device_number is not None and _dlpack.device_of(x) == device_number)

    def adopt(self, tensor: Any) -> Any:
        """Returns the tensor as one of the library, without a copy."""
        if self.owns(tensor):
            return tensor
        self._has_foreign_tensors = True
        return self._library.from_dlpack(tensor)

    def wait_for_foreign_tensors(self, stream: Any) -> None:
        """Waits for the stream if it uses arrays of other libraries. These libraries do not know the stream, and may change
        their arrays after the call."""
        if self._has_foreign_tensors:
            stream.synchronize()

    def as_result(self, tensor: Any) -> Any:
        return tensor


class TorchTensors(_LibraryTensors):
    """torch's tensors, as _torch.as_stored() gives them."""

    name = "torch"

    def __init__(self, tensor: Any):
        super().__init__(sys.modules["torch"], tensor)

    def owns(self, tensor: Any) -> bool:
        return _torch.is_tensor(tensor) and tensor.is_cuda and tensor.device == self.device

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return _torch.empty(shape, dtype, self.device)

    def copy_of(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns a dense copy of the tensor, reshaped, then broadcast."""
        copy = self.empty(broadcast, dtype)
        copy.copy_(tensor.reshape(shape).expand(broadcast))
        return copy

    def assign(self, target: Any, source: Any) -> None:
        target.copy_(source)

    def stream(self) -> int:
        stream: int = self._library.cuda.current_stream(self.device).cuda_stream
        return stream

    def finish(self) -> None:
        self.wait_for_foreign_tensors(self._library.cuda.current_stream(self.device))

    def current(self) -> ContextManager[Any]:
        device: ContextManager[Any] = self._library.cuda.device(self.device)
        return device


class CupyTensors(_LibraryTensors):
    """CuPy's arrays."""

    name = "cupy"

    def __init__(self, tensor: Any):
        super().__init__(importlib.import_module("cupy"), tensor)
        self._cupy = self._library

    def owns(self, tensor: Any) -> bool:
        return isinstance(tensor, self._cupy.ndarray) and tensor.device == self.device

    def adopt(self, tensor: Any) -> Any:
        with self.current():
            return super().adopt(tensor)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        with self.current():
            return self._cupy.empty(shape, dtype)

    def copy_of(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...], dtype: np.dtype) -> Any:
        """Returns a dense copy of the tensor, reshaped, then broadcast."""
        copy = self.empty(broadcast, dtype)
        self.assign(copy, tensor.reshape(shape))
        return copy

    def assign(self, target: Any, source: Any) -> None:
        with self.current():
            target[...] = source

    def stream(self) -> int:
        with self.current():
            stream: int = self._cupy.cuda.get_current_stream().ptr
        return stream

    def finish(self) -> None:
        with self.current():
            self.wait_for_foreign_tensors(self._cupy.cuda.get_current_stream())

    def current(self) -> ContextManager[Any]:
        device: ContextManager[Any] = self.device
        return device


class DlpackTensors:
    """Arrays of libraries whose streams and allocator are not known. A call uses such arrays in the default stream, does not
    copy them, and returns when its work is done."""

    name = "DLPack"
    allocate = None  # the library allocates
    _number: int

    def __init__(self, example: Any):
        self._example = example
        number = _dlpack.device_of(example)
        assert number is not None, "_tensors_of() has seen that the array is on a device"
        self._number = number
        self.device = f"cuda:{self._number}"

    def accepts(self, x: Any, device_number: int | None) -> bool:
        return _dlpack.device_of(x) == self._number

    def adopt(self, tensor: Any) -> _dlpack.DeviceArray:
        return _dlpack.import_array(tensor, _dlpack.DEFAULT_STREAM)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> _dlpack.DeviceArray:
        return _dlpack.DeviceArray.empty(shape, dtype, self._number)

    def copy_of(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...], dtype: np.dtype) -> Any:
        """Raises ValueError: there is no allocator for a copy."""
        array = geometry(tensor)
        raise ValueError(f"an array of {array.dtype} {array.shape} with strides of {array.strides} bytes cannot be used "
                         f"for {dtype} {broadcast} without a copy, which kintsugi makes of torch's and CuPy's tensors "
                         "alone: give it in that type, with unit stride along rows or columns, and an out of its own")

    def stream(self) -> None:
        """Returns None: the call uses the default stream, and waits for it."""
        return None

    def finish(self) -> None:
        pass

    def as_result(self, array: _dlpack.DeviceArray) -> Any:
        return in_library_of(self._example, array)

    def current(self) -> ContextManager[Any]:
        return _dlpack.driver.device(self._number)


def device_context(number: int) -> ContextManager[Any]:
    """Returns a context in which the device is torch's current device. (_core.matmul() multiplies no other device tensors than
    torch's.)"""
    device: ContextManager[Any] = sys.modules["torch"].cuda.device(number)
    return device


Tensors = Union[TorchTensors, CupyTensors, DlpackTensors]


def _tensors_of(x: Any) -> Tensors | None:
    if _torch.is_tensor(x):
        return TorchTensors(x) if x.is_cuda else None
    if type(x).__module__.partition(".")[0] == "cupy" and hasattr(x, "__cuda_array_interface__"):
        return CupyTensors(x)
    return None if _dlpack.device_of(x) is None else DlpackTensors(x)


def common_tensors(given: dict[str, Any]) -> Tensors | None:
    """Returns the kind of the tensors among the arguments: that of torch or CuPy if an argument belongs to one of them, else
    DlpackTensors; None if no argument is on a device. `given`: arguments by name. Raises TypeError unless all tensors are on
    one device."""
    found = {name: _tensors_of(x) for name, x in given.items()}
    on_device = {name: tensors for name, tensors in found.items() if tensors is not None}
    if not on_device:
        return None
    first = min(on_device, key=lambda name: isinstance(on_device[name], DlpackTensors))  # torch's and CuPy's before DLPack's
    tensors, device_number = on_device[first], _dlpack.device_of(given[first])
    for name, x in given.items():
        if not tensors.accepts(x, device_number):
            raise TypeError(f"{first} is a {tensors.name} tensor on {tensors.device} and {name} is not: a "
                            f"{type(x).__name__}{_place(x)}")
    return tensors


def _place(x: Any) -> str:
    return f" on {x.device}" if hasattr(x, "device") else ""
