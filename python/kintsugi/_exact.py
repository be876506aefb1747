"""Correctly rounded sums, dot products, norms and residuals: products with accuracy="exact"."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kintsugi import _namespace
from kintsugi._matmul import matmul
from kintsugi._namespace import as_operand


def _exact(a: Any, b: Any, alpha: float = 1, beta: float = 0, out: Any = None) -> Any:
    """Returns alpha * a @ b + beta * out, rounded once, whatever policy and engine are the defaults."""
    return matmul(a, b, accuracy="exact", policy="auto", alpha=alpha, beta=beta, out=out)


def _row_sums(x: Any) -> Any:
    """Returns the exact sums along the last axis, rounded once."""
    shape = tuple(x.shape)
    rows = x.reshape((math.prod(shape[:-1]), shape[-1]))
    return _exact(rows, _namespace.ones(x, shape[-1])[:, None]).reshape(shape[:-1])


def sum(a: Any, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Any:
    """Returns the sum of the elements, correctly rounded: the floating-point number nearest to the exact sum.

    No partial sum overflows, underflows or is rounded, and the order does not count. Real and imaginary parts are
    summed each. In another rounding mode of the thread the sum is rounded in that.

    Args:
        a: an array of numpy or CuPy, a tensor of torch, or a nested list.
        axis: the axis, or axes, that are summed; None: all.
        keepdims: leaves summed axes in the result, with length 1.

    Raises:
        TypeError, ValueError: as kintsugi.matmul(); ValueError for an axis that a does not have.
    """
    x = as_operand(a, "a")
    flat, kept = _namespace.reduced_last(x, axis)
    if _is_complex(x):
        real = _namespace.parts(flat)
        order = [*range(real.ndim - 2), real.ndim - 1, real.ndim - 2]
        result = _namespace.of_parts(_row_sums(_namespace.permuted(real, order)))
    else:
        result = _row_sums(flat)
    return _shaped(result, kept if keepdims else tuple(flat.shape[:-1]))


def dot(a: Any, b: Any) -> Any:
    """Returns the dot product of two vectors of one length, correctly rounded, as sum() rounds. Complex numbers are not
    conjugated.

    Raises:
        ValueError: operands that are no vectors of one length.
        TypeError: as kintsugi.matmul().
    """
    x, y = as_operand(a, "a"), as_operand(b, "b")
    if x.ndim != 1 or y.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"dot of the shapes {tuple(x.shape)} and {tuple(y.shape)}, which must be vectors of one "
                         "length: kintsugi.numpy.dot(..., accuracy='exact') takes other shapes")
    return _exact(x[None, :], y[:, None])[0, 0]


def residual(a: Any, x: Any, b: Any) -> Any:
    """Returns b - a @ x, every element correctly rounded, as sum() rounds.

    Args:
        a: (..., m, n).
        x: (n,) or (..., n, k).
        b: the shape of a @ x, or one that is broadcast to it.

    Raises:
        TypeError, ValueError: as kintsugi.matmul(); ValueError for a b that does not fit.
    """
    left, right, wanted = as_operand(a, "a"), as_operand(x, "x"), as_operand(b, "b")
    if left.ndim < 2 or right.ndim < 1:
        raise ValueError(f"residual of a {tuple(left.shape)} and x {tuple(right.shape)}; a has two dimensions, x one at "
                         "least")
    dtype = np.result_type(*(_namespace.dtype_of(part) for part in (left, right, wanted)))
    left, right, wanted = (_namespace.converted(part, dtype) for part in (left, right, wanted))
    shape = (*np.broadcast_shapes(tuple(left.shape[:-2]), tuple(right.shape[:-2])), left.shape[-2], *right.shape[-1:])
    shape = shape if right.ndim > 1 else shape[:-1]
    out = _namespace.copy_of(_namespace.namespace(wanted).broadcast_to(wanted, shape))
    return _shaped(_exact(left, right, alpha=-1, beta=1, out=out), shape)


def words_of_sums(rows: Any) -> list[Any] | None:
    """Returns vectors whose unevaluated sum is that of every row, exactly, in decreasing order. Returns None where a
    sum overflows or is no number. rows: (m, k)."""
    words: list[Any] = []
    while True:
        word = _row_sums(rows)
        values = _namespace.on_host(word)
        if not np.isfinite(values).all():
            return None
        if words and not values.any():
            return words
        words.append(word)
        rows = _namespace.joined([rows, -word[:, None]], 1)


# Squares of elements beyond these limits may over- or underflow in float64. Smaller ones are multiplied by _UP, which
# is exact. Of larger ones the sum of squares is multiplied by _DOWN, inside of the exact product.
_SMALL, _LARGE = 2.0**-400, 2.0**400
_UP, _DOWN, _ROOT_OF_DOWN = 2.0**600, 2.0**-1074, 2.0**-537


def norm2(a: Any, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Any:
    """Returns the Euclidean norm, the square root of the sum of |elements|**2, rounded to nearest: the floating-point
    number that is nearest to the exact root, ties to even, in every rounding mode of the thread. Nothing overflows or
    underflows on the way.

    Args and errors: as of sum(). The result is real. NaN where an element is NaN, else infinity where one is infinite.
    """
    x = as_operand(a, "a")
    dtype = np.dtype(_namespace.dtype_of(x).char.lower())
    flat, kept = _namespace.reduced_last(x, axis)
    shape = kept if keepdims else tuple(flat.shape[:-1])
    if _is_complex(x):
        flat = _namespace.parts(flat).reshape(tuple(flat.shape[:-1]) + (2 * flat.shape[-1],))
    rows = _namespace.converted(flat, np.dtype(np.float64)).reshape((math.prod(flat.shape[:-1]), flat.shape[-1]))
    return _shaped(_namespace.as_like(_norms(rows, dtype), x), shape)


def _norms(rows: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Returns the norms of rows (m, k) of float64, in a real type."""
    if 0 in rows.shape:
        return np.zeros(rows.shape[0], dtype)
    largest = _namespace.on_host(_namespace.largest(abs(rows)))
    result = np.array(largest, dtype)  # right where it is 0, infinite or NaN
    for is_large in (False, True):
        above, most = (_LARGE, np.finfo(np.float64).max) if is_large else (0, _LARGE)
        chosen = np.flatnonzero((above < largest) & (largest <= most))
        if chosen.size:
            up = np.where(largest[chosen] < _SMALL, _UP, 1.0)
            result[chosen] = _finite_norms(rows[_namespace.as_like(chosen, rows)], up, is_large, dtype)
    return result


