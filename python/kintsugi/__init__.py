"""Matrix products at FP32, FP64 or exact accuracy on low-precision matrix engines.

    >>> import numpy as np, kintsugi
    >>> a = np.array([[1e300, 1.0], [2.0, 3.0]])
    >>> kintsugi.matmul(a, a, accuracy="exact")

Arrays are numpy's or anything with DLPack, on the CPU or on a CUDA device; docs/PYTHON.md has examples.
"""

from kintsugi._abi import KintsugiError, library
from kintsugi._dlpack import DeviceArray
from kintsugi._gemm import engines, last_report, matmul, matmul_dd, release_caches, schemes
from kintsugi._operands import Prepared
from kintsugi._options import MissingEngineWarning
from kintsugi._plans import Plan, explain, last_plan, plan
from kintsugi._prepare import prepare

__version__ = library.kintsugi_version().decode()

__all__ = ["DeviceArray", "KintsugiError", "MissingEngineWarning", "Plan", "Prepared", "engines", "explain", "last_plan",
           "last_report", "matmul", "matmul_dd", "plan", "prepare", "release_caches", "schemes", "__version__"]
