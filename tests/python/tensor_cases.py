"""Products of tensors, with a torch and other libraries whose device is the host: all of the package's way but the
device itself. Run by test_package.py with the Python that the package is installed in."""

import ctypes
import gc
import sys
import types

import kintsugi
import numpy as np
import pytest
import torch_imitation
from c_structs import DlDevice, DlManaged, DlManagedVersioned, DlTensor, DlType, dl_capsule, on_host
from kintsugi import _dlpack, _tensors
from torch_imitation import Tensor, alive, allocated, as_numpy, waits


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    return torch_imitation.install(monkeypatch)


class Foreign:
    """An array of a library that the package does not know, with the first DLPack alone. numpy makes its capsules."""

    def __init__(self, array, device=0):
        self.array, self.device, self.streams = array, device, []

    def __dlpack_device__(self):
        return _dlpack.CUDA, self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__()


class OfLibrary(Foreign):
    """Tensor of a library that also takes DLPack."""

    def __array_namespace__(self):
        return types.SimpleNamespace(from_dlpack=lambda x: OfLibrary(as_numpy(host_capsule(x))))


def host_capsule(array):
    """The capsule of a DeviceArray whose memory is the host's: it says so."""
    return on_host(array.__dlpack__(stream=1))


def values(*shape, dtype=np.float64, seed=1):
    generator = np.random.default_rng(seed)
    real = generator.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        real = real + 1j * generator.standard_normal(shape)
    return real.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 3)), ((3, 4), (4,)), ((4,), (4,)), ((0, 3), (3, 2)),
                                    ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2)), ((2, 5, 3, 4), (5, 4, 2))])
