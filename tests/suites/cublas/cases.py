"""Random calls of every hooked product of cuBLAS: arguments, references and bounds, and the comparison of a result with them."""

import ctypes
import functools
import random

import numpy
from device import ARENA

MASK = (1 << 64) - 1
TYPES = {"S": numpy.float32, "D": numpy.float64, "C": numpy.complex64, "Z": numpy.complex128}
DATA_TYPES = {"S": 0, "D": 1, "C": 4, "Z": 5}
COMPUTE = {"S": 68, "D": 70, "C": 68, "Z": 70}
EMULATIONS = {"S": 78, "D": 79, "C": 78, "Z": 79}  # cuBLAS's own


def drawn_compute(choice, family, letter):
    return EMULATIONS[letter] if family.endswith("ex") and choice.random() < 0.25 else COMPUTE[letter]


def names():
    """(function, family, letter or None), each with both types of integers."""
    found = [(f"cublas{letter}gemm_v2", "gemm", letter) for letter in "SDCZ"] + [("cublasCgemm3m", "gemm", "C")]
    found += [("cublasZgemm3m", "gemm", "Z"), ("cublasSgemmEx", "typed", "S"), ("cublasCgemmEx", "typed", "C")]
    found += [("cublasCgemm3mEx", "typed", "C"), ("cublasGemmEx", "ex", None)]
    for family, name in (("strided", "StridedBatched"), ("batched", "Batched")):
        found += [(f"cublas{letter}gemm{name}", family, letter) for letter in "SDCZ"]
        found += [(f"cublasCgemm3m{name}", family, "C"), (f"cublasGemm{name}Ex", f"{family}_ex", None)]
    found += [(f"cublas{letter}gemmGroupedBatched", "grouped", letter) for letter in "SD"] + [("cublasGemmGroupedBatchedEx", "grouped_ex", None)]
    both = [(f"{name}{suffix}", family, letter) for name, family, letter in found for suffix in ("", "_64")]
    return both + [("cublasLtMatmul", "matmul_strided", None)] * 4


