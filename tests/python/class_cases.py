"""Operands of other classes than numpy's own array: which are kept, as numpy keeps them, and which are refused, with their
elements untouched. Sizes as texts; copies of prepared operands. CLASS_SEEDS=0:100000 runs more than the suite does. Run by
test_package.py with the Python that the package is installed in.
"""

import copy
import multiprocessing
import os
import pickle
import types

import kintsugi
import numpy as np
import pytest
import torch_imitation
from random_views import TYPES, random_geometry, random_shapes, random_values

FIRST, LAST = (int(part) for part in os.environ.get("CLASS_SEEDS", "0:400").split(":"))


class Sub(np.ndarray):
    """A class without a priority."""


class Low(np.ndarray):
    __array_priority__ = -1.0


class High(np.ndarray):
    __array_priority__ = 5.0


class Named(np.ndarray):
    """A class that keeps a name in its results."""

    name = None
    __array_priority__ = 2.0

    def __array_finalize__(self, other):
        self.name = getattr(other, "name", None)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        result = array.view(Named)
        result.name = self.name
        return result


CLASSES = [np.ndarray, Sub, High, Named, np.matrix, np.memmap]
if np.lib.NumpyVersion(np.__version__) >= "2.0.0":  # An array of numpy's own class has a priority there, of 0.
    CLASSES.append(Low)


def random_operand(rng, shape, dtype):
    """A view with any strides, of any byte order and of any class that has its dimensions; and a copy."""
    geometry = random_geometry(rng, shape, np.dtype(dtype).itemsize)
    memory = rng.integers(0, 256, geometry.size, np.uint8)
    array = geometry.view(memory, np.dtype(dtype).newbyteorder() if rng.random() < 0.1 else dtype)
    array[...] = random_values(rng, shape, dtype, True)
    array.flags.writeable = rng.random() < 0.7
    kind = CLASSES[rng.integers(len(CLASSES))]
    if kind is np.matrix and array.ndim != 2:
        kind = Sub
    return array.view(kind), np.array(array)


@pytest.mark.parametrize("block", range(FIRST, LAST, 50))
def test_results_have_the_class_that_numpy_gives(block):
    for seed in range(block, min(block + 50, LAST)):
        rng = np.random.default_rng(seed)
        dtype = TYPES[rng.integers(4)]
        (a, values_a), (b, values_b) = (random_operand(rng, shape, dtype) for shape in random_shapes(rng))
        options = {"policy": "native"} if rng.random() < 0.7 else {"accuracy": "exact"}
        try:
            expected = np.matmul(a, b)
        except ValueError:  # a matrix has two dimensions
            with pytest.raises(ValueError):
                kintsugi.matmul(a, b, threads=1, **options)
            continue
        found = kintsugi.matmul(a, b, threads=1, **options)
        assert (type(found), found.shape, found.dtype) == (type(expected), expected.shape, expected.dtype), f"CLASS_SEEDS={seed}"
        assert (np.asarray(found) == np.asarray(expected)).all(), f"CLASS_SEEDS={seed}"
        assert (np.asarray(a) == values_a).all() and (np.asarray(b) == values_b).all()


def test_a_subclass_keeps_what_it_knows():
    named = np.eye(2).view(Named)
    named.name = "weights"
    product = kintsugi.matmul(np.ones((2, 2)), named)
    assert type(product) is Named and product.name == "weights"


def test_a_matrix_multiplies_further_as_a_matrix():
    """With an array in its place * would be elementwise."""
    matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    assert (kintsugi.matmul(matrix, matrix) * matrix == matrix**3).all()


@pytest.mark.parametrize("kind", [Sub, np.matrix, np.memmap])
def test_out_may_have_any_class(kind):
    out = np.zeros((2, 2)).view(kind)
    assert kintsugi.matmul(np.eye(2), 3 * np.eye(2), out=out) is out and (np.asarray(out) == 3 * np.eye(2)).all()


class Labelled:
    """As a DataFrame: an array, of which a product has a meaning of its own."""

    def __init__(self, array):
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __array_ufunc__(self, function, method, *inputs, **options):
        raise AssertionError("nobody multiplies by it")


class Quantity(np.ndarray):
    """As astropy's: an array with a unit."""

    def __array_ufunc__(self, function, method, *inputs, **options):
        raise AssertionError("nobody multiplies by it")


def labelled(*shape):
    return Labelled(np.ones(shape))


def quantity(*shape):
    return np.ones(shape).view(Quantity)


