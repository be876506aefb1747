#!/usr/bin/env python3
"""Profiles the kernels of lab/kernels/le_gemm_wmma.cu by NVIDIA's ncu: the bytes that a square product reads and writes in
device memory and in the second cache, as JSON. The counted bytes of every thread block's loads stand beside them."""

import argparse
import csv
import ctypes
import json
import subprocess
import sys

# Name, rows and columns of C a thread block, threads, buffers, slices, products.
KERNELS = [("wmma_direct", 64, 64, 512, 0, 1, 1), ("markidis_direct", 64, 64, 512, 0, 2, 4),
           ("ootomo_direct", 64, 64, 512, 0, 2, 3), ("le_gemm_direct", 64, 64, 512, 0, 2, 3),
           ("wmma_128x128x1", 128, 128, 256, 1, 1, 1), ("markidis_128x128x1", 128, 128, 256, 1, 2, 4),
           ("ootomo_128x128x1", 128, 128, 256, 1, 2, 3), ("le_gemm_128x128x1", 128, 128, 256, 1, 2, 3),
           ("le_gemm_64x64x2", 64, 64, 128, 2, 2, 3), ("le_gemm_128x128x2", 128, 128, 256, 2, 2, 3),
           ("le_gemm_128x256x2", 128, 256, 512, 2, 2, 3)]
DEPTH, PAD, EDGE, HALF, FLOAT = 32, 8, 16, 2, 4
DRAM, CACHE, SECONDS = "dram__bytes.sum", "lts__t_bytes.sum", "gpu__time_duration.sum"
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12,
         "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


class Matrices(ctypes.Structure):
    """The kernels' argument."""
    _fields_ = [("a", ctypes.c_uint64 * 2), ("b", ctypes.c_uint64 * 2), ("c", ctypes.c_uint64),
                ("m", ctypes.c_int64), ("n", ctypes.c_int64), ("k", ctypes.c_int64)]


def launch_all(image, n):
    """Launches every kernel once, of slices that are 1."""
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        if status := getattr(driver, name)(*arguments):
            sys.exit(f"le_gemm_roofline: {name} answers with {status}")

    def memory(size, pattern):
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        call("cuMemsetD16_v2", address, ctypes.c_uint16(pattern), ctypes.c_size_t(size // 2))
        return address.value

    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoad", ctypes.byref(module), str(image).encode())
    slices = [memory(n * n * HALF, 0x3C00) for _ in range(4)]
    matrices = Matrices((ctypes.c_uint64 * 2)(*slices[:2]), (ctypes.c_uint64 * 2)(*slices[2:]), memory(n * n * FLOAT, 0), n, n, n)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(matrices))
    for name, rows, columns, threads, buffers, count, _ in KERNELS:
        kernel = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())
        shared = buffers * count * HALF * (rows * (DEPTH + PAD) + DEPTH * (columns + PAD))
        call("cuFuncSetAttribute", kernel, 8, shared)  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuLaunchKernel", kernel, n // rows * (n // columns), 1, 1, threads, 1, 1, shared, None, parameters, None)
        call("cuCtxSynchronize")


def counted_bytes(kernel, n):
    """Bytes that thread blocks load (warps, without buffers), and those of C, as the registry's claim counts them."""
    _, rows, columns, _, buffers, count, _ = kernel
    tile_rows, tile_columns = (rows, columns) if buffers else (EDGE, EDGE)
    return HALF * count * n**3 * (1 / tile_rows + 1 / tile_columns) + FLOAT * n * n


def profiled(image, n):
    """{kernel: {metric: value}} by ncu."""
    done = subprocess.run(["ncu", "--csv", "--page", "raw", "--print-units", "base", "--metrics", f"{DRAM},{CACHE},{SECONDS}",
                           sys.executable, __file__, image, "--size", str(n), "--launch"], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode or len(lines) < 3:
        sys.exit(f"le_gemm_roofline: ncu answers with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    table = list(csv.DictReader(lines))
    units, rows = table[0], table[1:]
    return {row["Kernel Name"].split("(")[0]: {metric: float(row[metric].replace(",", "")) * UNITS[units[metric]]
                                               for metric in (DRAM, CACHE, SECONDS)} for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image", help="le_gemm_wmma.cu compiled: nvcc -cubin -arch=sm_90")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns [8192]")
    parser.add_argument("--launch", action="store_true", help="launch the kernels, unprofiled")
    words = parser.parse_args()
    if words.launch:
        launch_all(words.image, words.size)
        return
    found = profiled(words.image, words.size)
    rows = []
    for kernel in KERNELS:
        values, operations = found[kernel[0]], 2 * kernel[-1] * words.size**3
        rows.append({"kernel": kernel[0], "seconds": values[SECONDS], "dram_bytes": values[DRAM], "cache_bytes": values[CACHE],
                     "counted_bytes": counted_bytes(kernel, words.size), "operations_a_dram_byte": operations / values[DRAM],
                     "operations_a_cache_byte": operations / values[CACHE], "tensor_flops": operations / values[SECONDS]})
    print(json.dumps({"n": words.size, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
