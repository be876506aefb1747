"""Matrix products at FP32, FP64 or exact accuracy on low-precision matrix engines.

    >>> import numpy as np, kintsugi
    >>> a = np.array([[1e300, 1.0], [2.0, 3.0]])
    >>> kintsugi.matmul(a, a, accuracy="exact")

Arrays are numpy's or anything with DLPack, on the CPU or on a CUDA device; docs/PYTHON.md has examples.
"""

import numpy as _numpy  # noqa: F401  # an error of its own if it is missing

try:
    from kintsugi import _core as _core
except ImportError as error:
    raise ImportError(f"kintsugi: {error}. The package needs CPython 3.9 or newer, and beside its modules _core.abi3.so and "
                      "libkintsugi.so.0. The wheel carries both; install one with pip: `pip install python/` in the sources "
                      "builds it (or CMake's target kintsugi_package, with Python.h).") from error

from kintsugi._accuracy import accuracy
from kintsugi._dlpack import DeviceArray
from kintsugi._errors import KintsugiError, MissingEngineWarning
from kintsugi._exact import dot, norm2, residual, sum
from kintsugi._library import engines, last_report, release_caches, schemes, set_threads
from kintsugi._matmul import matmul, matmul_dd, matmul_grouped
from kintsugi._operands import Prepared, prepare
from kintsugi._plans import Plan, explain, last_plan, plan
from kintsugi._solve import Solution, solve
from kintsugi import numpy as numpy  # noqa: PLC0414  # an export of the submodule, for type checkers

__version__ = _core.version()

__all__ = ["DeviceArray", "KintsugiError", "MissingEngineWarning", "Plan", "Prepared", "Solution", "accuracy", "dot", "engines",
           "explain", "last_plan", "last_report", "matmul", "matmul_dd", "matmul_grouped", "norm2", "plan", "prepare", "release_caches",
           "residual", "schemes", "set_threads", "solve", "sum", "__version__"]