def test_tensors_give_the_arrays_product(shapes, dtype):
    a, b = values(*shapes[0], dtype=dtype), values(*shapes[1], dtype=dtype, seed=2)
    result = kintsugi.matmul(Tensor(a), Tensor(b), policy="native", threads=1)
    assert isinstance(result, Tensor)
    expected = kintsugi.matmul(a, b, policy="native", threads=1)
    assert result.array.dtype == expected.dtype and result.array.shape == expected.shape
    assert np.allclose(result.array, expected, rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("view", [lambda x: x.T.copy().T, lambda x: x[::2, ::2], lambda x: x[::-1], lambda x: x[:, 1:3]])
def test_any_strides(view):
    a, b = view(values(6, 6)), values(6, 4, seed=2)
    b = b[: a.shape[1]]
    result = kintsugi.matmul(Tensor(a), Tensor(b), accuracy="exact")
    assert (result.array == kintsugi.matmul(a, b, accuracy="exact")).all()


def test_what_blas_can_walk_is_not_copied():
    a, b = values(8, 6), values(8, 5, seed=2)
    kintsugi.matmul(Tensor(a.T), Tensor(b), policy="native")
    assert allocated == [6 * 5 * 8], "the result"


def test_the_workspace_comes_from_torch_by_the_callback_and_goes_back():
    a = values(16, 16, dtype=np.float32)
    result = kintsugi.matmul(Tensor(a), Tensor(a), scheme="fp16x3", engine="cpu")
    assert allocated == [a.nbytes, kintsugi.last_plan()["workspace_bytes"]] and allocated[1] > 0
    assert [tensor.array.nbytes for tensor in alive] == [result.array.nbytes]


def test_prepared_operands_are_torchs_memory_as_long_as_they_live(monkeypatch):
    a, b = values(64, 64, dtype=np.float32), values(64, 8, dtype=np.float32, seed=2)
    prepared = kintsugi.prepare(Tensor(a), side="a", scheme="fp16x3", engine="cpu")
    prepared.on_device = False  # as little as the tensors here
    assert sum(allocated) >= 2 * a.nbytes and len(alive) == len(allocated), "a copy and its slices"
    result = kintsugi.matmul(prepared, Tensor(b), scheme="fp16x3", engine="cpu")
    assert (result.array == kintsugi.matmul(a, b, scheme="fp16x3", engine="cpu")).all()
    del prepared, result
    assert len(alive) == 0


def test_what_torch_has_no_room_for_is_done_in_smaller_blocks(monkeypatch):
    a = values(512, 512, dtype=np.float32)
    expected = kintsugi.matmul(a, a, scheme="fp16x3", engine="cpu")
    whole = kintsugi.last_plan()["workspace_bytes"]
    monkeypatch.setattr(torch_imitation, "room", whole // 2)
    result = kintsugi.matmul(Tensor(a), Tensor(a), scheme="fp16x3", engine="cpu")
    assert (result.array == expected).all() and max(allocated) <= max(whole // 2, a.nbytes)


def test_without_any_room_torchs_error_is_the_cause(monkeypatch):
    a = Tensor(values(64, 64, dtype=np.float32))
    monkeypatch.setattr(torch_imitation, "room", 0)
    with pytest.raises(kintsugi.KintsugiError, match="allocator has no") as caught:
        kintsugi.matmul(a, a, scheme="fp16x3", engine="cpu")
    assert caught.value.status == "out_of_memory"
    assert isinstance(caught.value.__cause__, MemoryError) and "torch has no" in str(caught.value.__cause__)


def test_types_meet_as_numpys_do():
    a, b = values(3, 4, dtype=np.float32), values(4, 2)
    result = kintsugi.matmul(Tensor(a), Tensor(b), accuracy="exact")
    assert result.array.dtype == np.float64
    assert (result.array == kintsugi.matmul(a.astype(np.float64), b, accuracy="exact")).all()


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[:, ::2], lambda x: x.T])
def test_out_takes_the_result_where_it_lies(view):
    a, b = values(4, 3), values(3, 4, seed=2)
    target = view(np.ones((8, 8)))[:4, :4]
    out = Tensor(target)
    assert kintsugi.matmul(Tensor(a), Tensor(b), alpha=2, beta=3, out=out, accuracy="exact") is out
    assert np.allclose(target, 2 * a @ b + 3)


def test_out_may_be_an_operand():
    a = values(4, 4)
    expected = kintsugi.matmul(a, a, accuracy="exact")
    tensor = Tensor(a)
    kintsugi.matmul(tensor, tensor, out=tensor, accuracy="exact")
    assert (a == expected).all()


def test_prepared_tensors(monkeypatch):
    a, b = values(5, 7, dtype=np.float32), values(7, 3, dtype=np.float32, seed=2)
    prepared = kintsugi.prepare(a, side="a", scheme="fp16x3", engine="cpu")
    result = kintsugi.matmul(prepared, Tensor(b), scheme="fp16x3", engine="cpu")
    assert (result.array == kintsugi.matmul(a, b, scheme="fp16x3", engine="cpu")).all()
    prepared.on_device = True
    with pytest.raises(ValueError, match="a was prepared on a device and the other operand is on the CPU"):
        kintsugi.matmul(prepared, b)


def test_two_prepared_operands_on_a_device():
    """Neither says which library's tensor the result is to be."""
    a, b = values(5, 7, dtype=np.float32), values(7, 3, dtype=np.float32, seed=2)
    options = {"scheme": "fp16x3", "engine": "cpu"}
    left, right = kintsugi.prepare(a, side="a", **options), kintsugi.prepare(b, side="b", **options)
    left.on_device = True
    with pytest.raises(ValueError, match="a was prepared of a tensor on a device and b of an array on the CPU"):
        kintsugi.matmul(left, right, **options)
    right.on_device = True
    with pytest.raises(ValueError, match="a and b are both prepared and on a device: give out"):
        kintsugi.matmul(left, right, **options)
    left.on_device = right.on_device = False  # the imitation's device is the host
    result = Tensor(np.zeros((5, 3), np.float32))
    kintsugi.matmul(left, right, out=result, **options)
    assert (result.array == kintsugi.matmul(a, b, **options)).all()


def test_empty_tensors_have_a_geometry_without_memory():
    array = _tensors.geometry(types.SimpleNamespace(__cuda_array_interface__={
        "shape": (0, 3), "typestr": "<f4", "data": (0, False), "strides": None, "version": 3}))
    assert array.shape == (0, 3) and array.dtype == np.float32


def test_what_does_not_go_together_is_refused():
    tensor, array = Tensor(values(2, 2)), values(2, 2)
    with pytest.raises(TypeError, match=r"a is a torch tensor on cuda:0 and b is not: a ndarray"):
        kintsugi.matmul(tensor, array)
    elsewhere = Tensor(array, device="cuda:1")
    with pytest.raises(TypeError, match=r"b is not: a Tensor on cuda:1"):
        kintsugi.matmul(tensor, elsewhere)
    with pytest.raises(TypeError, match=r"a\.detach\(\)"):
        kintsugi.matmul(Tensor(array, requires_grad=True), tensor)
    with pytest.raises(TypeError, match="int64"):
        kintsugi.matmul(Tensor(np.ones((2, 2), np.int64)), Tensor(np.ones((2, 2), np.int64)))
    with pytest.raises(ValueError, match=r"this product needs a tensor, float64 \(2, 2\)"):
        kintsugi.matmul(tensor, tensor, out=Tensor(values(3, 2)))
    with pytest.raises(ValueError, match="no out is given"):
        kintsugi.matmul(tensor, tensor, beta=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 3)), ((0, 3), (3, 2)), ((5, 3, 4), (4, 2)),
                                    ((2, 0), (0, 3))])
