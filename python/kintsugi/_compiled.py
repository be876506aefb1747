"""The compiled path of products and plans, kintsugi._core, if the wheel has one for this Python. Its functions compute the
common cases and return NotImplemented for all others, which the Python code computes; results and errors are the same."""

from __future__ import annotations

import ctypes
from typing import Any

from kintsugi import _torch


class Absent:
    """Replaces the compiled path if there is none; it computes nothing."""

    multiply = execute = staticmethod(lambda *_: NotImplemented)
    thread = last = forget = release_memory = accept_host = staticmethod(lambda *_: None)


core: Any = Absent
try:
    from kintsugi import _core as core
except ImportError:  # the wheel was built without a compiler, or this is no CPython
    pass


def bind(library: ctypes.CDLL, error: type[Exception]) -> None:
    """Gives the compiled path the library that the package has loaded, and the class of its errors."""
    if core is not Absent:
        functions = (library.kintsugi_gemm, library.kintsugi_plan_execute, library.kintsugi_status_name,
                     library.kintsugi_last_error)
        core.bind(*(ctypes.cast(function, ctypes.c_void_p).value for function in functions), error, _torch.note_write)
