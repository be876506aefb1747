"""Products of unchanged programs: while routes are installed, torch's own operators of dense products on the CPU and on
CUDA devices have kernels that multiply by kintsugi, for all threads. They are below autograd, vmap, autocast and
compiled graphs, all of which stay torch's own. A call that is not kintsugi's goes on to torch's kernel."""

from __future__ import annotations

import threading
import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kintsugi import _core, _torch_ops
from kintsugi._torch_ops import TYPES, multiply, stored, thread_accuracy
from kintsugi._matmul import matmul_stored


class _Operator(NamedTuple):
    """One operator of aten. Its last two tensors are multiplied, and of three the first is added.

    Attributes:
        name: the name in statistics.
        ranks: the dimensions of the two tensors.
        into: the tensor of the result: None: a new one; "out": the argument of this name; "self": the first one.
        if_asked: True: memory bounds its time, so that it is routed only where an accuracy is set.
    """

    name: str
    ranks: tuple[int, int]
    into: str | None = None
    if_asked: bool = False


_OPERATORS = {
    "mm": _Operator("mm", (2, 2)),
    "mm.out": _Operator("mm", (2, 2), "out"),
    "bmm": _Operator("bmm", (3, 3)),
    "bmm.out": _Operator("bmm", (3, 3), "out"),
    "addmm": _Operator("addmm", (2, 2)),
    "addmm.out": _Operator("addmm", (2, 2), "out"),
    "addmm_": _Operator("addmm", (2, 2), "self"),
    "_addmm_activation": _Operator("addmm", (2, 2)),
    "baddbmm": _Operator("baddbmm", (3, 3)),
    "baddbmm.out": _Operator("baddbmm", (3, 3), "out"),
    "baddbmm_": _Operator("baddbmm", (3, 3), "self"),
    "addmv": _Operator("addmv", (2, 1), if_asked=True),
    "addmv.out": _Operator("addmv", (2, 1), "out", if_asked=True),
    "addmv_": _Operator("addmv", (2, 1), "self", if_asked=True),
    "dot": _Operator("dot", (1, 1), if_asked=True),
    "vdot": _Operator("vdot", (1, 1), if_asked=True),
}
# Attention whose products are parts of one kernel of torch's. Those of torch's SDPBackend.MATH are operators.
_FUSED_ATTENTION = ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
                    "_scaled_dot_product_flash_attention", "_scaled_dot_product_cudnn_attention")

_lock = threading.Lock()
_library: Any = None  # has the kernels while routes are installed
_accuracy: str | None = None  # where use() has set none
_counts: dict[tuple[str, str | None], int] = {}  # by operator and reason; None: routed


def _count(name: str, reason: str | None) -> None:
    with _lock:
        _counts[name, reason] = _counts.get((name, reason), 0) + 1


def statistics(reset: bool) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    with _lock:
        for (name, reason), count in _counts.items():
            entry = found.setdefault(name, {"routed": 0, "left": {}})
            if reason is None:
                entry["routed"] = count
            else:
                entry["left"][reason] = count
        for name, count in _core.route_counts(reset).items():
            found.setdefault(name, {"routed": 0, "left": {}})["routed"] += count
        if reset:
            _counts.clear()
    return found


