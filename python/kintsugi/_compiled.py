"""The compiled path of products and plans, kintsugi._core, if the wheel has one for this Python. Its functions compute the
common cases, with the same results and errors as the Python code. For all other cases they return NotImplemented, and the
Python code computes them."""

from __future__ import annotations

import ctypes
from typing import Any

from kintsugi import _torch


class Absent:
    """Stands for the compiled path if there is none. It computes nothing."""

    multiply = execute = staticmethod(lambda *_: NotImplemented)
    thread = last = forget = release_memory = accept_host = staticmethod(lambda *_: None)


core: Any = Absent
try:
    from kintsugi import _core as core
except ImportError:  # The wheel was built without a compiler, or this Python is not CPython.
    pass


def bind(library: ctypes.CDLL, error: type[Exception]) -> None:
    """Passes the loaded library and the class of its errors to the compiled path."""
    if core is not Absent:
        functions = (library.kintsugi_gemm, library.kintsugi_plan_execute, library.kintsugi_status_name,
                     library.kintsugi_last_error)
        core.bind(*(ctypes.cast(function, ctypes.c_void_p).value for function in functions), error, _torch.note_write)
