"""Arrays in device memory by the DLPack protocol (https://dmlc.github.io/dlpack): imported from other libraries and
exported to them."""

from __future__ import annotations

import contextlib
import ctypes
import math
import weakref
from typing import Any, Iterator

import numpy as np

CUDA, CUDA_MANAGED = 2, 13  # DLDeviceType
DEFAULT_STREAM = 1  # CUDA's default stream, as the protocol numbers streams
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_NEWEST_VERSION = (1, 0)
_IS_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}  # DLDataTypeCode

# Names of capsules. A capsule has a pointer to its name, so the names must live as long as the module.
_PLAIN, _USED_PLAIN = b"dltensor", b"used_dltensor"
_VERSIONED, _USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"

_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class _ElementType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _ElementType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


def _of_python(name: str, result: Any, *arguments: Any) -> Any:
    """Returns a function of Python's C API."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


# These functions take a capsule's address, since a capsule that is being destroyed must not get a new reference.
_capsule_is_valid = _of_python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_capsule_pointer = _of_python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_rename_capsule = _of_python("PyCapsule_SetName", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_make_capsule = _of_python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)


class Driver:
    """Functions of CUDA's driver for results in memory that no other library allocates."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._contexts: dict[int, ctypes.c_void_p] = {}  # primary contexts by device, never released
        self._call("cuInit", ctypes.c_uint(0))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status == _OUT_OF_MEMORY:
            raise MemoryError(f"{name}: the device has no memory left")
        if status != 0:
            raise RuntimeError(f"{name} failed with the driver's error {status}")

    def _context(self, number: int) -> ctypes.c_void_p:
        if number not in self._contexts:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self._call("cuDeviceGet", ctypes.byref(device), number)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self._contexts[number] = context
        return self._contexts[number]

    @contextlib.contextmanager
    def device(self, number: int) -> Iterator[None]:
        """A context manager that makes the device's primary context the thread's current context."""
        outer_context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(outer_context))
        self._call("cuCtxSetCurrent", self._context(number))
        try:
            yield
        finally:
            self._call("cuCtxSetCurrent", outer_context)

    def allocate(self, size: int) -> int:
        address = ctypes.c_void_p()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value or 0

    def free(self, device: int, address: int) -> None:
        """Waits for the device, so that no work uses the memory any more, and frees it."""
        with self.device(device):
            self._call("cuMemFree_v2", ctypes.c_void_p(address))


_driver: Driver | None = None


def driver() -> Driver:
    global _driver
    _driver = _driver or Driver()
    return _driver


class DeviceArray:
    """An array in the memory of a CUDA device. It is the result of a product if the operands' library cannot import the
    result by DLPack.
    numpy cannot read it; every library with from_dlpack can take it.

    Attributes:
        shape, dtype: as numpy's.
        device: the device's number.
    """

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype,
                 device: int, read_only: bool = False):
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self._read_only = read_only
        self._address = address
        self._strides = strides  # in bytes; None: C order

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype, device: int) -> DeviceArray:
        """Returns a new array, which owns its memory."""
        size = math.prod(shape) * dtype.itemsize
        if size == 0:
            return cls(0, shape, None, dtype, device)
        with driver().device(device):
            array = cls(driver().allocate(size), shape, None, dtype, device)
        weakref.finalize(array, driver().free, device, array._address).atexit = False
        return array

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
        return _export(self)

    def __repr__(self) -> str:
        return f"<kintsugi array on cuda:{self.device}, shape {self.shape}, {self.dtype}>"


# Objects that consumers of capsules still use. The key is the address that the consumer passes to the deleter.
_exported: dict[int, tuple[Any, ...]] = {}


@_Deleter
def _delete_exported(managed: int) -> None:
    _exported.pop(managed, None)


@_Destructor
def _destroy_capsule(capsule: int) -> None:
    if _capsule_is_valid(capsule, _PLAIN):  # True unless a consumer took the capsule, since it would have renamed it
        _exported.pop(_capsule_pointer(capsule, _PLAIN), None)


def _export(array: DeviceArray) -> Any:
    dtype = array.dtype
    code = next(code for code, kind in _KINDS.items() if kind == dtype.kind)
    integers = ctypes.c_int64 * len(array.shape)
    steps = [math.prod(array.shape[i + 1:]) for i in range(len(array.shape))]
    if array._strides is not None:
        steps = [step // dtype.itemsize for step in array._strides]
    shape, strides = integers(*array.shape), integers(*steps)
    managed = _Managed(deleter=ctypes.cast(_delete_exported, ctypes.c_void_p))
    managed.tensor = _Tensor(array._address, _Device(*array.__dlpack_device__()), len(array.shape),
                             _ElementType(code, 8 * dtype.itemsize, 1),
                             ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
                             ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), 0)
    address = ctypes.addressof(managed)
    _exported[address] = (array, managed, shape, strides)
    return _make_capsule(address, _PLAIN, _destroy_capsule)


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
    capsule_address = id(capsule)
    if _capsule_is_valid(capsule_address, _VERSIONED):
        managed: Any = _ManagedVersioned.from_address(_capsule_pointer(capsule_address, _VERSIONED))
        if managed.major > _NEWEST_VERSION[0]:
            raise BufferError(f"DLPack {managed.major}.{managed.minor} is unknown here; version 1 was requested")
        used, read_only = _USED_VERSIONED, bool(managed.flags & _IS_READ_ONLY)
    elif _capsule_is_valid(capsule_address, _PLAIN):
        managed = _Managed.from_address(_capsule_pointer(capsule_address, _PLAIN))
        used, read_only = _USED_PLAIN, False
    else:
        raise BufferError(f"__dlpack__ of a {type(x).__name__} gives no capsule with a tensor")
    array = _array_of(managed.tensor, read_only)
    _rename_capsule(capsule_address, used)
    if managed.deleter:
        weakref.finalize(array, _Deleter(managed.deleter), ctypes.addressof(managed)).atexit = False
    return array


def _array_of(tensor: _Tensor, read_only: bool) -> DeviceArray:
    element = tensor.dtype
    if element.code not in _KINDS or element.lanes != 1:
        raise TypeError(f"DLPack's type {element.code} of {element.bits} bits in {element.lanes} lanes is no type of numpy")
    dtype = np.dtype(f"{_KINDS[element.code]}{element.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim]) if tensor.strides else None
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, tensor.device.number, read_only)