def activated(x, bound, activation):
    """ReLU or GELU of x and its bound. cuBLAS's function of GELU is an approximation by tanh, which is taken to be right to
    1e-3 of x."""
    with numpy.errstate(all="ignore"):
        if activation == 2:
            return numpy.where(x < 0, 0, x), bound
        if activation == 32:
            y = 0.5 * x * (1 + numpy.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
            return numpy.where(numpy.isfinite(x), y, numpy.nan), 1.2 * bound + 1e-3 * numpy.abs(x) + 1e-6
    return x, bound


class Case:
    """One random call: host arrays, arguments, reference and bound."""

    def __init__(self, name, family, letter, seed):
        self.name, self.family, self.kept = name, family, []
        self.choice, self.values = random.Random(seed), numpy.random.default_rng(seed)
        self.letter = letter or self.choice.choice("SDCZ")
        self.type, self.is_batch = TYPES[self.letter], not family.startswith(("gemm", "typed", "ex"))
        self.bias, self.activation = None, 0
        self.draw_shape()
        self.draw_values()
        self.compute = drawn_compute(self.choice, family, self.letter)

    def draw_shape(self):
        sizes = [1, 2, 3, 7, 16, 31, 64, 65, 100] if self.is_batch else [1, 2, 5, 16, 33, 64, 127, 128, 200, 256]
        self.m, self.n, self.k = (self.choice.choice(sizes) for _ in range(3))
        self.op_a, self.op_b = (self.choice.randrange(3) for _ in range(2))
        padding = lambda: self.choice.choice([0, 0, 1, 5])
        self.shapes = {"a": (self.m, self.k) if self.op_a == 0 else (self.k, self.m),
                       "b": (self.k, self.n) if self.op_b == 0 else (self.n, self.k), "c": (self.m, self.n)}
        self.ld = {name: rows + padding() for name, (rows, _) in self.shapes.items()}
        self.count = self.choice.choice([1, 2, 3, 5]) if self.is_batch else 1
        self.stride = {name: self.ld[name] * columns + padding() for name, (_, columns) in self.shapes.items()}
        if "strided" in self.family and self.choice.random() < 0.2:
            self.stride["b"] = 0
        self.pointer_mode = self.choice.randrange(2)

    def number(self, shape):
        spread = self.choice.choice([0, 0, 3, 12])  # binades by row
        real = lambda: (self.values.random(shape) * 2 - 1) * 2.0 ** self.values.integers(-spread, spread + 1, shape)
        return (real() + 1j * real() if self.letter in "CZ" else real()).astype(self.type)

    def draw_values(self):
        self.arrays = {}
        for name in "abc":
            data = numpy.full(self.stride[name] * (self.count - 1) + self.ld[name] * self.shapes[name][1], numpy.nan, self.type)
            for matrix in self.views(name, data):
                matrix[...] = self.number(matrix.shape)
            self.arrays[name] = data
        scalars = [0, 1, -1, 2, 0.7]
        self.alpha, self.beta = (self.type(self.choice.choice(scalars)) for _ in range(2))
        self.special = self.choice.random() < 0.15
        if self.family == "matmul_strided" and self.letter in "SD" and self.count == 1 and self.choice.random() < 0.5:
            self.beta, self.pointer_mode, self.bias = self.type(0), 0, self.number(self.m)
            self.activation = self.choice.choice([0, 2, 32]) if self.letter == "S" else 0
        if self.special:
            for _ in range(3):
                name = self.choice.choice("abc")
                matrix = self.choice.choice(list(self.views(name, self.arrays[name])))
                matrix[self.choice.randrange(matrix.shape[0]), self.choice.randrange(matrix.shape[1])] = self.choice.choice(
                    [numpy.nan, numpy.inf, -numpy.inf])
        if self.beta == 0:
            self.arrays["c"][...] = numpy.nan

    def views(self, name, data):
        rows, columns = self.shapes[name]
        for item in range(self.count):
            part = data[item * self.stride[name]:][:self.ld[name] * columns]
            yield part.reshape(columns, self.ld[name]).T[:rows]

    @functools.cached_property
    def reference(self):
        """Exact enough results and bounds of all items."""
        return list(self.references())

    def references(self):
        wide = {"S": numpy.float64, "C": numpy.complex128, "D": numpy.longdouble, "Z": numpy.clongdouble}[self.letter]
        unit = 2.0**-24 if self.letter in "SC" else 2.0**-53
        op = lambda matrix, code: matrix if code == 0 else matrix.T if code == 1 else matrix.conj().T
        products = self.k * (2 if self.letter in "CZ" else 1)
        with numpy.errstate(all="ignore"):
            for a, b, c in zip(*(self.views(name, self.arrays[name]) for name in "abc")):
                a, b, c = (op(a, self.op_a).astype(wide), op(b, self.op_b).astype(wide), c.astype(wide))
                alpha, beta = wide(self.alpha), wide(self.beta)
                result = numpy.zeros_like(c) if self.beta == 0 else beta * c
                bound = numpy.zeros(c.shape) if self.beta == 0 else 4 * unit * numpy.abs(result).astype(float)
                if self.bias is not None:
                    result = result + self.bias.astype(wide)[:, None]
                    bound = bound + 4 * unit * numpy.abs(self.bias).astype(float)[:, None]
                if self.alpha != 0:
                    result = result + alpha * (a @ b)
                    size = numpy.abs(a).astype(float) @ numpy.abs(b).astype(float)
                    bound = bound + (products + 16) * unit * abs(self.alpha) * size * (2 if self.letter in "CZ" else 1)
                yield activated(result, bound, self.activation)

    def arguments(self, device, output):
        """Arguments by name, with C in the given part of the arena."""
        small = 1024 * 64  # scalars and pointers lie at the end of a part
        table = device.address(output) + ARENA // 4 - small
        addresses = {"a": device.address(0), "b": device.address(1), "c": device.address(output)}
        scalars = numpy.array([self.alpha, self.beta], self.type)
        if self.pointer_mode:
            device.copy(table, scalars)
            alpha, beta = table, table + scalars.itemsize
        else:
            self.kept.append(scalars)  # until the calls are made
            alpha, beta = scalars.ctypes.data, scalars.ctypes.data + scalars.itemsize
        if "batched" in self.family:
            for number, name in enumerate("abc"):
                bytes_apart = self.stride[name] * self.arrays[name].itemsize
                pointers = numpy.array([addresses[name] + item * bytes_apart for item in range(self.count)], numpy.uint64)
                device.copy(table + 1024 * (number + 1), pointers)
                addresses[name] = table + 1024 * (number + 1)
        return dict(handle=device.handle.value, op_a=self.op_a, op_b=self.op_b, m=self.m, n=self.n, k=self.k, alpha=alpha,
                    beta=beta, **addresses, **{f"ld{name}": value for name, value in self.ld.items()},
                    **{f"stride_{name}": value for name, value in self.stride.items()}, count=self.count,
                    type=DATA_TYPES[self.letter], compute=self.compute, algorithm=-1)

    def call(self, device, library, given):
        if self.name == "cublasLtMatmul":
            return matmul(device, library, given, self.bias, self.activation)
        integer = ctypes.c_int64 if self.name.endswith("_64") else ctypes.c_int
        pointer, code, stride = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
        words = [pointer(given["handle"]), code(given["op_a"]), code(given["op_b"]), *(integer(given[name]) for name in "mnk")]
        has_types = self.family in ("typed", "ex", "strided_ex", "batched_ex")
        for name, scalar in (("a", "alpha"), ("b", None), ("c", "beta")):
            words += [pointer(given[scalar])] if scalar else []
            words += [pointer(given[name])] + ([code(given["type"])] if has_types else []) + [integer(given[f"ld{name}"])]
            words += [stride(given[f"stride_{name}"])] if "strided" in self.family else []
        words += [integer(given["count"])] if self.is_batch else []
        words += [code(given["compute"]), code(given["algorithm"])] if self.family.endswith("ex") else []
        return library[self.name](*words)

    def text(self):
        return (f"{self.name} type={self.letter} ops={self.op_a}{self.op_b} m={self.m} n={self.n} k={self.k} ld={self.ld} "
                f"count={self.count} strides={self.stride} alpha={self.alpha} beta={self.beta} pointer_mode={self.pointer_mode} "
                f"activation={self.activation} compute={self.compute}")


class GroupedCase:
    """One random call of a grouped batch: each group is a batch by pointers with its own shape and scalars."""

    def __init__(self, name, family, letter, seed):
        self.name, self.family, self.choice = name, family, random.Random(seed)
        self.letter, self.pointer_mode, self.activation = letter or self.choice.choice("SD"), 0, 0
        self.groups = [Case(name, "batched", self.letter, 31 * seed + group) for group in range(self.choice.choice([1, 2, 3, 4]))]
        self.special = any(group.special for group in self.groups)
        self.compute = drawn_compute(self.choice, family, self.letter)
        self.arrays = {name: numpy.concatenate([group.arrays[name] for group in self.groups]) for name in "abc"}

    def arguments(self, device, output):
        table = device.address(output) + ARENA // 4 - 1024 * 64
        given = {"handle": device.handle.value, "type": DATA_TYPES[self.letter], "compute": self.compute}
        for number, (name, part) in enumerate((("a", 0), ("b", 1), ("c", output))):
            pointers, first = [], device.address(part)
            for group in self.groups:
                items = range(group.count)
                pointers += [first + item * group.stride[name] * group.arrays[name].itemsize for item in items]
                first += group.arrays[name].nbytes
            given[name] = table + 1024 * (number + 1)
            device.copy(given[name], numpy.array(pointers, numpy.uint64))
        for name in ("op_a", "op_b", "m", "n", "k", "count"):
            given[name] = [getattr(group, name) for group in self.groups]
        for name in "abc":
            given[f"ld{name}"] = [group.ld[name] for group in self.groups]
        return given

    def call(self, device, library, given):
        integer = ctypes.c_int64 if self.name.endswith("_64") else ctypes.c_int
        kept = [numpy.array([getattr(group, scalar) for group in self.groups], TYPES[self.letter]) for scalar in ("alpha", "beta")]
        array = lambda type, name: (type * len(self.groups))(*given[name])
        type = [ctypes.c_int(given["type"])] if self.family == "grouped_ex" else []
        words = [ctypes.c_void_p(given["handle"]), array(ctypes.c_int, "op_a"), array(ctypes.c_int, "op_b"), *(array(integer, name) for name in "mnk")]
        words += [ctypes.c_void_p(kept[0].ctypes.data), ctypes.c_void_p(given["a"]), *type, array(integer, "lda")]
        words += [ctypes.c_void_p(given["b"]), *type, array(integer, "ldb"), ctypes.c_void_p(kept[1].ctypes.data), ctypes.c_void_p(given["c"]), *type]
        words += [array(integer, "ldc"), integer(len(self.groups)), array(integer, "count")]
        return library[self.name](*words, *([ctypes.c_int(given["compute"])] if type else []))

    def text(self):
        return f"{len(self.groups)} groups, compute={self.compute}: " + "; ".join(group.text() for group in self.groups)


def matmul(device, library, given, bias, activation):
    """cublasLtMatmul with C = D, the arguments' handle being that of cublasLt; a bias lies at the end of A's part."""
    set_number = lambda function, descriptor, name, type, number: getattr(device.lt, function)(
        descriptor, name, ctypes.byref(type(number)), ctypes.sizeof(type))
    description = ctypes.c_void_p()
    if status := device.lt.cublasLtMatmulDescCreate(ctypes.byref(description), given["compute"], given["type"]):
        return status
    mode = ctypes.c_int()
    device.real.cublasGetPointerMode_v2(device.handle, ctypes.byref(mode))
    for name, number in ((2, mode.value), (3, given["op_a"]), (4, given["op_b"])):
        set_number("cublasLtMatmulDescSetAttribute", description, name, ctypes.c_int, number)
    if bias is not None:
        address = device.address(0) + ARENA // 4 - 1024 * 64
        device.copy(address, bias)
        set_number("cublasLtMatmulDescSetAttribute", description, 7, ctypes.c_uint32, 4 | activation)
        set_number("cublasLtMatmulDescSetAttribute", description, 8, ctypes.c_uint64, address)
    m, n, k = (given[name] for name in "mnk")
    sizes = {"a": (m, k) if given["op_a"] == 0 else (k, m), "b": (k, n) if given["op_b"] == 0 else (n, k), "c": (m, n)}
    layouts = {}
    for name, (rows, columns) in sizes.items():
        layouts[name] = ctypes.c_void_p()
        device.lt.cublasLtMatrixLayoutCreate(ctypes.byref(layouts[name]), given["type"], ctypes.c_uint64(rows & MASK),
                                             ctypes.c_uint64(columns & MASK), ctypes.c_int64(given[f"ld{name}"]))
        set_number("cublasLtMatrixLayoutSetAttribute", layouts[name], 5, ctypes.c_int32, given["count"])
        set_number("cublasLtMatrixLayoutSetAttribute", layouts[name], 6, ctypes.c_int64, given[f"stride_{name}"])
    pointers = [ctypes.c_void_p(given[name]) for name in ("handle", "alpha", "a", "b", "beta", "c")]
    handle, alpha, a, b, beta, c = pointers
    status = library.cublasLtMatmul(handle, description, alpha, a, layouts["a"], b, layouts["b"], beta, c, layouts["c"], c,
                                    layouts["c"], None, None, ctypes.c_size_t(0), device.stream)
    device.lt.cublasLtMatmulDescDestroy(description)
    for layout in layouts.values():
        device.lt.cublasLtMatrixLayoutDestroy(layout)
    return status


def compare(case, result):
    """Returns what is wrong with C's array; "" if nothing is."""
    if isinstance(case, GroupedCase):
        ends = numpy.cumsum([len(group.arrays["c"]) for group in case.groups])
        errors = [compare(group, part) for group, part in zip(case.groups, numpy.split(result, ends[:-1]))]
        return "; ".join(f"group {number}: {error}" for number, error in enumerate(errors) if error)
    inside = numpy.zeros(result.shape, bool)
    for mask in case.views("c", inside):
        mask[...] = True
    before = case.arrays["c"]
    if not numpy.array_equal(result[~inside].view(numpy.uint8), before[~inside].view(numpy.uint8)):
        return "memory beside C was written"
    is_complex = case.letter in "CZ"
    for found, (expected, bound) in zip(case.views("c", result), case.reference):
        finite = numpy.isfinite(expected) & numpy.isfinite(bound)
        with numpy.errstate(all="ignore"):
            excess = (numpy.abs(found.astype(expected.dtype) - expected) / numpy.maximum(bound, 1e-300)).astype(float)
        if finite.any() and not (excess[finite] <= 1).all():
            return f"error {numpy.nanmax(excess[finite]):.3g} times the bound"
        rest = ~finite
        same = ~numpy.isfinite(found[rest]) if is_complex or case.activation else numpy.array_equal(
            found[rest], expected[rest].astype(found.dtype), equal_nan=True)
        if not numpy.all(same):
            return "NaN or infinities are not where the reference has them"
    return ""


def new_case(name, family, letter, seed):
    return (GroupedCase if family.startswith("grouped") else Case)(name, family, letter, seed)