def test_any_librarys_arrays_by_dlpack(shapes, dtype):
    a, b = values(*shapes[0], dtype=dtype), values(*shapes[1], dtype=dtype, seed=2)
    operands = Foreign(a), Foreign(b)
    result = kintsugi.matmul(*operands, accuracy="exact")
    assert isinstance(result, kintsugi.DeviceArray)
    found = as_numpy(host_capsule(result)) if 0 not in result.shape else np.empty(result.shape, result.dtype)
    expected = kintsugi.matmul(a, b, accuracy="exact")
    assert found.dtype == dtype and found.shape == expected.shape and (found == expected).all()
    assert [x.streams for x in operands] == [[_dlpack.DEFAULT_STREAM]] * 2, "the default stream finds them complete"


def test_memory_of_dlpack_goes_back():
    a = values(8, 8)
    references = sys.getrefcount(a)
    result = kintsugi.matmul(Foreign(a), Foreign(a), policy="native")
    gc.collect()
    assert sys.getrefcount(a) == references, "operands are given back"
    memory = _dlpack.driver.memory
    assert len(memory) == 1
    found = as_numpy(host_capsule(result))
    unused = result.__dlpack__()
    del result
    assert len(memory) == 1 and np.allclose(found, a @ a), "it is still used"
    del found
    assert len(memory) == 1, "a capsule that nobody has taken has it"
    del unused
    assert len(memory) == 0


def test_a_library_that_takes_dlpack_gets_its_own_arrays():
    a, b = values(3, 4), values(4, 2, seed=2)
    result = kintsugi.matmul(OfLibrary(a), OfLibrary(b), accuracy="exact")
    assert isinstance(result, OfLibrary) and (result.array == kintsugi.matmul(a, b, accuracy="exact")).all()


def test_out_by_dlpack():
    a, out = values(4, 4), Foreign(np.ones((4, 4)))
    assert kintsugi.matmul(Foreign(a.T), Foreign(a), alpha=2, beta=3, out=out, accuracy="exact") is out
    assert np.allclose(out.array, 2 * a.T @ a + 3)


def test_operands_prepared_by_dlpack(monkeypatch):
    a, b = values(5, 7, dtype=np.float32), values(7, 3, dtype=np.float32, seed=2)
    prepared = kintsugi.prepare(Foreign(a), side="a", scheme="fp16x3", engine="cpu")
    prepared.on_device = False  # as little as the arrays here
    result = kintsugi.matmul(prepared, Foreign(b), scheme="fp16x3", engine="cpu")
    expected = kintsugi.matmul(a, b, scheme="fp16x3", engine="cpu")
    assert (as_numpy(host_capsule(result)) == expected).all()


