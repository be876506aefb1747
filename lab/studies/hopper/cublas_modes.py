#!/usr/bin/env python3
"""le-gemm's Fig. 18 on a GPU: speed and mean relative error of cuBLAS's modes for FP32 operands beside fp16x3 and legemm."""

import argparse
import ctypes
import json
import sys

EXAMPLE = """example:
  lab/studies/hopper/cublas_modes.py --sizes 1024,2048,4096,8192 --output programs-trade.json"""
# Modes of cublasGemmEx (cublasComputeType_t) with the type of operands and result, cudaDataType and numpy's.
MODES = {"32F": (68, 0, "float32"), "32F_FAST_16F": (74, 0, "float32"), "64F": (70, 1, "float64")}
SCHEMES = ("fp16x3", "legemm")
DEFAULT_ALGORITHM = -1


class Product:
    """C = A B of n x n matrices on [-1, 1] by a mode of cuBLAS or a scheme of Kintsugi."""

    def __init__(self, cupy, n):
        self.cupy, self.n = cupy, n
        self.cublas = ctypes.CDLL("libcublas.so.13")  # CuPy's own functions refuse a stream that is captured
        self.handle = ctypes.c_void_p(cupy.cuda.device.get_cublas_handle())
        random = cupy.random.RandomState(1)
        self.operands = {"float32": [2 * random.rand(n, n, dtype="float32") - 1 for _ in "ab"]}
        self.operands["float64"] = [x.astype("float64") for x in self.operands["float32"]]

    def by_mode(self, mode):
        compute, data, name = MODES[mode]
        cupy, n = self.cupy, self.n
        a, b = self.operands[name]
        c = cupy.empty((n, n), name)
        real = ctypes.c_float if name == "float32" else ctypes.c_double
        one, zero = real(1), real(0)
        first_a, first_b, first_c = (ctypes.c_void_p(x.data.ptr) for x in (a, b, c))

        def call():  # row-major C is C^T = B^T A^T in cuBLAS's order
            self.cublas.cublasSetStream_v2(self.handle, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr))
            status = self.cublas.cublasGemmEx(self.handle, 0, 0, n, n, n, ctypes.byref(one), first_b, data, n, first_a, data, n,
                                              ctypes.byref(zero), first_c, data, n, compute, DEFAULT_ALGORITHM)
            if status != 0:
                raise RuntimeError(f"cublasGemmEx {mode}: status {status}")
        return call, c

    def by_scheme(self, scheme):
        import kintsugi
        a, b = self.operands["float32"]
        c = self.cupy.empty((self.n, self.n), "float32")
        return (lambda: kintsugi.matmul(a, b, out=c, scheme=scheme)), c

    def seconds(self, call, rounds):
        """The least time of one of `rounds` launches of a CUDA graph of calls, for each of them: the host's time does not count."""
        calls = max(1, 2**37 // self.n**3)
        stream = self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            call()
            stream.begin_capture()
            for _ in range(calls):
                call()
            graph = stream.end_capture()
            best = float("inf")
            for _ in range(rounds + 1):
                begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
                begin.record()
                graph.launch()
                end.record()
                end.synchronize()
                best = min(best, self.cupy.cuda.get_elapsed_time(begin, end) / 1e3 / calls)
        return best


def rows_of(cupy, n, rounds):
    product = Product(cupy, n)
    exact, reference = product.by_mode("64F")
    exact()
    rows = []
    for mode in (*MODES, *SCHEMES):
        call, c = product.by_mode(mode) if mode in MODES else product.by_scheme(mode)
        call()
        error = float(cupy.mean(cupy.abs((c - reference) / reference)))
        seconds = product.seconds(call, rounds)
        rows.append({"mode": mode, "n": n, "seconds": seconds, "rate": 2 * n**3 / seconds, "mean_relative": error})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1024,2048,4096,8192", help="of square matrices; default %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts; default %(default)s")
    parser.add_argument("--output", metavar="FILE", help="for the results as JSON; default standard output")
    options = parser.parse_args()
    import cupy
    rows = [row for n in options.sizes.split(",") for row in rows_of(cupy, int(n), options.rounds)]
    device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    text = json.dumps({"format": "kintsugi.cublas-modes", "format_version": 1, "machine": device, "rows": rows}, indent=1)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
