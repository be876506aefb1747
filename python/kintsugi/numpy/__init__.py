"""numpy's products at FP32, FP64 or exact accuracy, for arrays of numpy and CuPy.

    >>> import kintsugi.numpy as knp
    >>> knp.einsum("ij,jk->ik", a, b, accuracy="exact")

The functions are numpy's, with its arguments, shapes and errors, and with the keywords accuracy, scheme, engine,
policy, threads and workspace_limit of kintsugi.matmul(); kintsugi.accuracy() sets a default. Results are of numpy's own
class, in C order; integers are multiplied as float64, and refused beyond 2**53.

All other names are numpy's own, so that a program may `import kintsugi.numpy as np`. Products that are no calls of
these functions stay numpy's: a @ b, a.dot(b), kron(), cov(), and linalg but for multi_dot() and matrix_power().
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kintsugi import _namespace
from kintsugi._matmul import matmul as _multiply
from kintsugi._options import Multiply
from kintsugi.numpy import linalg
from kintsugi.numpy._common import common_operands, store
from kintsugi.numpy._einsum import Term, contract_all, parse, split_operands

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kintsugi._options import Options

__all__ = ["dot", "einsum", "inner", "linalg", "matmul", "outer", "tensordot", "vdot", "vecdot"]


def matmul(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None, **options: Unpack[Options]) -> Any:
    """Returns x1 @ x2, as kintsugi.matmul(). dtype: the type in which it is computed; None: that of the operands."""
    a, b = (x1, x2) if dtype is None else common_operands(x1, x2, dtype=dtype)
    return _multiply(a, b, out=out, **options)


def dot(a: Any, b: Any, out: Any = None, **options: Unpack[Options]) -> Any:
    """Returns the sums of products over the last axis of a and the last but one of b (its last if it has only one), as
    numpy.dot(). An operand without dimensions scales the other."""
    if out is None and _is_vector_or_matrix(a) and _is_vector_or_matrix(b):
        return _multiply(a, b, **options)
    a, b = common_operands(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return store(_scaled(Multiply(options), a, b), out)
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} (the last dimension of a) is not "
                         f"{b.shape[max(b.ndim - 2, 0)]} (dimension {max(b.ndim - 2, 0)} of b)")
    return store(_contracted(Multiply(options), a, b, [a.ndim - 1], [max(b.ndim - 2, 0)]), out)


def vdot(a: Any, b: Any, /, **options: Unpack[Options]) -> Any:
    """Returns the sum of conj(a) * b over all elements, as numpy.vdot()."""
    a, b = common_operands(a, b)
    if a.size != b.size:
        raise ValueError(f"vdot of {a.size} and of {b.size} elements")
    return Multiply(options)(_conjugate(a.reshape(-1)), b.reshape(-1))


def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1, dtype: Any = None,
           **options: Unpack[Options]) -> Any:
    """Returns the sums of conj(x1) * x2 over an axis; the other axes are broadcast, as numpy.vecdot()."""
    a, b = common_operands(x1, x2, dtype=dtype)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"vecdot of operands of {a.ndim} and {b.ndim} dimensions; both need one at least")
    a, b = (_namespace.namespace(x).moveaxis(x, axis, -1) for x in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot of {a.shape[-1]} and of {b.shape[-1]} elements along the axis {axis}")
    return store(Multiply(options)(_conjugate(a)[..., None, :], b[..., :, None])[..., 0, 0], out)


def inner(a: Any, b: Any, /, **options: Unpack[Options]) -> Any:
    """Returns the sums of products over the last axes, as numpy.inner()."""
    a, b = common_operands(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _scaled(Multiply(options), a, b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} and {b.shape[-1]} elements along the "
                         "last axes")
    return _contracted(Multiply(options), a, b, [a.ndim - 1], [b.ndim - 1])


def outer(a: Any, b: Any, out: Any = None, **options: Unpack[Options]) -> Any:
    """Returns the products of every element of a with every element of b, as numpy.outer()."""
    a, b = common_operands(a, b)
    return store(_contracted(Multiply(options), a.reshape(-1), b.reshape(-1), [], []), out)


def tensordot(a: Any, b: Any, axes: Any = 2, **options: Unpack[Options]) -> Any:
    """Returns the sums of products over axes of both, as numpy.tensordot().

    Args:
        axes: a number n, for the last n axes of a and the first n of b; or a pair of axes, or of sequences of them.
    """
    a, b = common_operands(a, b)
    if isinstance(axes, (int, np.integer)):
        axes = list(range(a.ndim - int(axes), a.ndim)), list(range(int(axes)))
    pair = [[int(part)] if np.ndim(part) == 0 else [int(axis) for axis in part] for part in axes]
    if len(pair) != 2 or len(pair[0]) != len(pair[1]):
        raise ValueError(f"axes = {axes!r} are not as many of a as of b")
    for x, name, chosen in ((a, "a", pair[0]), (b, "b", pair[1])):
        if any(not -x.ndim <= axis < x.ndim for axis in chosen):
            raise ValueError(f"axes {chosen} of {name}, which has the shape {x.shape}")
    first, second = ([axis % x.ndim for axis in chosen] for x, chosen in ((a, pair[0]), (b, pair[1])))
    if any(a.shape[i] != b.shape[j] for i, j in zip(first, second)):
        raise ValueError(f"shape-mismatch for sum: axes {first} of {a.shape} and axes {second} of {b.shape}")
    return _contracted(Multiply(options), a, b, first, second)


def einsum(*operands: Any, out: Any = None, optimize: Any = True, dtype: Any = None,
           order: Literal["K", "C", "F", "A"] = "K", **options: Unpack[Options]) -> Any:
    """Returns Einstein's sum, as numpy.einsum(), by products of matrices.

    With accuracy="exact" a sum over one operand, or over two, is rounded once. Several operands are contracted two at a
    time, and every contraction is rounded once, of operands that the ones before have rounded.

    Args:
        operands: subscripts and arrays, ("ij,jk->ik", a, b), or arrays and lists of labels,
            (a, [0, 1], b, [1, 2], [0, 2]).
        out: an array for the result.
        optimize: the order of the contractions: True or "greedy", "optimal", False (from left to right), or a path of
            numpy.einsum_path(). numpy's default is False.
        dtype: the type in which it is computed; None: that of the operands.
        order: "F" for a result in Fortran order; else it is in C order, or, where nothing is computed, a view.
    """
    subscripts, given = split_operands(operands)
    arrays = common_operands(*given, dtype=dtype)
    labels, output = parse(subscripts, arrays)
    result = contract_all(Multiply(options), [Term(*term) for term in zip(arrays, labels)], output, optimize)
    if out is not None:
        return store(result, out)
    if order in "CF" or not _is_view(result, arrays):
        result = _namespace.namespace(result).asarray(result, order="F" if order == "F" else "C")
    return result if result.ndim else result[()]


def _is_view(result: Any, arrays: list[Any]) -> bool:
    return len(arrays) == 1 and _namespace.namespace(result).may_share_memory(result, arrays[0])


def _is_vector_or_matrix(x: Any) -> bool:
    return type(x) is np.ndarray and 1 <= x.ndim <= 2


def _conjugate(x: Any) -> Any:
    return x.conj() if x.dtype.kind == "c" else x


def _scaled(multiply: Multiply, a: Any, b: Any) -> Any:
    """Returns the product of an array and a number."""
    return _contracted(multiply, a, b, [], [])


def _contracted(multiply: Multiply, a: Any, b: Any, first: list[int], second: list[int]) -> Any:
    """Returns the sums of products over pairs of axes; the result has the other axes of a, then those of b."""
    rows, columns = ([axis for axis in range(x.ndim) if axis not in chosen] for x, chosen in ((a, first), (b, second)))
    shape = [a.shape[axis] for axis in rows] + [b.shape[axis] for axis in columns]
    k = math.prod(a.shape[axis] for axis in first)
    left = a.transpose(rows + first).reshape(math.prod(shape[:len(rows)]), k)
    right = b.transpose(second + columns).reshape(k, math.prod(shape[len(rows):]))
    if not first and (a.dtype.kind != "c" or multiply.allows_complex_elementwise):
        result = left * right
    else:
        result = multiply(left, right)
    return result.reshape(shape)[()] if not shape else result.reshape(shape)


def __getattr__(name: str) -> Any:
    return getattr(np, name)
