"""numpy.linalg's products: chains and powers of matrices. All other names are numpy.linalg's own."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from kintsugi import _namespace
from kintsugi._options import Multiply
from kintsugi._solve import solve
from kintsugi.numpy._common import common_operands, store

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kintsugi._options import Options

__all__ = ["matrix_power", "multi_dot"]


def multi_dot(arrays: Sequence[Any], *, out: Any = None, **options: Unpack[Options]) -> Any:
    """Returns the product of all arrays, in the order of products that multiplies least, as numpy.linalg.multi_dot().

    Args:
        arrays: two matrices or more; the first may be a row vector (n,), the last a column (n,).

    Raises:
        ValueError: fewer than two arrays, or shapes that do not fit.
    """
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    factors = common_operands(*arrays)
    ends = factors[0].ndim == 1, factors[-1].ndim == 1
    factors[0] = factors[0][None, :] if ends[0] else factors[0]
    factors[-1] = factors[-1][:, None] if ends[1] else factors[-1]
    for i, factor in enumerate(factors):
        if factor.ndim != 2:
            raise np.linalg.LinAlgError(f"array {i} has {factor.ndim} dimensions; matrices have 2, and vectors stand at "
                                        "the ends")
    for left, right in zip(factors, factors[1:]):
        if left.shape[1] != right.shape[0]:
            raise ValueError(f"shapes {left.shape} and {right.shape} not aligned: {left.shape[1]} columns meet "
                             f"{right.shape[0]} rows")
    cuts = _best_cuts([factor.shape[0] for factor in factors] + [factors[-1].shape[1]])
    result = _chain(Multiply(options), factors, cuts, 0, len(factors) - 1)
    result = result[0 if ends[0] else slice(None), ..., 0 if ends[1] else slice(None)]
    return store(result[()] if result.ndim == 0 else result, out)


def _best_cuts(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Returns where a chain of factors first..last is cut, so that its products have the fewest multiplications in all.
    sizes: rows of every factor, and the columns of the last."""
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    cuts = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            costs[first, last], cuts[first, last] = min(
                (costs[first, cut] + costs[cut + 1, last] + sizes[first] * sizes[cut + 1] * sizes[last + 1], cut)
                for cut in range(first, last))
    return cuts


def _chain(multiply: Multiply, factors: list[Any], cuts: dict[tuple[int, int], int], first: int, last: int) -> Any:
    if first == last:
        return factors[first]
    cut = cuts[first, last]
    return multiply(_chain(multiply, factors, cuts, first, cut), _chain(multiply, factors, cuts, cut + 1, last))


def matrix_power(a: Any, n: int, **options: Unpack[Options]) -> Any:
    """Returns the matrix (or every matrix of a stack) to the power n, as numpy.linalg.matrix_power(), by squaring. For
    a negative n it is that of the inverse, which kintsugi.solve() computes.

    Raises:
        TypeError: an n that is no integer.
        numpy.linalg.LinAlgError: a matrix that is not square; for a negative n also one that is singular.
    """
    exponent = operator.index(n)
    (matrix,) = common_operands(a)
    if matrix.ndim < 2 or matrix.shape[-2] != matrix.shape[-1]:
        raise np.linalg.LinAlgError(f"a has the shape {matrix.shape}; the last two dimensions of a square matrix are "
                                    "equal")
    multiply = Multiply(options)
    if exponent < 0:
        matrix, exponent = _inverse(matrix), -exponent
    result = None
    while exponent:
        if exponent & 1:
            result = matrix if result is None else multiply(result, matrix)
        exponent >>= 1
        if exponent:
            matrix = multiply(matrix, matrix)
    return _identity(matrix) if result is None else _namespace.copy_of(result)


def _identity(matrix: Any) -> Any:
    result = _namespace.copy_of(matrix)
    result[...] = _namespace.namespace(matrix).eye(matrix.shape[-1], dtype=matrix.dtype)
    return result


def _inverse(matrix: Any) -> Any:
    result = _identity(matrix)
    for index in np.ndindex(*matrix.shape[:-2]):
        result[index] = solve(matrix[index], result[index])
    return result


def __getattr__(name: str) -> Any:
    return getattr(np.linalg, name)
