"""Products of double-double arrays. A number is two float64 words, hi and lo, along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from kintsugi._arrays import DOUBLE_DOUBLE, as_array, refuse_masked
from kintsugi._calls import Call, memory_of
from kintsugi._operands import Operand, Prepared


class PairCall(Call):
    """One product of double-double arrays. numpy has no such type, so this class views a pair as a complex128, which has
    the same size. numpy computes nothing with it."""

    def _operand(self, given: Any, side: str) -> Operand:
        if isinstance(given, Prepared):
            raise TypeError(f"{side} is a prepared operand; double-double ones are not prepared")
        return Operand(given, side, lambda x, name: _as_pairs(as_array(x, name), name))

    def _type(self) -> int:
        return DOUBLE_DOUBLE

    def _new_result(self) -> Any:
        return self._empty(self._result_shape() + (2,), np.dtype(np.float64))

    def _elements(self, out: Any) -> np.ndarray:
        words = memory_of(out)
        if words is None or words.dtype != np.float64 or not _holds_pairs(words):
            raise ValueError("out must be a float64 array whose last axis has the two words of double-double numbers "
                             "beside each other")
        return super()._elements(words.view(np.complex128)[..., 0])


def _holds_pairs(array: np.ndarray) -> bool:
    """Returns True if the last axis has two adjacent words."""
    return array.ndim > 0 and array.shape[-1] == 2 and (array.size == 0 or array.strides[-1] == array.itemsize)


def _as_pairs(array: np.ndarray, name: str) -> np.ndarray:
    """Returns an array (..., 2) of float64 as an array (...) of pairs. It is not copied if hi and lo are adjacent."""
    if array.ndim < 2 or array.shape[-1] != 2 or array.dtype.kind not in "biuf":
        raise TypeError(f"{name} is {array.dtype} {array.shape}; double-double numbers are float64 with a last axis "
                        "of 2, hi and lo")
    words = array.astype(np.float64, copy=False)
    if not _holds_pairs(words) or not words.dtype.isnative:
        words = np.array(words, dtype=np.float64, order="C")
    return words.view(np.complex128)[..., 0]


def pair_scalar(value: Any, name: str) -> complex:
    """Returns a number, or (hi, lo), as a pair."""
    refuse_masked(value, name)
    words = np.asarray(value, dtype=np.float64).ravel()
    if words.size not in (1, 2) or np.ndim(value) > 1:
        raise TypeError(f"{name} = {value!r} is neither a number nor a pair (hi, lo)")
    return complex(words[0], words[1] if words.size == 2 else 0.0)
