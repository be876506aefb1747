"""Products of torch's tensors in torch's way: operators with gradients, and routes for unchanged programs and models.

    >>> import kintsugi.torch
    >>> y = torch.ops.kintsugi.linear(x, weight, bias, accuracy="fp64")    # mm, bmm, addmm, baddbmm, linear
    >>> with kintsugi.torch.enable(), kintsugi.torch.use(accuracy="exact"):
    ...     model(x).sum().backward()
    >>> kintsugi.torch.statistics()

docs/PYTHON.md has more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

import kintsugi
from kintsugi import _core, _torch_ops, _torch_routes
from kintsugi._accuracy import Accuracy

__all__ = ["disable", "enable", "prepare", "statistics", "use"]

_ONE = np.ones((1, 1))
_PROBLEM = _core.problem(_ONE, _ONE, _ONE, 1)  # one that every accuracy is planned for


def _as_text(accuracy: Accuracy | None) -> str | None:
    """Returns the accuracy as operators take it. Raises KintsugiError if it is none."""
    _core.plan(_PROBLEM, (accuracy, None, None, None, None, None), None, None)
    return None if accuracy is None else str(accuracy)


class use:
    """A context that sets the accuracy of operators that name none, and of routed products, in this thread.

    Products of backward() have the accuracy of the forward operator if that is one of torch.ops.kintsugi; of products
    that enable() routes they have the accuracy that the thread has set when it calls backward(); before torch 2.15
    those of backward()'s own threads, as on a GPU, have the accuracy of enable().

    Args:
        accuracy: as of kintsugi.matmul(). None: the type's own.

    Raises:
        KintsugiError: the accuracy is none.
    """

    def __init__(self, accuracy: Accuracy | None):
        self._accuracy = _as_text(accuracy)

    def __enter__(self) -> None:
        self._was_set, self._before = _torch_ops.has_thread_accuracy(), _torch_ops.thread_accuracy()
        _torch_ops.set_thread_accuracy(self._accuracy)

    def __exit__(self, *_: Any) -> None:
        if self._was_set:
            _torch_ops.set_thread_accuracy(self._before)
        else:
            _torch_ops.remove_thread_accuracy()


class _Enabled:
    """The result of enable(). As a context it ends by what was before enable()."""

    def __init__(self, before: tuple[bool, str | None]):
        self._before = before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        was_enabled, accuracy = self._before
        if was_enabled:
            _torch_routes.install(accuracy)
        else:
            _torch_routes.remove()


def enable(accuracy: Accuracy | None = None) -> _Enabled:
    """Routes products of unchanged programs to kintsugi, in the whole process; as a context until its end.

    Routed are dense products of float32, float64, complex64 and complex128 on the CPU and on CUDA devices by torch's
    mm, bmm, addmm and baddbmm, thus matmul, linear, einsum, torch.nn and their gradients; addmv, mv, dot and vdot where
    an accuracy is set. Convolutions, torch.linalg's factorisations and attention in one kernel are torch's.
    statistics() counts.

    Args:
        accuracy: of all routed products of threads that have no use(). None: the type's own.

    Raises:
        KintsugiError: the accuracy is none.
        ImportError: this torch has no torch.library.get_kernel.
    """
    if not hasattr(torch.library, "get_kernel"):
        raise ImportError(f"enable() needs torch.library.get_kernel, and torch {torch.__version__} has none")
    before = _torch_routes.is_installed(), _torch_routes.default_accuracy()
    _torch_routes.install(_as_text(accuracy))
    return _Enabled(before)


def disable() -> None:
    """Ends what enable() has begun. All products are torch's again."""
    _torch_routes.remove()


def statistics(*, reset: bool = False) -> dict[str, dict[str, Any]]:
    """Returns how many calls of torch's operators enable() has routed since the start or the last reset.

    Args:
        reset: True: begin to count anew.

    Returns:
        By operator: {"routed": count, "left": {reason: count}}. A reason is a type that is not multiplied, "mixed
        types", "empty", "no accuracy set" (of addmv, dot and vdot), "fused" (attention) or "refused": what torch's
        kernel refuses, or resizes first, or computes in another way.
    """
    return _torch_routes.statistics(reset)


class _PreparedLinear(torch.nn.Linear):
    """A Linear whose weight is split once. prepare() makes a Linear one by setting its class."""

    _accuracy: str | None
    _split: tuple[Any, kintsugi.Prepared] | None = None  # what the weight was, and its split

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_split"}

    def _is_plain(self, input: Tensor) -> bool:
        """Returns True if a split weight can be used: nothing needs a gradient, traces, or converts the operands."""
        if torch.compiler.is_compiling() or torch.is_autocast_enabled(input.device.type):
            return False
        if torch._C._are_functorch_transforms_active() or torch._C._len_torch_dispatch_stack() > 0:
            return False
        if _torch_ops.has_forward_mode():
            return False
        tensors = [x for x in (input, self.weight, self.bias) if x is not None]
        if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
            return False
        is_product = input.dim() > 0 and input.shape[-1] == self.weight.shape[1]
        return (is_product and input.numel() > 0 and self.weight.numel() > 0 and input.dtype in _torch_ops.TYPES
                and not self.weight.is_inference()
                and all(type(x) in (Tensor, torch.nn.Parameter) and x.dtype is input.dtype and x.device == input.device
                        for x in tensors))

    def _prepared_weight(self, accuracy: Any) -> kintsugi.Prepared:
        weight = self.weight
        state = (weight.data_ptr(), weight._version, weight.shape, weight.stride(), weight.dtype, weight.device,
                 accuracy)
        if self._split is None or self._split[0] != state:
            split = kintsugi.prepare(_torch_ops.stored(weight).mT, side="b", accuracy=accuracy)
            self._split = state, split
            return split
        return self._split[1]

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor
        if not self._is_plain(input):
            result = torch.ops.kintsugi.linear(input, self.weight, self.bias, accuracy=self._accuracy)
            return result
        accuracy: Any = _torch_ops.thread_accuracy() if self._accuracy is None else self._accuracy
        rows = _torch_ops.stored(input).reshape(-1, self.in_features)
        out = None
        if self.bias is not None:
            out = rows.new_empty((rows.shape[0], self.out_features))
            out.copy_(self.bias)
        result = kintsugi.matmul(rows, self._prepared_weight(accuracy), beta=0 if out is None else 1, out=out,
                                 accuracy=accuracy)
        return result.reshape(*input.shape[:-1], self.out_features)


def prepare(model: torch.nn.Module, accuracy: Accuracy | None = None) -> torch.nn.Module:
    """Makes the model's Linear layers split their weights once, for inference.

    A weight is split at the first call, and again after it has changed in place or was replaced; a change through
    weight.data is not noticed. Where a gradient is needed, under autocast, torch.compile and torch.func the layer calls
    torch.ops.kintsugi.linear, which splits in every call.

    Args:
        model: changed in place. Only modules whose class is torch.nn.Linear itself, with weights that kintsugi
            multiplies, are changed. Names, parameters and state_dict() stay.
        accuracy: as of kintsugi.matmul(); None: that of use(), else the type's own.

    Returns:
        The model.

    Raises:
        KintsugiError: the accuracy is none.
    """
    text = _as_text(accuracy)
    for module in model.modules():
        is_plain = type(module) is torch.nn.Linear and module.weight.dtype in _torch_ops.TYPES
        if is_plain or type(module) is _PreparedLinear:
            module.__class__ = _PreparedLinear
            setattr(module, "_accuracy", text)
    return model
