"""Arrays as the library reads them: element types, memory, strides."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from kintsugi import _core, _torch

# Element types that are multiplied, in the order of kintsugi_type.
TYPES = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex64), np.dtype(np.complex128)]


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


def common_type(dtypes: list[np.dtype]) -> np.dtype:
    """Returns the type in which a product of operands of these types is computed."""
    dtype = np.result_type(*dtypes).newbyteorder("=")
    if dtype not in TYPES:
        names = ", ".join(str(kind) for kind in TYPES)
        raise TypeError(f"kintsugi multiplies {names}; the operands are {', '.join(str(kind) for kind in dtypes)}")
    return dtype


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