class _Route:
    """The kernel of an operator for one device, or what a compiled kernel calls for all but plain products. `original`
    is torch's."""

    def __init__(self, name: str, device: str, original: Any):
        self._operator = _OPERATORS[name]
        self._activation = _activation_of(device) if name == "_addmm_activation" else None
        self._original = original
        self._keys = _keys_of(device)

    def __call__(self, *arguments: Any, **named: Any) -> Tensor:
        accuracy = thread_accuracy(_accuracy) if _torch_ops.has_use else _accuracy
        reason = self._why_left(accuracy, *arguments, **named)
        if reason is None:
            try:
                result = self._multiply(accuracy, *arguments, **named)
            except torch.cuda.OutOfMemoryError:
                raise
            except (TypeError, ValueError, RuntimeError):  # torch's kernel has the words for what does not go together
                reason = "refused"
        _count(self._operator.name, reason)
        return result if reason is None else self._original.call_boxed(self._keys, *arguments, **named)

    def _why_left(self, accuracy: str | None, *arguments: Tensor, out: Tensor | None = None, **_: Any) -> str | None:
        """Returns the reason for which a call goes to torch's kernel; None if it does not."""
        a, b = arguments[-2:]
        if a.dtype not in TYPES:
            return str(a.dtype).removeprefix("torch.")
        if self._operator.if_asked and accuracy is None:
            return "no accuracy set"
        if any(x.dtype is not a.dtype for x in arguments) or (out is not None and out.dtype is not a.dtype):
            return "mixed types"
        if (a.dim(), b.dim()) != self._operator.ranks or a.dim() == 3 and a.shape[0] != b.shape[0]:
            return "refused"
        return "empty" if a.numel() == 0 or b.numel() == 0 else None

    def _multiply(self, accuracy: str | None, *arguments: Tensor, alpha: Any = 1, beta: Any = 1,
                  out: Tensor | None = None, use_gelu: bool = False) -> Tensor:
        *added, a, b = arguments
        operator, c = self._operator, added[0] if added else None
        if operator.ranks == (1, 1):
            left = a.conj() if operator.name == "vdot" else a
            return multiply(left[None], b[:, None], None, (), 1, 0, accuracy=accuracy).reshape(())
        shape = (*a.shape[:-1], *b.shape[a.dim() - 1:])
        if operator.into is None:
            result = multiply(a, b, c, shape, alpha, beta, accuracy=accuracy)
            return result if self._activation is None else self._activation(result, use_gelu)
        target = c if operator.into == "self" else out
        assert target is not None  # by the operator's schema
        if target.shape != shape:
            if target.numel() > 0 or operator.into == "self":
                raise ValueError("torch's kernel resizes it, or refuses it")
            target.resize_(shape)
        if c is None or beta == 0 or c is target:
            beta = 0 if c is None else beta
            matmul_stored(stored(a), stored(b), alpha=alpha, beta=beta, out=stored(target), accuracy=accuracy)
        else:  # not in place: a or b may share memory with out, which c would overwrite
            stored(target).copy_(multiply(a, b, c, shape, alpha, beta, accuracy=accuracy))
        return target


def _keys_of(device: str) -> Any:
    return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, device))


def _count_attention(device: str, original: Any) -> Any:
    """Returns a kernel that counts the call and calls the original."""

    def attend(*arguments: Any, **named: Any) -> Any:
        _count("scaled_dot_product_attention", "fused")
        return original.call_boxed(_keys_of(device), *arguments, **named)

    return attend


def _activation_of(device: str) -> Any:
    """Returns what torch's kernel of _addmm_activation does with a product on a device."""
    approximation = "none" if device == "CPU" else "tanh"
    return lambda x, use_gelu: torch.ops.aten.gelu_(x, approximate=approximation) if use_gelu else torch.relu_(x)


def is_installed() -> bool:
    return _library is not None


def default_accuracy() -> str | None:
    return _accuracy


def install(accuracy: str | None) -> None:
    global _library, _accuracy
    with _lock:
        _accuracy = accuracy
        _core.set_route_accuracy(accuracy)
        if _library is not None:
            return
        library = torch.library.Library("aten", "IMPL")
        for device in ("CPU", "CUDA"):
            for name in (*_OPERATORS, *_FUSED_ATTENTION):
                if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", device):
                    continue
                original = torch.library.get_kernel(f"aten::{name}", device)
                kernel = _Route(name, device, original) if name in _OPERATORS else _count_attention(device, original)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "Warning only once for all operators")  # it is meant
                    library.impl(name, _core.route(name, kernel), device)
        _library = library


def remove() -> None:
    global _library
    with _lock:
        if _library is not None:
            _library._destroy()
        _library = None