def test_what_dlpack_lends_is_given_back_when_it_was_read():
    """Arrays that their library makes for the call alone, and overwrites when they come back."""

    class Lent(Foreign):
        def __dlpack__(self, stream=None):
            return torch_imitation.passing(self.array).__dlpack__()

    a, b = values(64, 64), values(64, 64, seed=2)
    expected = kintsugi.matmul(a, b, accuracy="exact")
    prepared = kintsugi.prepare(Lent(a), side="a", accuracy="exact")
    prepared.on_device = False  # as little as the arrays here
    for left in (Lent(a), prepared):
        result = kintsugi.matmul(left, Lent(b), accuracy="exact")
        assert (as_numpy(host_capsule(result)) == expected).all()


@pytest.mark.parametrize("order", [1, -1])
def test_guests_of_torch_have_their_arrays_back_after_the_call(order):
    a, b = values(3, 3), values(3, 3, seed=2)
    foreign = Foreign(b)
    result = kintsugi.matmul(*(Tensor(a), foreign)[::order], accuracy="exact")
    assert isinstance(result, Tensor) and (result.array == kintsugi.matmul(*(a, b)[::order], accuracy="exact")).all()
    assert foreign.streams == [0x1234] and waits == [0x1234]
    kintsugi.matmul(Tensor(a), Tensor(b), accuracy="exact")
    assert waits == [0x1234], "torch's own are in the stream alone"


def test_what_dlpack_would_have_to_copy_is_refused():
    a = values(4, 4)
    with pytest.raises(ValueError, match=r"float64 \(2, 2\) with strides of \(64, 16\) bytes .* without a copy"):
        kintsugi.matmul(Foreign(a[::2, ::2]), Foreign(a[:2]))
    with pytest.raises(ValueError, match="without a copy"):
        kintsugi.matmul(Foreign(a), Foreign(a.astype(np.float32)))
    overlapping = Foreign(a)
    with pytest.raises(ValueError, match="an out of its own"):
        kintsugi.matmul(overlapping, Foreign(values(4, 4)), out=overlapping)
    with pytest.raises(TypeError, match=r"a is a DLPack tensor on cuda:0 and b is not: a Foreign on 1"):
        kintsugi.matmul(Foreign(a), Foreign(a, device=1))
    with pytest.raises(TypeError, match=r"b is not: a ndarray"):
        kintsugi.matmul(Foreign(a), a)


def test_capsules_that_are_none_and_types_that_numpy_lacks():
    broken = Foreign(values(2, 2))
    broken.__class__ = type("Broken", (Foreign,), {"__dlpack__": lambda self, stream=None: None})
    with pytest.raises(BufferError, match="a Broken gives no capsule"):
        kintsugi.matmul(broken, broken)
    managed = DlManaged(tensor=DlTensor(dtype=DlType(4, 16, 1)))
    broken.__class__ = type("Brain", (Foreign,), {"__dlpack__": lambda self, stream=None: dl_capsule(managed)})
    with pytest.raises(TypeError, match="type 4 of 16 bits in 1 lanes"):
        kintsugi.matmul(broken, broken)


def test_the_newer_capsules_say_what_is_read_only():
    a = values(3, 3)
    managed = DlManagedVersioned(major=1, minor=0, flags=1)
    shape = (ctypes.c_int64 * 2)(3, 3)
    managed.tensor = DlTensor(a.ctypes.data, DlDevice(_dlpack.CUDA, 0), 2, DlType(2, 64, 1),
                              ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), None, 0)

    class Newer(Foreign):
        def __dlpack__(self, stream=None, max_version=None):
            assert max_version == (1, 0)
            return dl_capsule(managed)

    array = _dlpack.import_array(Newer(a), _dlpack.DEFAULT_STREAM)
    assert array.shape == (3, 3) and array.dtype == np.float64
    with pytest.raises(ValueError, match="out is read-only"):
        kintsugi.matmul(Foreign(a), Foreign(a), out=Newer(a))
    managed.major = 2
    with pytest.raises(BufferError, match="DLPack 2.0 is unknown"):
        _dlpack.import_array(Newer(a), _dlpack.DEFAULT_STREAM)