def _finite_norms(rows: Any, up: np.ndarray[Any, Any], is_large: bool, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Returns the norms of rows that are not zero. up: the power of two by which each is multiplied. is_large: the sums
    of squares are multiplied by _DOWN; up is then 1."""
    alpha, root_of_alpha = (_DOWN, _ROOT_OF_DOWN) if is_large else (1.0, 1.0)
    scaled = rows * _namespace.as_like(up, rows)[:, None]

    def excess(root: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns the sums of squares less that of `root`, with all factors."""
        column = _namespace.as_like(root * up, rows)[:, None]
        left, right = (_namespace.joined([scaled, last], 1) for last in (column, -column))
        return _namespace.on_host(_exact(left[:, None, :], right[:, :, None], alpha=alpha))[:, 0, 0]

    with np.errstate(over="ignore", under="ignore"):
        root = np.sqrt(excess(np.zeros(up.shape)))
        # The candidate is off by one unit at most; how far it is from the exact root follows from the exact excess.
        largest = np.finfo(dtype).max
        found = np.minimum((root / root_of_alpha / up).astype(dtype), largest)
        candidate = found.astype(np.float64)
        error = excess(candidate) / (candidate * up * root_of_alpha + root)
        below = np.nextafter(found, dtype.type(0))
        half_below = (candidate * up - below.astype(np.float64) * up) / 2 * root_of_alpha
        # numpy has no spacing of the largest number, which is that of half of it twice.
        half_above = np.spacing(np.where(found == largest, found / 2, found)).astype(np.float64) * up / 2
        half_above *= np.where(found == largest, 2, 1) * root_of_alpha
        above = np.nextafter(found, dtype.type(np.inf))
        result: np.ndarray[Any, Any] = np.where(error > half_above, above, np.where(error < -half_below, below, found))
        # Where the exact root may be a midpoint, integers decide.
        margin = 2.0**-40
        is_open = (abs(error - half_above) <= margin * half_above) | (abs(error + half_below) <= margin * half_below)
        is_open |= ((error > 2.9 * half_above) & np.isfinite(result)) | (error < -2.9 * half_below)
        for i in np.flatnonzero(is_open):
            result[i] = _norm_by_integers(_namespace.on_host(rows[int(i)]).tolist(), dtype)
    return result


def _norm_by_integers(row: list[float], dtype: np.dtype[Any]) -> float:
    """Returns the norm of finite numbers, rounded to nearest, from integers of any size."""
    digits = np.finfo(dtype).nmant + 1
    least = int(np.finfo(dtype).minexp) - digits + 1  # exponent of the smallest positive number
    fractions = [math.frexp(x) for x in row if x]
    lowest = min(exponent for _, exponent in fractions) - 53
    total = 0
    for fraction, exponent in fractions:
        total += (int(fraction * 2**53) << (exponent - 53 - lowest)) ** 2
    scaled = total << 256
    root = math.isqrt(scaled)
    root = 2 * root + (root * root != scaled)  # the last bit stands for all that follow
    exponent = lowest - 128 - 1
    shift = max(root.bit_length() - digits, least - exponent, 0)
    kept, rest, half = root >> shift, root & ((1 << shift) - 1), 1 << shift >> 1
    kept += rest > half or (rest == half and kept & 1 and shift > 0)
    try:
        return math.ldexp(kept, exponent + shift)
    except OverflowError:
        return math.inf


def _is_complex(x: Any) -> bool:
    return _namespace.dtype_of(x).kind == "c"


def _shaped(result: Any, shape: tuple[int, ...]) -> Any:
    """Returns the result in a shape; a number for numpy's arrays without dimensions."""
    if isinstance(result, (np.ndarray, np.generic)):
        return np.asarray(result).reshape(shape)[()]
    return result.reshape(shape)
