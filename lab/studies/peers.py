#!/usr/bin/env python3
"""Times FP64 products of Kintsugi and of cuBLAS, native and by its fixed-point emulation, in one process and in both orders of
turns, with the error of each beside its rate. --tables prints the tables of docs/results/peers.md from the file.

--write replaces the tables of the page by these.

Needs a GPU, numpy, libkintsugi, and a libcublas whose eager emulation runs there (13.10 on compute capability 9.0).

example: lab/studies/peers.py --kintsugi build/libkintsugi.so.0 --cublas libcublas.so.13 --json peers-fp64.json
         lab/studies/peers.py --tables docs/results/hopper/peers-fp64.json --write
"""

import argparse
import concurrent.futures
import ctypes
import datetime
import json
import math
import os
import pathlib
import statistics
import sys

SAMPLES = 16  # rows and columns of C whose common elements are compared with exact sums
THREADS = min(16, os.cpu_count() or 1)
KINTSUGI = {"ozaki2:moduli=15": {"scheme": b"ozaki2:moduli=15"}, "ozaki2:moduli=16": {"scheme": b"ozaki2:moduli=16"},
            "fp64": {"accuracy": b"fp64"}, "exact": {"accuracy": b"exact"}}
BITS = {"cuBLAS fixed 55": 55, "cuBLAS fixed 63": 63}
NATIVE = "cuBLAS native"
CONTESTANTS = [NATIVE, *BITS, *KINTSUGI]
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "results" / "peers.md"
F64, C64 = 1, 3  # kintsugi_type
FIXED_POINT_MATH, EAGER, FIXED = 8, 2, 1  # cublasMath_t, cublasEmulationStrategy_t, cudaEmulationMantissaControl


class Problem(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_int64) for name in (
        "m", "n", "k", "lda", "ldb", "ldc", "batch_count", "stride_a", "stride_b", "stride_c")] + [
            (name, ctypes.c_int32) for name in ("op_a", "op_b", "type_a", "type_b", "type_c", "type_scalar", "layout",
                                                "pointer_mode", "memory", "batch_kind", "prepared_a", "prepared_b")]


class Queue(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("stream", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_char_p) for name in (
        "accuracy", "scheme", "engine", "policy", "accumulator")] + [
            ("workspace_limit", ctypes.c_int64), ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32),
            ("allocate", ctypes.c_void_p), ("deallocate", ctypes.c_void_p), ("allocator_user", ctypes.c_void_p), ("queue", Queue)]


class Operands(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in (
        "alpha", "a", "b", "beta", "c", "prepared_a", "prepared_b", "workspace")] + [
            ("workspace_size", ctypes.c_size_t), ("queue", Queue)]


def check(status, what):
    if status != 0:
        sys.exit(f"peers: {what} returned {status}")


