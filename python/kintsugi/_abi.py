"""The C ABI of kintsugi.h through ctypes: structs, calls, errors."""

from __future__ import annotations

import copyreg
import ctypes
import json
import pathlib
import threading
from typing import Any, Callable

from kintsugi import _compiled, _log

SUCCESS = 0
OP_N, OP_T = 0, 1
COLUMN_MAJOR, ROW_MAJOR = 0, 1
BATCH_STRIDED, BATCH_POINTERS = 0, 1
HOST, DEVICE = 0, 1
QUEUE_CUDA = 1

ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
DEALLOCATE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class KintsugiError(Exception):
    """A call that failed. C is unchanged. The message contains the wrong values.

    Attributes:
        status: the library's name of the failure, such as "invalid_argument" or "contract_unreachable".
    """

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        """Makes unpickling work without __init__. BaseException would call it with its `args`, which has only the message,
        but __init__ takes (status, message)."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__


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


def _load() -> ctypes.CDLL:
    here = pathlib.Path(__file__).parent
    path = next(iter(sorted(here.glob("libkintsugi.so*"))), here / "libkintsugi.so")  # wheels name it by its SONAME
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"kintsugi: {error}. The wheel carries this library; install one with pip.") from error
    library.kintsugi_status_name.restype = ctypes.c_char_p
    library.kintsugi_last_error.restype = ctypes.c_char_p
    library.kintsugi_version.restype = ctypes.c_char_p
    library.kintsugi_destroy.restype = None
    library.kintsugi_plan_destroy.restype = None
    library.kintsugi_prepared_destroy.restype = None
    return library


library = _load()
_compiled.bind(library, KintsugiError)


def check(status: int) -> None:
    """Raises KintsugiError unless the status is success."""
    if status != SUCCESS:
        raise KintsugiError(library.kintsugi_status_name(status).decode(), library.kintsugi_last_error().decode())


def read_json(describe: Callable[[Any, ctypes.c_size_t, Any], int]) -> Any:
    """Returns the JSON document that a function of the ABI writes. It is called as describe(buffer, capacity, needed)."""
    needed = ctypes.c_size_t()
    check(describe(None, ctypes.c_size_t(0), ctypes.byref(needed)))
    capacity = 0
    while needed.value > capacity:  # repeated if the text has grown since it was measured
        capacity = needed.value
        buffer = ctypes.create_string_buffer(capacity)
        check(describe(buffer, ctypes.c_size_t(capacity), ctypes.byref(needed)))
    return json.loads(buffer.value.decode())


class Owned:
    """Owner of a handle, plan or prepared operand of the ABI.

    Attributes:
        uses: an object with functions that the library may call while this one lives.
    """

    def __init__(self, destroy: Callable[[Any], None], create: Callable[..., int], *arguments: Any, uses: Any = None):
        self.pointer = ctypes.c_void_p()
        self._destroy = destroy
        self.uses = uses
        check(create(*arguments, ctypes.byref(self.pointer)))

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._destroy(self.pointer)


class _Thread(threading.local):
    """State of one thread: its handle and the plan of its last product. After a product on the compiled path there is no
    plan; kintsugi._core keeps the product's problem and options instead."""

    def __init__(self) -> None:
        self.handle = Owned(library.kintsugi_destroy, library.kintsugi_create)
        check(library.kintsugi_set_log(self.handle.pointer, _log.sink, None))
        self.compiled = _compiled.core.thread(self.handle.pointer.value)
        self.plan: Owned | None = None

    def note_plan(self, plan: Owned) -> None:
        """Stores the plan of the thread's last product."""
        self.plan = plan
        _compiled.core.forget(self.compiled)


this_thread = _Thread()
