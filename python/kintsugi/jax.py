"""Products of JAX's arrays, on the CPU and on CUDA devices: a function for jit, vmap and grad.

    >>> import kintsugi.jax
    >>> jax.jit(jax.grad(lambda w: kintsugi.jax.matmul(x, w, accuracy="exact").sum()))(w)
"""

from __future__ import annotations

import ctypes
import functools
import math
import pathlib
from typing import Any

import jax
import jax.numpy as jnp

import kintsugi  # noqa: F401  # loads the library
from kintsugi._accuracy import Accuracy

__all__ = ["matmul"]

_TYPES = ("float32", "float64", "complex64", "complex128")
_TARGET = "kintsugi_matmul"
_FILE = pathlib.Path(__file__).with_name("libkintsugi_jax.so")

if not _FILE.is_file():
    raise ImportError(f"kintsugi.jax needs {_FILE.name}, and this package has none, since it was built without JAX's "
                      "headers: build it with -DKINTSUGI_PYTHON= naming an interpreter that has jax")
_handlers = ctypes.CDLL(str(_FILE))
jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(_handlers.kintsugi_jax_matmul), platform="cpu")
jax.ffi.register_ffi_target(_TARGET, {"initialize": jax.ffi.pycapsule(_handlers.kintsugi_jax_cuda_plan),
                                      "execute": jax.ffi.pycapsule(_handlers.kintsugi_jax_cuda_matmul)}, platform="CUDA")


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _product(a: Any, b: Any, accuracy: str, transpose_a: bool, transpose_b: bool) -> Any:
    """Returns op(a) op(b) of operands (batch..., rows, columns) with equally many dimensions; op(x): x or its
    transpose. Batch dimensions of length 1 are broadcast. `accuracy`: "" for the type's own."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-1 if transpose_a else -2], b.shape[-2 if transpose_b else -1])
    call = jax.ffi.ffi_call(_TARGET, jax.ShapeDtypeStruct(shape, a.dtype), vmap_method="expand_dims")
    return call(a, b, accuracy=accuracy, transpose_a=transpose_a, transpose_b=transpose_b)


def _forward(a: Any, b: Any, *options: Any) -> Any:
    return _product(a, b, *options), (a, b)


def _backward(accuracy: str, transpose_a: bool, transpose_b: bool, operands: Any, gradient: Any) -> Any:
    a, b = operands
    of_a = (_product(b, gradient, accuracy, transpose_b, True) if transpose_a else
            _product(gradient, b, accuracy, False, not transpose_b))
    of_b = (_product(gradient, a, accuracy, True, transpose_a) if transpose_b else
            _product(a, gradient, accuracy, not transpose_a, False))
    return _summed(of_a, a.shape), _summed(of_b, b.shape)


def _summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Returns the gradient of an operand that was broadcast from a shape."""
    axes = tuple(axis for axis, length in enumerate(shape) if length == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axes, keepdims=True) if axes else gradient


_product.defvjp(_forward, _backward)


def matmul(a: Any, b: Any, *, accuracy: Accuracy | None = None) -> Any:
    """Returns a @ b, also under jit, vmap, grad and vjp of any order. There is no forward mode (jvp).

    Args:
        a, b: arrays as of jax.numpy.matmul, whose shapes and broadcasting hold: float32 or complex64, with JAX's x64
            also float64 and complex128. They are promoted to one type.
        accuracy: as of kintsugi.matmul(); it holds for the gradients, too. A constant under jit.

    Returns:
        An array of the operands' type.

    Raises:
        TypeError: an element type that is not multiplied.
        ValueError: shapes that do not fit.
        jax.errors.JaxRuntimeError: what the library refuses, with its message; under jit when the program runs.
    """
    a, b = (jnp.asarray(x) for x in (a, b))
    dtype = jnp.promote_types(a.dtype, b.dtype)
    if dtype.name not in _TYPES:
        raise TypeError(f"kintsugi multiplies {', '.join(_TYPES)}; the operands are {a.dtype} and {b.dtype}")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"{'a' if a.ndim == 0 else 'b'} has no dimensions; a matrix has two")
    rows = a[None] if a.ndim == 1 else a
    columns = b[:, None] if b.ndim == 1 else b
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(f"a has the shape {a.shape} and b {b.shape}: {rows.shape[-1]} columns meet "
                         f"{columns.shape[-2]} rows")
    batch = jnp.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    if columns.ndim == 2:  # all rows of a are one matrix, so that the gradient of b is one product
        matrix = rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])
        result = _product(matrix.astype(dtype), columns.astype(dtype), _text(accuracy), False, False)
        result = result.reshape(*rows.shape[:-1], columns.shape[-1])
    else:
        rows, columns = (x.reshape((1,) * (len(batch) + 2 - x.ndim) + x.shape).astype(dtype) for x in (rows, columns))
        result = _product(rows, columns, _text(accuracy), False, False)
    result = result[..., 0, :] if a.ndim == 1 else result
    return result[..., 0] if b.ndim == 1 else result


def _text(accuracy: Accuracy | None) -> str:
    return "" if accuracy is None else str(accuracy)