CALLS = {
    "a": lambda make: kintsugi.matmul(make(2, 2), np.eye(2)),
    "b": lambda make: kintsugi.matmul(np.eye(2), make(2, 2)),
    "alpha": lambda make: kintsugi.matmul(np.eye(2), np.eye(2), alpha=make()),
    "an item of a": lambda make: kintsugi.matmul([make(2), make(2)], np.eye(2)),
    "a of matmul_dd": lambda make: kintsugi.matmul_dd(make(2, 2, 2), np.ones((2, 2, 2))),
    "beta of matmul_dd": lambda make: kintsugi.matmul_dd(*np.ones((2, 2, 2, 2)), beta=make(), out=np.ones((2, 2, 2))),
    "a of plan": lambda make: kintsugi.plan(make(2, 2), np.eye(2)),
    "b of a plan": lambda make: kintsugi.plan(np.eye(2), np.eye(2))(np.eye(2), make(2, 2)),
    "b of explain": lambda make: kintsugi.explain(np.eye(2), make(2, 2)),
    "a of prepare": lambda make: kintsugi.prepare(make(2, 2), side="a"),
}


@pytest.mark.parametrize("make", [labelled, quantity])
@pytest.mark.parametrize("name", CALLS)
def test_classes_with_products_of_their_own_are_refused(name, make):
    argument = name if "item" in name else name.partition(" of ")[0]
    kind = type(make(2)).__name__
    with pytest.raises(TypeError, match=rf"^{argument} is a {kind}, whose products have a meaning .* numpy\.asarray"):
        CALLS[name](make)


@pytest.mark.parametrize("make", ["pandas.DataFrame", "xarray.DataArray"])
def test_data_frames_are_refused(make):
    module, _, name = make.partition(".")
    kind = getattr(pytest.importorskip(module), name)
    with pytest.raises(TypeError, match=f"^b is a {name}, whose products have a meaning"):
        kintsugi.matmul(np.eye(2), kind(np.eye(2)))


def test_sparse_matrices_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    for kind in (sparse.csr_array, sparse.coo_matrix):
        with pytest.raises(TypeError, match=f"a is a {kind.__name__}, which is no array of numbers"):
            kintsugi.matmul(kind(np.eye(2)), np.eye(2))


class Foreign:
    """An array on the CPU of a library of its own, whose namespace makes such arrays, of float32 alone where it `narrows`."""

    def __init__(self, array, narrows=False):
        self.array, self.narrows = array, narrows

    def __dlpack__(self, **options):
        if self.array.dtype == np.longdouble:
            raise BufferError("no type of DLPack")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        def from_dlpack(x):
            return Foreign(np.array(np.from_dlpack(x), np.float32 if self.narrows else None), self.narrows)

        return types.SimpleNamespace(from_dlpack=from_dlpack)


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_with_dlpack_stay_in_their_library(dtype):
    values = np.arange(6, dtype=dtype).reshape(2, 3)
    for a, b in ((Foreign(values), values.T), (values, Foreign(values.T)), (Foreign(values), Foreign(values.T).array.tolist())):
        product = kintsugi.matmul(a, b, accuracy="exact")
        assert type(product) is Foreign and (product.array == values @ values.T).all()
    number = kintsugi.matmul(Foreign(values[0]), values[1])
    assert type(number) is Foreign and number.array.shape == () and number.array == values[0] @ values[1]


def test_a_library_that_would_narrow_the_result_does_not_get_it():
    product = kintsugi.matmul(Foreign(np.eye(2, dtype=np.float32), narrows=True), np.full((2, 2), 1 + 2.0**-40))
    assert type(product) is np.ndarray and (product == 1 + 2.0**-40).all()


def test_a_type_without_dlpack_is_refused():
    with pytest.raises(TypeError, match="a is a Foreign that numpy cannot take by DLPack: no type"):
        kintsugi.matmul(Foreign(np.eye(2, dtype=np.longdouble)), np.eye(2))


def test_jax_arrays_stay_in_jax():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(6.0).reshape(2, 3)
    product = kintsugi.matmul(x, x.T, accuracy="exact")
    assert isinstance(product, jax.Array) and (product == x @ x.T).all()
    assert type(kintsugi.matmul(x, np.ones((3, 1)))) is np.ndarray, "JAX would round float64 to float32"
    with pytest.raises(TypeError, match="a is a ArrayImpl that numpy cannot take"):
        kintsugi.matmul(x.astype(jax.numpy.bfloat16), np.eye(3))
    with pytest.raises(ValueError, match="out is ArrayImpl, not numpy's nor torch's; this product needs an array"):
        kintsugi.matmul(x, x.T, out=x)


