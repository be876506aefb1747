"""Linear equations, solved by LU factors and refined with exact residuals."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, NamedTuple

import numpy as np

from kintsugi import _namespace, _torch
from kintsugi._exact import residual
from kintsugi._namespace import as_operand


class _Factors:
    """LU factors of a matrix, by the LAPACK of its library. Rows are scaled by powers of two before, so that pivots are
    chosen among elements of one size."""

    def __init__(self, matrix: Any):
        largest = _namespace.on_host(_namespace.largest(abs(matrix)))
        self._scales = _namespace.as_like(np.ldexp(1.0, np.clip(-np.frexp(largest)[1], -1000, 1000)), matrix)[:, None]
        matrix = matrix * self._scales
        if _torch.is_tensor(matrix):
            self._solver = _namespace.namespace(matrix).linalg
            factors, pivots, _ = self._solver.lu_factor_ex(matrix)
            self._factors = factors, pivots
        else:
            self._solver = _scipy(matrix)
            with warnings.catch_warnings():  # of a zero pivot, which is_singular tells
                warnings.simplefilter("ignore")
                self._factors = self._solver.lu_factor(matrix, check_finite=False)
        pivots = _namespace.on_host(self._factors[0].diagonal())
        self.is_singular = not pivots.all() or not np.isfinite(pivots).all()

    def solve(self, b: Any) -> Any:
        """Returns the approximate solution for columns b."""
        b = b * self._scales
        if _torch.is_tensor(b):
            return self._solver.lu_solve(*self._factors, b)
        return self._solver.lu_solve(self._factors, b, check_finite=False)


def _scipy(matrix: Any) -> Any:
    """Returns the module with lu_factor() and lu_solve() for arrays of numpy or CuPy."""
    name, package = ("cupyx.scipy.linalg", "cupy") if _namespace.is_cupy(matrix) else ("scipy.linalg", "scipy")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"kintsugi.solve() needs {name} for LU factors: pip install {package}") from error


class Solution(NamedTuple):
    """A solution in two words: x, rounded to the operands' type, and what that leaves, so that x + tail has about twice
    the digits."""

    x: Any
    tail: Any


_WORDS = 3  # in which a solution is kept while it is refined
_MOST_STEPS = 200  # of which each gains a bit at least


def solve(a: Any, b: Any, *, tail: bool = False) -> Any:
    """Returns the x of a @ x = b, with about one unit in the last place of error in every element, however
    ill-conditioned `a` is below a condition of about 1e15.

    The LU factors of LAPACK (scipy's on the host, CuPy's or torch's for their arrays) in float64 or complex128 give a
    first solution; then every step adds the solution for the exactly computed residual, until elements change no more.
    Elements smaller than 1e-30 times the largest of their column may have a larger error.

    Args:
        a: (n, n), of float32, float64, complex64 or complex128: an array of numpy or CuPy, or a tensor of torch.
        b: (n,) or (n, k), in the same library.
        tail: returns a Solution (x, tail) in two words.

    Raises:
        numpy.linalg.LinAlgError: a matrix that is singular in float64; the message says its condition.
        ValueError: shapes that do not fit, or elements that are not finite.
        TypeError: as kintsugi.matmul().
        ImportError: if scipy, which has the factors, is not installed.
    """
    matrix, given = as_operand(a, "a"), as_operand(b, "b")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a has the shape {tuple(matrix.shape)}; solve() needs a square matrix")
    if given.ndim not in (1, 2) or given.shape[0] != matrix.shape[0]:
        raise ValueError(f"b has the shape {tuple(given.shape)}; solve() needs ({matrix.shape[0]},) or "
                         f"({matrix.shape[0]}, k)")
    dtype = np.result_type(_namespace.dtype_of(matrix), _namespace.dtype_of(given))
    wide = np.result_type(dtype, np.float64)
    for name, x in (("a", matrix), ("b", given)):
        if not bool(_namespace.namespace(x).isfinite(x).all()):
            raise ValueError(f"{name} has elements that are infinite or NaN")
    columns = _namespace.converted(given, wide).reshape((given.shape[0], -1 if given.ndim == 1 and given.shape[0] else
                                                         1 if given.ndim == 1 else given.shape[1]))
    words = [columns, columns] if 0 in columns.shape else _refined(_namespace.converted(matrix, wide), columns)
    x = _namespace.converted(words[0], dtype)
    if not tail:
        return x.reshape(given.shape)
    rest = _namespace.converted(words[0] - _namespace.converted(x, wide) + words[1], dtype)
    return Solution(x.reshape(given.shape), rest.reshape(given.shape))


def _refined(matrix: Any, b: Any) -> list[Any]:
    """Returns the solution in words of decreasing size. The columns b (n, k) get another one, by which a singular
    matrix shows itself: numbers that its columns do not span. (Without it the refinement of b that they span would
    converge, to one of many solutions.)"""
    factors = _Factors(matrix)
    if factors.is_singular:
        raise np.linalg.LinAlgError("a is singular: a pivot of its LU factors is 0, or they overflow")
    size = matrix.shape[0]
    signs = np.random.default_rng(size).uniform(-1, 1, size).astype(_namespace.dtype_of(matrix))
    probe = abs(matrix).sum(1) * _namespace.as_like(signs, matrix)
    b = _namespace.joined([b, probe[:, None]], 1)
    repeated = _namespace.joined([matrix] * _WORDS, 1)
    words = [factors.solve(b)] + [b * 0] * (_WORDS - 1)
    last = np.full(b.shape[1], np.inf)
    for _ in range(_MOST_STEPS):
        step = factors.solve(residual(repeated, _namespace.joined(words, 0), b))
        words = _added(words, step)
        change, value = (abs(_namespace.on_host(part)) for part in (step, words[0]))
        changes, values = change.max(axis=0), value.max(axis=0)
        done = (change <= 2.0**-100 * value).all(axis=0) | (changes <= 2.0**-104 * values)
        if done.all():
            return [word[:, :-1] for word in words]
        if not (done | (changes <= 0.7 * np.minimum(last, values))).all():
            break
        last = changes
    raise np.linalg.LinAlgError("a is singular to working precision: its condition is about "
                                f"{_condition(matrix, factors):.0e}, and the refinement of the solution does not converge")


def _added(words: list[Any], step: Any) -> list[Any]:
    """Returns words + step, as words again: each the rounded sum of itself and those after it."""
    result = []
    total = words[-1] + step
    for word in reversed(words[:-1]):
        rounded = word + total
        part = rounded - word
        result.append((word - (rounded - part)) + (total - part))
        total = rounded
    return [total, *reversed(result)]


def _condition(matrix: Any, factors: _Factors) -> float:
    """Returns the condition in the norm of the largest sum of a column, by the inverse that the factors give."""
    inverse = factors.solve(_namespace.as_like(np.eye(matrix.shape[0], dtype=_namespace.dtype_of(matrix)), matrix))
    norms = [float(_namespace.on_host(abs(part).sum(0)).max()) for part in (matrix, inverse)]
    return norms[0] * norms[1]
