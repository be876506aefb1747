"""Tensors in the memory of a CUDA device: torch's and CuPy's. Neither is imported before one of its tensors comes."""

from __future__ import annotations

import importlib
from typing import Any, ContextManager

import numpy as np


class _Memory:
    """Device memory as numpy sees memory, for its arithmetic of shapes, strides and addresses alone."""

    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = {key: interface[key] for key in ("shape", "typestr", "data", "strides", "version")
                                    if key in interface}


def geometry(tensor: Any) -> np.ndarray:
    """An array of the tensor's type, shape, strides and address. Its elements are on the device: never read one."""
    interface = tensor.__cuda_array_interface__
    if 0 in interface["shape"]:
        return np.empty(interface["shape"], np.dtype(interface["typestr"]))
    return np.asarray(_Memory(interface))


class TorchTensors:
    """The tensors of torch on one device, in torch's current stream there and from its allocator."""

    name = "torch"

    def __init__(self, tensor: Any):
        self._torch = importlib.import_module("torch")
        self.device = tensor.device

    def owns(self, tensor: Any) -> bool:
        return getattr(tensor, "is_cuda", False) and tensor.device == self.device

    def plain(self, tensor: Any, name: str) -> Any:
        """The tensor as its memory has it: conjugation and sign done."""
        if tensor.requires_grad and self._torch.is_grad_enabled():
            raise TypeError(f"{name} requires a gradient, which kintsugi does not compute; {name}.detach() has none")
        return tensor.detach().resolve_conj().resolve_neg()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype.name), device=self.device)

    def copy_of(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...], dtype: np.dtype) -> Any:
        """Dense, reshaped, then broadcast."""
        copy = self.empty(broadcast, dtype)
        copy.copy_(tensor.reshape(shape).expand(broadcast))
        return copy

    def assign(self, target: Any, source: Any) -> None:
        target.copy_(source)

    def stream(self) -> int:
        return self._torch.cuda.current_stream(self.device).cuda_stream

    def current(self) -> ContextManager[Any]:
        return self._torch.cuda.device(self.device)


class CupyTensors:
    """The arrays of CuPy on one device, in CuPy's current stream and from its allocator."""

    name = "cupy"

    def __init__(self, tensor: Any):
        self._cupy = importlib.import_module("cupy")
        self.device = tensor.device

    def owns(self, tensor: Any) -> bool:
        return isinstance(tensor, self._cupy.ndarray) and tensor.device == self.device

    def plain(self, tensor: Any, name: str) -> Any:
        return tensor

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        with self.current():
            return self._cupy.empty(shape, dtype)

    def copy_of(self, tensor: Any, shape: tuple[int, ...], broadcast: tuple[int, ...], dtype: np.dtype) -> Any:
        """Dense, reshaped, then broadcast."""
        copy = self.empty(broadcast, dtype)
        self.assign(copy, tensor.reshape(shape))
        return copy

    def assign(self, target: Any, source: Any) -> None:
        with self.current():
            target[...] = source

    def stream(self) -> int:
        with self.current():
            return self._cupy.cuda.get_current_stream().ptr

    def current(self) -> ContextManager[Any]:
        return self.device


def _tensors_of(x: Any) -> TorchTensors | CupyTensors | None:
    if getattr(x, "is_cuda", False):
        return TorchTensors(x)
    if type(x).__module__.partition(".")[0] == "cupy" and hasattr(x, "__cuda_array_interface__"):
        return CupyTensors(x)
    return None


def common_tensors(given: dict[str, Any]) -> TorchTensors | CupyTensors | None:
    """What the tensors among those are, by their names; None: there is none. All or none of them have to be tensors."""
    found = {name: _tensors_of(x) for name, x in given.items()}
    on_device = {name: tensors for name, tensors in found.items() if tensors is not None}
    if not on_device:
        return None
    first, tensors = next(iter(on_device.items()))
    for name, x in given.items():
        if not tensors.owns(x):
            raise TypeError(f"{first} is a {tensors.name} tensor on {tensors.device} and {name} is not: a "
                            f"{type(x).__name__}{_place(x)}")
    return tensors


def _place(x: Any) -> str:
    return f" on {x.device}" if hasattr(x, "device") else ""
