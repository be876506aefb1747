"""Random products of arrays with any strides, and what they must give."""

import dataclasses
import math

import kintsugi
import numpy as np

TYPES = [np.float32, np.float64, np.complex64, np.complex128]


@dataclasses.dataclass
class Geometry:
    """Positions of an array's elements, in bytes of its memory."""

    shape: tuple
    strides: tuple
    offset: int
    size: int  # of the memory

    def view(self, memory, dtype):
        """Returns a numpy view of the bytes of an array or a bytearray."""
        return np.ndarray(self.shape, dtype, memory, self.offset, self.strides)


def random_geometry(rng, shape, itemsize, *, negative=True, repeated=True, unit=None):
    """Dimensions in random order in memory, with steps and gaps of `unit` bytes, by default some of whole
    elements, of parts of such, and of single bytes; some of no step or less than the elements span, where
    those may be `repeated`."""
    unit = unit or int(rng.choice([itemsize] * 8 + [math.gcd(itemsize, 4)] * 2 + [1]))
    strides, span = [0] * len(shape), itemsize
    # Mostly the last or the last but one is the innermost, as BLAS walks; batches outside or anywhere.
    order = list(range(len(shape)))[::-1]
    if rng.random() < 0.3:
        rng.shuffle(order)
    elif len(order) > 1 and rng.random() < 0.5:
        order[:2] = order[1::-1]
    for place, axis in enumerate(order):
        if repeated and rng.random() < 0.05:
            strides[axis] = itemsize * int(rng.integers(0, 3)) if unit % itemsize == 0 else 0
            span += strides[axis] * max(shape[axis] - 1, 0)
            continue
        dense = rng.random() < (0.8 if place == 0 else 0.5)
        strides[axis] = -(-span // unit) * unit if dense else -(-span // unit) * unit + unit * int(rng.integers(1, 9))
        span += strides[axis] * max(shape[axis] - 1, 0)
        if negative and rng.random() < 0.15:
            strides[axis] = -strides[axis]
    first = unit * int(rng.integers(0, 5))
    offset = first - sum(stride * max(length - 1, 0) for stride, length in zip(strides, shape) if stride < 0)
    return Geometry(tuple(shape), tuple(strides), offset, first + span + unit * int(rng.integers(0, 5)))


def random_values(rng, shape, dtype, integers):
    """Integers so small that every order of additions is exact, or normal numbers."""
    def part():
        return rng.integers(-9, 10, shape) if integers else rng.standard_normal(shape)

    return np.asarray(part() + 1j * part() if np.issubdtype(dtype, np.complexfloating) else part()).astype(dtype)


def random_shapes(rng):
    """Returns shapes of a and b, which broadcast, or are vectors."""
    def length():
        return int(rng.choice([0, 1, 2, 3, 5, 8, 17, 40], p=[0.03, 0.17, 0.15, 0.2, 0.15, 0.15, 0.1, 0.05]))

    batch = [int(rng.integers(1, 4)) for _ in range(rng.choice([0, 0, 1, 2]))]
    m, n, k = length(), length(), length()

    def side(rows, columns):
        own = [1 if rng.random() < 0.2 else size for size in batch]
        return (*own[int(rng.integers(0, len(own) + 1)) if rng.random() < 0.3 else 0 :], rows, columns)

    return (k,) if rng.random() < 0.07 else side(m, k), (k,) if rng.random() < 0.07 else side(k, n)


def product_and_bound(a, b, alpha, beta, c):
    """alpha a b + beta c in numbers of at least 64 bits, and how far a result of the type's own accuracy may
    be from it, each part. A product keeps (k + 8) u |a||b|, a complex one with two products a term; scaling
    and adding c round three times more, complex scalars six times; the reference itself rounds all those in
    2^-64."""
    dtype = np.result_type(a, b)
    terms = a.shape[-1] * (2 if dtype.kind == "c" else 1)
    half_ulp = np.finfo(dtype).eps / 2 + 2.0**-64
    (ar, ai), (br, bi), (cr, ci), p, q = (parts(x) for x in (a, b, c, alpha, beta))
    real, imaginary = ar @ br - ai @ bi, ar @ bi + ai @ br
    size_r, size_i = abs(ar) @ abs(br) + abs(ai) @ abs(bi), abs(ar) @ abs(bi) + abs(ai) @ abs(br)
    value = (p[0] * real - p[1] * imaginary + q[0] * cr - q[1] * ci, p[0] * imaginary + p[1] * real + q[0] * ci + q[1] * cr)
    sizes = (abs(p[0]) * size_r + abs(p[1]) * size_i + abs(q[0] * cr) + abs(q[1] * ci),
             abs(p[0]) * size_i + abs(p[1]) * size_r + abs(q[0] * ci) + abs(q[1] * cr))
    return value, [(terms + 14) * half_ulp * size for size in sizes]


def parts(x):
    return np.real(x).astype(np.longdouble), np.imag(x).astype(np.longdouble)


def check(result, value, bound, integers):
    for found, expected, most in zip(parts(result), value, bound):
        assert found.shape == expected.shape
        assert (abs(found - expected) <= (0 if integers else most)).all()


AS_STORED = {"stored": (lambda x: x, lambda x: x)}


def random_options(rng, dtype, integers):
    options = {"policy": rng.choice(["auto", "native", "emulate"]), "threads": 1}
    if rng.random() < 0.2:
        options.update(accuracy="exact", policy="auto")
    elif integers and dtype in (np.float32, np.complex64) and rng.random() < 0.3:
        options.update(scheme="fp16x3", policy="auto")
    return options


def random_scalar(rng, dtype, integers):
    return random_values(rng, (), dtype, integers)[()] if rng.random() < 0.5 else dtype(rng.integers(0, 2))


class Placed:
    """Values in a library's memory, seen through one of `views`: pairs of what gives that view of a tensor,
    and of numpy's array."""

    def __init__(self, rng, library, values, views, *, repeated=True):
        self.library = library
        dtype, itemsize = values.dtype, values.dtype.itemsize
        self.geometry = random_geometry(rng, values.shape, itemsize, unit=itemsize, repeated=repeated,
                                        negative=library.negative_strides)
        self.before = rng.integers(0, 256, self.geometry.size, np.uint8)  # any bytes, NaNs among them
        self.geometry.view(self.before, dtype)[...] = values
        self.memory, tensor = library.place(self.before, self.geometry, dtype)
        lazy, self._seen = views[rng.choice(list(views))]
        self.tensor = lazy(tensor)
        self.values = self._seen(np.array(self.geometry.view(self.before, dtype)))

    def check_memory(self, elements=None):
        """It has these elements; nothing else has changed."""
        after = self.library.bytes(self.memory).copy()
        if elements is not None:
            stored = self.geometry.view(after, elements.dtype)
            assert (stored == self._seen(elements)).all()  # torch gives some zeros another sign
            stored[...] = self.geometry.view(self.before, elements.dtype)
        assert (after == self.before).all()


def check_random_product(seed, library, views=AS_STORED):
    """Checks a product of a library's tensors, whose geometry has whole elements. library: negative_strides; place(memory, geometry, dtype),
    a copy of the memory and the tensor in it; bytes(copy); array(tensor)."""
    rng = np.random.default_rng(seed)
    integers, dtype = rng.random() < 0.5, TYPES[rng.integers(4)]
    a, b = (Placed(rng, library, random_values(rng, shape, dtype, integers), views) for shape in random_shapes(rng))
    alpha, beta, out, old = random_scalar(rng, dtype, integers), dtype(0), None, None
    shape = (a.values @ b.values).shape
    if rng.random() < 0.6:
        out = Placed(rng, library, random_values(rng, shape, dtype, integers), views, repeated=False)
        beta = random_scalar(rng, dtype, integers)
    old = np.zeros(shape, dtype) if out is None else out.values
    result = kintsugi.matmul(a.tensor, b.tensor, alpha=alpha, beta=beta, out=out and out.tensor,
                             **random_options(rng, dtype, integers))
    found = library.array(result)
    assert found.dtype == dtype
    check(found, *product_and_bound(a.values, b.values, alpha, beta, old), integers)
    a.check_memory()
    b.check_memory()
    if out is not None:
        assert result is out.tensor
        out.check_memory(found)
