"""Arrays as the library reads them: element types, memory, strides."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from kintsugi import _core, _torch

# Element types that are multiplied, in the order of kintsugi_type.
TYPES: list[np.dtype[Any]] = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex64),
                              np.dtype(np.complex128)]


def refuse_own_products(x: Any, name: str) -> None:
    """Raises TypeError for an object whose class gives products a meaning of its own, and for lists that contain one. Its
    elements without that meaning (mask, unit, labels) would be multiplied like any others. Such classes are masked arrays,
    and by numpy's convention those with an __array_ufunc__ of their own."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array and kintsugi multiplies every element: give {name}.filled(0), which "
                        f"has 0 for those that are masked, or {name}.data, which ignores the mask")
    if getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__) is not np.ndarray.__array_ufunc__:
        raise TypeError(f"{name} is a {type(x).__name__}, whose products have a meaning of their own, such as that of its "
                        f"labels or units: numpy.asarray({name}) has its elements alone")
    if isinstance(x, (list, tuple)) and x and (isinstance(x[0], (list, tuple)) or hasattr(x[0], "__array__")):
        for item in x:
            refuse_own_products(item, f"an item of {name}")


def as_array(x: Any, name: str) -> np.ndarray:
    """Returns x as an array of numpy's own class, without a copy where possible. x is an array, a stored tensor of torch, an
    object with DLPack on the CPU, or a nested list. Raises TypeError for what refuse_own_products() refuses."""
    refuse_own_products(x, name)
    if isinstance(x, np.ndarray):
        return np.asarray(x)
    if _torch.is_tensor(x):
        return _torch.as_array(x, name)
    if hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"{name} is a {type(x).__name__} that numpy cannot take by DLPack: {error}") from error
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} is a {type(x).__name__}, which is no array of numbers")
    return array


def in_class_of(operands: list[Any], result: np.ndarray) -> Any:
    """Returns a result in the class that a product of these operands has: that of another library's array, which takes the
    result by DLPack, else what numpy's protocol of priorities says of subclasses. A result of numpy's own class without
    dimensions becomes a number."""
    for operand in operands:
        if hasattr(operand, "__dlpack__") and not isinstance(operand, np.ndarray):
            return in_library_of(operand, result)
    arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
    if arrays:
        first = max(arrays, key=lambda array: (array.__array_priority__, type(array) is not np.ndarray))
        if type(first) is not np.ndarray:
            result = first.__array_wrap__(result)
    return result[()] if type(result) is np.ndarray else result


def in_library_of(example: Any, array: Any) -> Any:
    """Returns an array, which has DLPack, as one of the example's library. Returns the array itself if that library cannot
    import it, or not in its type."""
    if hasattr(example, "__array_namespace__"):
        library = example.__array_namespace__()
    else:
        library = importlib.import_module(type(example).__module__.partition(".")[0])
    if not hasattr(library, "from_dlpack"):
        return array
    try:
        imported = library.from_dlpack(array)
        is_kept = not isinstance(array, np.ndarray) or np.from_dlpack(imported).dtype == array.dtype  # JAX may narrow float64
    except (BufferError, RuntimeError, TypeError):  # The library does not know the array's device or type.
        return array
    return imported if is_kept else array


def common_type(kinds: list[Any], name: str, integers: list[np.ndarray[Any, Any]] | None = None) -> np.dtype[Any]:
    """Returns the type in which a product of operands of these types is computed.

    Args:
        kinds: the operands' types, or what numpy.result_type() takes in their place.
        name: the operands' name, for messages.
        integers: None refuses products of integers alone; else all operands that may have integers, which are taken as
            float64 beside others of integers.

    Raises:
        TypeError: another type than TYPES.
        ValueError: integers beyond 2**53, whose conversion might round.
    """
    try:
        dtype = np.result_type(*kinds).newbyteorder("=")
    except TypeError:  # types of extensions that numpy cannot promote, such as bfloat16
        dtype = next(dtype for dtype in _types_of(kinds) if dtype not in TYPES)
    if integers is not None and dtype.kind in "iu":
        dtype = np.dtype(np.float64)
    if dtype not in TYPES:
        found = " and ".join(dict.fromkeys(str(kind) for kind in _types_of(kinds)))
        accepted = ", ".join(str(kind) for kind in TYPES)
        raise TypeError(f"kintsugi multiplies {accepted}; {name} is {found}{_advice(dtype)}")
    for array in integers or ():
        may_be_large = array.dtype.kind in "iu" and array.itemsize == 8 and array.size > 0
        if may_be_large and max(int(array.max()), -int(array.min())) > 2**53:
            raise ValueError(f"{name} has integers beyond 2**53, of which float64 has not all: astype(numpy.float64) "
                             "rounds them")
    return dtype


def _types_of(kinds: list[Any]) -> list[np.dtype[Any]]:
    return [kind if isinstance(kind, np.dtype) else np.asarray(kind).dtype for kind in kinds]


def _advice(dtype: np.dtype[Any]) -> str:
    """Returns how an operand of a refused type becomes one that is multiplied."""
    if dtype.name.startswith(("float16", "bfloat16", "float8")):
        return ": convert to float32, which has all its numbers (astype(numpy.float32), torch's float())"
    if dtype.kind in "biu":
        return ": convert to float64 (astype(numpy.float64), torch's double())"
    if dtype.kind in "fc":
        return ": there is none wider; matmul_dd() multiplies pairs of float64"
    return ""


def check_writable(out: np.ndarray) -> None:
    """Raises ValueError if the array is read-only, or if two of its elements may share memory. Elements share no memory if
    every stride is at least as large as the memory that the dimensions with smaller strides span. This test also refuses
    some valid interleaved views, which only as_strided makes."""
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    reach = out.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(out.strides, out.shape) if length > 1):
        if stride < reach and out.size > 0:
            raise ValueError(f"elements of out share memory: its shape is {out.shape} and its strides {out.strides} bytes")
        reach += stride * (length - 1)


def readable(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns the array (..., rows, columns) in a type, for reading. It is a copy if BLAS cannot address the array."""
    array = array.astype(dtype, copy=False)
    return array if _core.batch_kind(array) is not None else np.array(array, order="C", copy=True)


def strided(array: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Returns the array. Returns None if it has another type, if BLAS cannot address it, or if its batch items are not
    equally spaced."""
    return array if array.dtype == dtype and _core.batch_kind(array) == "strided" else None
