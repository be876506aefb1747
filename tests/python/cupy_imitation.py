"""CuPy as kintsugi.numpy and the exact functions use it, over numpy arrays on the host: a module whose functions take
and give its own arrays alone, and a package that multiplies them as numpy's."""

import contextlib
import functools
import sys
import types

import numpy as np
from kintsugi import _namespace, _tensors


def inside(x):
    """x with numpy's arrays in place of the imitation's."""
    if isinstance(x, ndarray):
        return x.array
    if isinstance(x, np.ndarray) and x.ndim:
        raise TypeError("CuPy's functions take no array of numpy")
    return type(x)(map(inside, x)) if isinstance(x, (list, tuple)) else x


def outside(x):
    return ndarray(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


def wrapped(function):
    @functools.wraps(function)
    def call(*arguments, **keywords):
        return outside(function(*inside(arguments), **{name: inside(value) for name, value in keywords.items()}))

    return call


class ndarray:
    """cupy.ndarray: numpy's methods and operators, but no conversion to an array of numpy."""

    __array_ufunc__ = None

    def __init__(self, array):
        self.array = array

    def __array__(self, *_, **__):
        raise TypeError("CuPy has no implicit conversion to numpy")

    def __getattr__(self, name):
        found = getattr(self.array, name)
        return wrapped(found) if callable(found) else outside(found)

    def __setitem__(self, cut, value):
        self.array[cut] = inside(value)

    def get(self):
        return self.array


for operator in ("add", "sub", "mul", "radd", "rmul", "neg", "abs", "getitem", "bool", "float"):
    def method(self, *arguments, _name=f"__{operator}__"):
        found = getattr(self.array, _name)(*inside(arguments))
        return found if _name in ("__bool__", "__float__") else outside(found)

    setattr(ndarray, f"__{operator}__", method)
ndarray.__module__ = "cupy"
ndarray.__cuda_array_interface__ = property(lambda self: self.array.__array_interface__)


class Module(types.ModuleType):
    def __getattr__(self, name):
        return wrapped(getattr(np, name))


def asarray(x, dtype=None, order=None):
    """The one function that takes numpy's arrays."""
    return ndarray(np.asarray(inside(x) if isinstance(x, ndarray) else x, dtype=dtype, order=order))


class HostTensors(_tensors.CupyTensors):
    """The part of _tensors.CupyTensors that needs a device."""

    def __init__(self, tensor):
        self._has_foreign_tensors = False
        self._cupy = self._library = sys.modules["cupy"]
        self.device = "cuda:0"

    def owns(self, tensor):
        return isinstance(tensor, ndarray)

    def current(self):
        return contextlib.nullcontext()

def install(monkeypatch):
    """Returns the functions that make an array of the imitation, and read one."""
    cupy = Module("cupy")
    cupy.ndarray, cupy.asarray = ndarray, asarray
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=None))
    linalg = types.ModuleType("cupyx.scipy.linalg")
    try:
        import scipy.linalg

        linalg.lu_factor = lambda a, check_finite: tuple(map(ndarray, scipy.linalg.lu_factor(a.array)))
        linalg.lu_solve = lambda lu, b, check_finite: ndarray(scipy.linalg.lu_solve(tuple(inside(lu)), b.array))
    except ImportError:
        pass
    packages = [types.ModuleType(name) for name in ("cupyx", "cupyx.scipy")]
    for module in (cupy, *packages, linalg):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(_tensors, "MEMORY", _tensors._core.HOST)
    monkeypatch.setattr(_tensors, "CupyTensors", HostTensors)
    assert _namespace.is_cupy(asarray(np.ones(2)))

    def read(x):
        assert isinstance(x, ndarray), type(x)
        return x.array

    return asarray, read
