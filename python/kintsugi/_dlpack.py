"""Arrays in device memory by the DLPack protocol (https://dmlc.github.io/dlpack): imported from other libraries and
exported to them."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator

import numpy as np

from kintsugi import _core

CUDA, CUDA_MANAGED = 2, 13  # DLDeviceType
DEFAULT_STREAM = 1  # CUDA's default stream, as the protocol numbers streams
_NEWEST_VERSION = (1, 0)


class Driver:
    """CUDA's driver, for results in memory that no other library allocates."""

    @contextlib.contextmanager
    def device(self, number: int) -> Iterator[None]:
        """A context manager that makes the device's primary context the thread's current context."""
        outer = _core.enter_device(number)
        try:
            yield
        finally:
            _core.leave_device(outer)

    def allocate(self, number: int, size: int) -> tuple[int, Any]:
        """Returns the address of new memory, and its owner. When the owner is deleted, the memory is freed, after all work
        of the device."""
        with self.device(number):
            return _core.allocate_on_device(number, size)


driver = Driver()


class DeviceArray:
    """An array in the memory of a CUDA device. It is the result of a product if the operands' library cannot import the
    result by DLPack.
    numpy cannot read it; every library with from_dlpack can take it.

    Attributes:
        shape, dtype: as numpy's.
        device: the device's number.
    """

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype,
                 device: int, read_only: bool = False, owner: Any = None):
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self._read_only = read_only
        self._address = address
        self._strides = strides  # in bytes; None: C order
        self._owner = owner  # of the memory

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype, device: int) -> DeviceArray:
        """Returns a new array, which owns its memory."""
        size = math.prod(shape) * dtype.itemsize
        address, owner = driver.allocate(device, size) if size > 0 else (0, None)
        return cls(address, shape, None, dtype, device, owner=owner)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self._address, self._read_only),
                "strides": self._strides, "version": 3, "stream": None}

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Returns a capsule with the array. No stream must wait for the elements, since they are complete."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("this array can only be used where it is: it is not copied, nor moved to another device")
        return _core.export_dlpack(self, self._address, self.shape, self._strides, self.dtype.str, self.device)

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} can neither be pickled nor copied, since its memory is on the device: a library takes it by "
                        "its from_dlpack()")

    def __repr__(self) -> str:
        return f"<kintsugi array on cuda:{self.device}, shape {self.shape}, {self.dtype}>"


def device_of(x: Any) -> int | None:
    """Returns the number of x's CUDA device by DLPack; None if x is not on a CUDA device, or has no DLPack."""
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        return None
    kind, number = x.__dlpack_device__()
    return int(number) if kind in (CUDA, CUDA_MANAGED) else None


def import_array(x: Any, stream: int) -> DeviceArray:
    """Returns x without a copy. Work on `stream` is ordered after the writes of x's library. The library gets x back when
    the returned array is deleted."""
    try:
        capsule = x.__dlpack__(stream=stream, max_version=_NEWEST_VERSION)
    except TypeError:  # The library knows only the first version of the protocol.
        capsule = x.__dlpack__(stream=stream)
    address, shape, strides, typestr, device, read_only, owner = _core.import_dlpack(capsule, x)
    return DeviceArray(address, shape, strides, np.dtype(typestr), device, read_only, owner)