class Device:
    """The first GPU by the driver's API: matrices, a stream, times between events."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        device, context, self.stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)

    def call(self, name, *words):
        check(getattr(self.driver, name)(*words), name)

    def upload(self, array):
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(array.nbytes))
        self.call("cuMemcpyHtoD_v2", memory, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return memory

    def download(self, memory, array):
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), memory, ctypes.c_size_t(array.nbytes))

    def free(self, memory):
        self.call("cuMemFree_v2", memory)

    def seconds(self, product, calls):
        self.call("cuEventRecord", self.events[0], self.stream)
        for _ in range(calls):
            product()
        self.call("cuEventRecord", self.events[1], self.stream)
        self.call("cuEventSynchronize", self.events[1])
        milliseconds = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(milliseconds), *self.events)
        return milliseconds.value / 1e3 / calls


def random_matrix(numpy, rows, columns, phi, is_complex, seed):
    """(rand - 0.5) exp(phi randn), column-major; complex elements are pairs."""
    parts = 2 if is_complex else 1
    matrix = numpy.empty((columns, parts * rows))

    def fill(part):
        random = numpy.random.default_rng([seed, part])
        for j in range(part, columns, THREADS):
            matrix[j] = (random.random(parts * rows) - 0.5) * numpy.exp(phi * random.standard_normal(parts * rows))

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fill, range(THREADS)))
    return matrix


def exact_products(numpy, x, y):
    """The products x y as unevaluated sums of two numbers (Dekker)."""
    def halves(v):
        scaled = v * 134217729.0
        high = scaled - (scaled - v)
        return high, v - high

    product = x * y
    (xh, xl), (yh, yl) = halves(x), halves(y)
    return numpy.concatenate([product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl])


def references(numpy, a, b, rows, columns, is_complex):
    """{(i, j, part): (sum, sum of magnitudes)} of the sampled elements."""
    result = {}
    for i in rows:
        for j in columns:
            if not is_complex:
                result[i, j, 0] = (math.fsum(exact_products(numpy, a[:, i], b[j])), float(numpy.abs(a[:, i]) @ numpy.abs(b[j])))
                continue
            re_a, im_a, re_b, im_b = a[:, 2 * i], a[:, 2 * i + 1], b[j, ::2], b[j, 1::2]
            for part, terms in enumerate((((re_a, re_b), (-im_a, im_b)), ((re_a, im_b), (im_a, re_b)))):
                products = numpy.concatenate([exact_products(numpy, x, y) for x, y in terms])
                result[i, j, part] = (math.fsum(products), sum(float(numpy.abs(x) @ numpy.abs(y)) for x, y in terms))
    return result


class Library:
    """Functions of both libraries that multiply m x n x k matrices on the device."""

    def __init__(self, device, kintsugi, cublas):
        self.device, self.kintsugi, self.cublas = device, ctypes.CDLL(kintsugi), ctypes.CDLL(cublas)
        self.kintsugi.kintsugi_last_error.restype = ctypes.c_char_p
        version = ctypes.c_int()
        check(self.cublas.cublasGetVersion_v2(self.blas_handle(None), ctypes.byref(version)), "cublasGetVersion")
        self.version = version.value
        self.handles = {name: self.blas_handle(BITS.get(name)) for name in (NATIVE, *BITS)}

    def blas_handle(self, bits):
        handle = ctypes.c_void_p()
        check(self.cublas.cublasCreate_v2(ctypes.byref(handle)), "cublasCreate")
        check(self.cublas.cublasSetStream_v2(handle, self.device.stream), "cublasSetStream")
        if bits is not None:
            for name, value in (("cublasSetMathMode", FIXED_POINT_MATH), ("cublasSetEmulationStrategy", EAGER),
                                ("cublasSetFixedPointEmulationMantissaControl", FIXED),
                                ("cublasSetFixedPointEmulationMaxMantissaBitCount", bits)):
                check(getattr(self.cublas, name)(handle, value), name)
        return handle

    def product(self, name, shape, is_complex, a, b, c, beta):
        """A function without parameters that enqueues C = A B + beta C."""
        m, n, k = shape
        scalars = (ctypes.c_double * 4)(1, 0, beta, 0)
        one, beta_address = ctypes.addressof(scalars), ctypes.addressof(scalars) + 16
        if name in self.handles:
            function = self.cublas.cublasZgemm_v2 if is_complex else self.cublas.cublasDgemm_v2
            words = (self.handles[name], 0, 0, m, n, k, ctypes.c_void_p(one), a, m, b, k, ctypes.c_void_p(beta_address), c, m)
            return lambda: (check(function(*words), name), scalars)
        options = Options(ctypes.sizeof(Options), policy=b"emulate", queue=Queue(1, 0, self.device.stream), **KINTSUGI[name])
        kind = C64 if is_complex else F64
        problem = Problem(ctypes.sizeof(Problem), m, n, k, m, k, m, 1, type_a=kind, type_b=kind, type_c=kind, type_scalar=kind,
                          memory=1)
        operands = Operands(ctypes.sizeof(Operands), one, a.value, b.value, beta_address, c.value)

        def multiply():
            status = self.kintsugi.kintsugi_gemm(None, ctypes.byref(problem), ctypes.byref(options), ctypes.byref(operands))
            if status != 0:
                sys.exit(f"peers: {name}: {self.kintsugi.kintsugi_last_error().decode()}")
            return scalars
        return multiply


def error_of(device, product, c, host, known):
    product()
    device.call("cuStreamSynchronize", device.stream)
    device.download(c, host)
    parts = 1 + max(part for _, _, part in known)
    return max(abs(host[j, parts * i + part] - value) / magnitude for (i, j, part), (value, magnitude) in known.items())


def measure_case(numpy, device, library, case, rounds):
    is_complex, (m, n, k), phi, beta = case["type"] == "c64", case["shape"], case["phi"], case["beta"]
    a, b = (random_matrix(numpy, *size, phi, is_complex, seed) for seed, size in enumerate(((m, k), (k, n))))
    random = numpy.random.default_rng(9)
    rows, columns = (sorted(random.choice(length, min(SAMPLES, length), replace=False)) for length in (m, n))
    host = numpy.zeros((n, m * (2 if is_complex else 1)))
    memory = [device.upload(matrix) for matrix in (a, b, host)]
    names = [name for name in CONTESTANTS if name in case["contestants"]]
    known = references(numpy, a, b, rows, columns, is_complex)
    errors = {name: error_of(device, library.product(name, case["shape"], is_complex, *memory, 0), memory[2], host, known)
              for name in names}
    products = {name: library.product(name, case["shape"], is_complex, *memory, beta) for name in names}
    operations = (8 if is_complex else 2) * m * n * k
    calls = {name: max(3, math.ceil(0.02 / device.seconds(products[name], 2))) for name in names}
    times = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            times[name].append(device.seconds(products[name], calls[name]))
    for matrix in memory:
        device.free(matrix)
    return {**case, "rows": [{"name": name, "seconds": statistics.median(times[name]), "error": errors[name],
                              "tflops": operations / statistics.median(times[name]) / 1e12} for name in names]}


def cases(quick):
    few = [NATIVE, "cuBLAS fixed 55", "fp64"]
    sizes = (1024, 2048, 4096) if quick else (1024, 2048, 4096, 8192)
    for phi in (0.5, 2):
        for n in sizes:
            yield {"type": "f64", "shape": [n, n, n], "phi": phi, "beta": 0, "contestants": CONTESTANTS}
    for n in sizes[1:]:
        yield {"type": "c64", "shape": [n, n, n], "phi": 0.5, "beta": 0, "contestants": [*few, "ozaki2:moduli=16"]}
    if quick:
        return
    for k in (256, 512, 1024, 2048):
        yield {"type": "f64", "shape": [16384, 16384, k], "phi": 0.5, "beta": 1, "contestants": few}
    yield {"type": "f64", "shape": [65536, 1024, 1024], "phi": 0.5, "beta": 1, "contestants": few}
    yield {"type": "f64", "shape": [16384] * 3, "phi": 0.5, "beta": 0, "contestants": few}


def measure(words):
    import numpy
    for variable in ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATE_SINGLE_PRECISION"):
        os.environ.pop(variable, None)
    device = Device()
    library = Library(device, words.kintsugi, words.cublas)
    document = {"format": "kintsugi.peers", "format_version": 1, "date": datetime.date.today().isoformat(),
                "commit": words.commit, "device": device.name, "cublas": library.version, "cases": []}
    for case in cases(words.quick):
        document["cases"].append(measure_case(numpy, device, library, case, words.rounds))
        words.json.write_text(json.dumps(document, indent=1) + "\n")
        print(describe(document["cases"][-1]), flush=True)


def shape_text(shape):
    return str(shape[0]) if len(set(shape)) == 1 else " x ".join(map(str, shape))


def describe(case):
    cells = [f"{row['name']} {row['tflops']:.1f} ({row['error']:.1e})" for row in case["rows"]]
    return f"{case['type']} {shape_text(case['shape'])}, phi {case['phi']:g}, beta {case['beta']}: " + ", ".join(cells)


def tables(document):
    """{title: table} for each type, phi and beta: TFLOP/s and errors of each contestant by shape."""
    result = {}
    groups = dict.fromkeys((case["type"], case["phi"], case["beta"]) for case in document["cases"])
    for kind, phi, beta in groups:
        found = [case for case in document["cases"] if (case["type"], case["phi"], case["beta"]) == (kind, phi, beta)]
        names = [name for name in CONTESTANTS if any(row["name"] == name for case in found for row in case["rows"])]
        lines = ["| | " + " | ".join(shape_text(case["shape"]) for case in found) + " |", "|---" * (len(found) + 1) + "|"]
        for name in names:
            cells = []
            for case in found:
                row = next((row for row in case["rows"] if row["name"] == name), None)
                cells.append(f"{row['tflops']:.1f} ({row['error']:.1e})" if row else "")
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        result[f"{'ZGEMM' if kind == 'c64' else 'DGEMM'}, phi = {phi:g}, beta = {beta}:"] = "\n".join(lines)
    return result


def with_tables(page, new_tables):
    """The page, in which each table has replaced the one under the same title."""
    for title, table in new_tables.items():
        before, found, after = page.partition(f"\n{title}\n\n| |")
        if not found:
            sys.exit(f"peers: {PAGE.name} has no table {title!r}")
        page = f"{before}\n{title}\n\n{table}\n\n{after.partition(chr(10) * 2)[2]}"
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kintsugi", default="libkintsugi.so.0", help="the library [libkintsugi.so.0]")
    parser.add_argument("--cublas", default="libcublas.so.13", help="the vendor's library [libcublas.so.13]")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("peers-fp64.json"), help="file for what is measured")
    parser.add_argument("--commit", default="unknown", help="of which the library was built, as kintsugi --version prints it")
    parser.add_argument("--rounds", type=int, default=4, help="rounds, in both orders of turns [4]")
    parser.add_argument("--quick", action="store_true", help="sizes up to 4096 alone")
    parser.add_argument("--tables", type=pathlib.Path, metavar="FILE", help="measure nothing; print the tables of this file")
    parser.add_argument("--write", action="store_true", help="with --tables: write them into docs/results/peers.md")
    words = parser.parse_args()
    if words.write and not words.tables:
        parser.error("--write needs --tables FILE")
    if words.tables:
        new_tables = tables(json.loads(words.tables.read_text()))
        if words.write:
            PAGE.write_text(with_tables(PAGE.read_text(), new_tables))
        else:
            print("\n\n".join(f"{title}\n\n{table}" for title, table in new_tables.items()))
    else:
        measure(words)


if __name__ == "__main__":
    main()
