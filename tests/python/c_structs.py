"""Structs of kintsugi.h and of DLPack through ctypes, for stand-ins of the library and of other libraries."""

import ctypes
import pathlib

import kintsugi

HOST, DEVICE = 0, 1
QUEUE_CUDA = 1
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
DEALLOCATE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Problem(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_int64) for name in (
        "m", "n", "k", "lda", "ldb", "ldc", "batch_count", "stride_a", "stride_b", "stride_c")] + [
            (name, ctypes.c_int32) for name in ("op_a", "op_b", "type_a", "type_b", "type_c", "type_scalar", "layout",
                                                "pointer_mode", "memory", "batch_kind", "prepared_a", "prepared_b", "adds_to_c",
                                                "native_elsewhere")]


class Queue(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("stream", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_char_p) for name in (
        "accuracy", "scheme", "engine", "policy", "accumulator")] + [
            ("workspace_limit", ctypes.c_int64), ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32),
            ("allocate", ctypes.c_void_p), ("deallocate", ctypes.c_void_p), ("allocator_user", ctypes.c_void_p),
            ("queue", Queue)]


class Operands(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in (
        "alpha", "a", "b", "beta", "c", "prepared_a", "prepared_b", "workspace")] + [
            ("workspace_size", ctypes.c_size_t), ("queue", Queue)]


# The library that the package has loaded.
library = ctypes.CDLL(str(pathlib.Path(kintsugi.__file__).with_name("libkintsugi.so.0")))


class DlDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class DlType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", DlDevice), ("ndim", ctypes.c_int32), ("dtype", DlType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class DlManaged(ctypes.Structure):
    _fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DlManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DlTensor)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"  # capsules point to them


def dl_capsule(managed):
    """A capsule with a DlManaged or DlManagedVersioned, which the caller keeps."""
    return _new_capsule(ctypes.addressof(managed), _PLAIN if isinstance(managed, DlManaged) else _VERSIONED, None)


def on_host(capsule):
    """The capsule, whose array is said to be on the host."""
    DlManaged.from_address(_capsule_pointer(capsule, _PLAIN)).tensor.device.type = 1
    return capsule
