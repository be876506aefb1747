"""torch's tensors, on any device. This module does not import torch: there are no tensors unless the program has
imported it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(x: Any) -> bool:
    kind: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    return isinstance(x, kind)


def _is_lazy(tensor: Any) -> bool:
    """Returns True if the elements are conjugates or negatives of the numbers in memory, as those of x.conj()."""
    return bool(tensor.is_conj() or tensor.is_neg())


def check_class(x: Any, name: str) -> None:
    """Raises TypeError for a tensor of a subclass, which may mean another product."""
    torch = sys.modules["torch"]
    if type(x) not in (torch.Tensor, torch.nn.Parameter):
        raise TypeError(f"{name} is a {type(x).__name__}, a subclass of torch.Tensor, which may have a mask or be a "
                        f"part of a larger tensor: {name}.as_subclass(torch.Tensor) has the elements of its memory alone")
    if str(x.dtype).startswith(("torch.bfloat16", "torch.float8")):
        raise TypeError(f"{name} is {x.dtype}; kintsugi multiplies float32, float64, complex64 and complex128: "
                        f"{name}.float() is float32 and has all its numbers")


def has_operators() -> bool:
    """Returns True for a torch in which kintsugi has operators."""
    torch = sys.modules["torch"]
    return hasattr(getattr(torch, "library", None), "register_vmap")


def needs_operator(x: Any) -> bool:
    """Returns True for a tensor whose product is an operator's: it has a gradient, or may have a tangent or a dimension
    of vmap."""
    if not is_tensor(x) or not has_operators():
        return False
    torch: Any = sys.modules["torch"]
    return bool(x.requires_grad and torch.is_grad_enabled() or torch.autograd.forward_ad._current_level >= 0
            or torch._C._are_functorch_transforms_active())


def as_stored(x: Any, name: str) -> Any:
    """Returns a tensor without autograd whose memory has x's elements. The tensor shares x's memory, or is a copy if x
    is lazy, since neither DLPack nor an address shows that a tensor is lazy. Returns x unchanged if x is not a
    tensor."""
    if not is_tensor(x):
        return x
    check_class(x, name)
    if x.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise TypeError(f"{name} requires a gradient, which this call does not compute: matmul without out does, with "
                        f"a newer torch; {name}.detach() has none")
    return x.detach().resolve_conj().resolve_neg()


def dtype_of(tensor: Any) -> np.dtype[Any]:
    """Returns numpy's type of a tensor's elements."""
    return np.dtype(str(tensor.dtype).partition(".")[2])


def note_write(tensor: Any) -> None:
    """Tells autograd that the tensor's memory is about to change, as torch's own functions do: a gradient
    that needs the old elements is then an error."""
    if not is_tensor(tensor):
        return
    graph: Any = getattr(getattr(sys.modules["torch"], "autograd", None), "graph", None)
    if hasattr(graph, "increment_version"):  # since torch 2.1
        graph.increment_version(tensor)
    else:
        tensor[None][:0].zero_()  # the view is empty, so nothing is written


def give_back(out: Any, stored: Any) -> Any:
    """Returns `out`, after the elements of `stored` were copied into it if as_stored(out) was a copy."""
    if is_tensor(out) and _is_lazy(out):
        out.detach().copy_(stored)
    return out


def as_array(tensor: Any, name: str) -> np.ndarray[Any, Any]:
    """Returns the memory of a stored tensor on the CPU as an array."""
    if tensor.device.type != "cpu":
        raise TypeError(f"{name} is a torch tensor on {tensor.device}; kintsugi takes those on cpu and cuda")
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


def empty(shape: tuple[int, ...], dtype: np.dtype, device: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(shape, dtype=getattr(torch, dtype.name), device=device)
