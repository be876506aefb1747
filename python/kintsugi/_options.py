"""Options of the C ABI, and plans made with them: their errors, descriptions and warnings."""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from typing import Any, Iterator

from kintsugi import _abi, _compiled
from kintsugi._abi import KintsugiError, library, this_thread
from kintsugi._tensors import Allocator


def make_options(accuracy: str | float | None, scheme: str | None, engine: str | None, policy: str | None,
                 threads: int | None, workspace_limit: int | None) -> _abi.Options:
    def text(value: Any) -> bytes | None:
        return None if value is None else str(value).encode()

    def number(value: int | None, name: str, maximum: int) -> int:
        if value is not None and value > maximum:  # ctypes would silently drop the high bits
            raise ValueError(f"{name} = {value} is more than {maximum}")
        return value or 0

    return _abi.Options(struct_size=ctypes.sizeof(_abi.Options), accuracy=text(accuracy), scheme=text(scheme),
                        engine=text(engine), policy=text(policy), threads=number(threads, "threads", 2**31 - 1),
                        workspace_limit=number(workspace_limit, "workspace_limit", 2**63 - 1))


def make_plan(problem: _abi.Problem, options: _abi.Options, allocator: Allocator | None) -> _abi.Owned:
    if allocator is not None:
        allocator.set_callbacks(options)
    return _abi.Owned(library.kintsugi_plan_destroy, library.kintsugi_plan_create, this_thread.handle.pointer,
                      ctypes.byref(problem), ctypes.byref(options), uses=allocator)


@contextlib.contextmanager
def errors_of(allocator: Allocator | None) -> Iterator[None]:
    """A context manager for a call. If the call fails after a failed allocation, the error of the tensors' library becomes
    the cause of the call's error."""
    if allocator is not None:
        allocator.errors.clear()  # errors of earlier calls with the same plan
    try:
        yield
    except KintsugiError as error:
        if allocator is None or not allocator.errors:
            raise
        raise error from allocator.errors[-1]


def describe(plan: _abi.Owned) -> dict[str, Any]:
    return _abi.read_json(lambda *buffer: library.kintsugi_plan_describe(plan.pointer, *buffer))


class MissingEngineWarning(RuntimeWarning):
    """Warning that a faster engine cannot run here. Products are right but may take many times as long."""


_warned = False


def warn_once(plan: _abi.Owned) -> None:
    """Passes the plan's warnings to the caller of matmul(). Does so once per process: for the first plan on the CPU without
    a named engine."""
    global _warned
    if _warned:
        return
    _warned = True
    _compiled.core.accept_host(True)
    for text in describe(plan)["warnings"]:
        warnings.warn(text, MissingEngineWarning, stacklevel=4)