def test_subclasses_of_tensors_are_refused(monkeypatch):
    """Such as torch's MaskedTensor and DTensor."""
    torch_imitation.install(monkeypatch)

    class Masked(torch_imitation.Tensor):
        pass

    with pytest.raises(TypeError, match=r"b is a Masked, a subclass of torch\.Tensor.*as_subclass"):
        kintsugi.matmul(np.eye(2), Masked(np.eye(2), device="cpu"))
    product = kintsugi.matmul(np.eye(2), torch_imitation.Parameter(np.eye(2), device="cpu"))
    assert type(product) is torch_imitation.Tensor


# ------------------------------------------------------------ sizes as texts

def test_a_limit_may_be_a_text():
    """For this call alone, with the bits and the workspace of the same number."""
    a = np.random.default_rng(1).standard_normal((400, 400))
    free = kintsugi.matmul(a, a, accuracy="exact")
    unlimited = kintsugi.last_plan()["workspace_bytes"]
    if "avx512bw" not in open("/proc/cpuinfo").read():
        pytest.skip("exact sums, which take less time than residues on this CPU, have no smaller blocks")
    limit = unlimited // 2 >> 10
    limited = kintsugi.matmul(a, a, accuracy="exact", workspace_limit=f"{limit}K")
    assert kintsugi.last_plan()["workspace_bytes"] <= limit << 10 and (limited == free).all()
    by_number = kintsugi.explain(a, a, accuracy="exact", workspace_limit=limit << 10)["workspace_bytes"]
    for plan in (kintsugi.last_plan(), kintsugi.explain(a, a, accuracy="exact", workspace_limit=f"{limit}k"),
                 kintsugi.plan(a, a, accuracy="exact", workspace_limit=np.str_(f"{limit}K"))):
        assert plan["workspace_bytes"] == by_number < unlimited
    kintsugi.matmul(a, a, accuracy="exact")
    assert kintsugi.last_plan()["workspace_bytes"] == unlimited
    kept = pickle.loads(pickle.dumps(kintsugi.plan(a, a, accuracy="exact", workspace_limit=f"{limit}K")))
    assert (kept(a, a) == free).all() and kept["workspace_bytes"] == by_number


@pytest.mark.parametrize("limit", ["1T", "", "-1", "1.5G", "G"])
def test_other_texts_are_refused(limit):
    for call in (kintsugi.matmul, kintsugi.explain, kintsugi.plan):
        with pytest.raises(kintsugi.KintsugiError, match=f'workspace_limit = "{limit}" is not accepted; accepted: .* K, M or G'):
            call(np.eye(2), np.eye(2), workspace_limit=limit)
    kintsugi.matmul(np.eye(2), np.eye(2))
    with pytest.raises(TypeError, match="neither an integer nor a text"):
        kintsugi.matmul(np.eye(2), np.eye(2), workspace_limit=1.5)


@pytest.mark.parametrize("option, value, nearest", [("engine", "gpu", "cuda"), ("engine", "cpuu", "cpu"),
                                                    ("scheme", "fp16x4", "fp16x3"), ("accuracy", "float64", "fp64"),
                                                    ("accuracy", "exakt", "exact"), ("policy", "emulated", "emulate"),
                                                    ("policy", "force", "emulate")])
def test_unknown_names_give_the_nearest(option, value, nearest):
    with pytest.raises(kintsugi.KintsugiError, match=f'"{value}".*; did you mean {nearest}\\?'):
        kintsugi.matmul(np.eye(2), np.eye(2), **{option: value})


# ------------------------------------------------------------ copies of prepared operands

def test_a_prepared_operand_is_its_own_copy():
    prepared = kintsugi.prepare(np.eye(3), side="b")
    assert copy.copy(prepared) is prepared and copy.deepcopy({"layers": [prepared]})["layers"][0] is prepared


def test_a_prepared_operand_cannot_be_sent():
    prepared = kintsugi.prepare(np.eye(3), side="b")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match=r"operand b, shape \(3, 3\), float64> cannot be pickled.*kintsugi\.prepare\(\)"):
            pickle.dumps([prepared], protocol)
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(TypeError, match="cannot be pickled"):
        pool.apply(repr, (prepared,))


def test_an_array_on_a_device_cannot_be_copied():
    array = kintsugi.DeviceArray(0, (0, 2), None, np.dtype(np.float32), 0)
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="can neither be pickled nor copied"):
            way(array)
