"""Plans of the C ABI: the options they are made with, the errors and warnings they give."""

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

    def number(value: int | None, name: str, most: int) -> int:
        if value is not None and value > most:  # ctypes would keep only its low bits
            raise ValueError(f"{name} = {value} is more than {most}")
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
    """If the call inside fails and an allocation failed, the error is raised from that of the tensors' library."""
    if allocator is not None:
        allocator.errors.clear()  # those of earlier calls of a plan
    try:
        yield
    except KintsugiError as error:
        if allocator is None or not allocator.errors:
            raise
        raise error from allocator.errors[-1]


def describe(plan: _abi.Owned) -> dict[str, Any]:
    return _abi.read_json(lambda *buffer: library.kintsugi_plan_describe(plan.pointer, *buffer))


class MissingEngineWarning(RuntimeWarning):
    """An engine that would be quicker cannot run here; products are right, and may take many times as long."""


_warned = False


def warn_once(plan: _abi.Owned) -> None:
    """Gives matmul()'s caller the warnings of the process's first plan on the CPU for which no engine was named."""
    global _warned
    if _warned:
        return
    _warned = True
    _compiled.core.accept_host(True)
    for text in describe(plan)["warnings"]:
        warnings.warn(text, MissingEngineWarning, stacklevel=4)
