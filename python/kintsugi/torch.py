"""Products of torch's tensors in torch's way: operators with gradients, and routes for unchanged programs and models.

    >>> import kintsugi.torch
    >>> y = torch.ops.kintsugi.linear(x, weight, bias, accuracy="fp64")    # mm, bmm, addmm, baddbmm, linear
    >>> with kintsugi.torch.enable(), kintsugi.torch.use(accuracy="exact"):
    ...     model(x).sum().backward()
    >>> kintsugi.torch.statistics()

docs/PYTHON.md has more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
        _core.note_use()
        _torch_ops.has_use = True

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


class _Split(NamedTuple):
    """A weight as it was, and its split. The number is prepared_linear's."""

    weight: Tensor
    version: int
    address: int
    accuracy: str | None
    prepared: kintsugi.Prepared
    number: int


class _PreparedLinear(torch.nn.Linear):
    """A Linear whose weight is split once. prepare() makes a Linear one by setting its class."""

    _accuracy: str | None
    _split: _Split | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_split"}

    def _split_anew(self, weight: Tensor, input: Tensor, accuracy: Any) -> _Split | None:
        """Returns the weight's split; None if a product with it is the operator's: if something traces, converts or
        differentiates it."""
        if torch.is_autocast_enabled(weight.device.type) or _torch_ops.has_forward_mode():
            return None
        if torch._C._are_functorch_transforms_active() or torch._C._len_torch_dispatch_stack() > 0:
            return None
        if torch.is_grad_enabled() and (weight.requires_grad or input.requires_grad):
            return None
        if type(weight) not in (Tensor, torch.nn.Parameter) or weight.numel() == 0 or weight.is_inference():
            return None
        if weight.dtype not in _torch_ops.TYPES:
            return None
        prepared = kintsugi.prepare(_torch_ops.stored(weight).mT, side="b", accuracy=accuracy)
        self._split = _Split(weight, weight._version, weight.data_ptr(), accuracy, prepared,
                             _torch_ops.number_of(prepared))
        return self._split

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor
        parameters = self._parameters  # an attribute of a module takes four times as long
        if torch.compiler.is_compiling() or "weight" not in parameters:  # a parametrization has it
            result = torch.ops.kintsugi.linear(input, self.weight, self.bias, accuracy=self._accuracy)
            return result
        weight: Any = parameters["weight"]
        bias = parameters["bias"]
        accuracy: Any = _torch_ops.thread_accuracy() if self._accuracy is None else self._accuracy
        split = self._split
        if (split is None or split.weight is not weight or split.version != weight._version
                or split.accuracy != accuracy or split.address != weight.data_ptr()):
            split = self._split_anew(weight, input, accuracy)
        if split is None:
            result = torch.ops.kintsugi.linear(input, weight, bias, accuracy=self._accuracy)
        else:
            result = _prepared_linear(input, weight, bias, accuracy, split.number)
        return result


_prepared_linear = torch.ops.kintsugi.prepared_linear.default


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
