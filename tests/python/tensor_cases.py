"""Products of tensors, with a torch whose device is the host: all of the package's way but the device itself. Run by
test_package.py with the Python that the package is installed in."""

import contextlib
import sys
import types

import kintsugi
import numpy as np
import pytest
from kintsugi import _abi, _gemm, _tensors


class Tensor:
    """What the package uses of a torch tensor, over a numpy array."""

    is_cuda = True
    device = "cuda:0"

    def __init__(self, array, requires_grad=False, conjugated=False):
        self.array, self.requires_grad, self.conjugated = array, requires_grad, conjugated

    @property
    def __cuda_array_interface__(self):
        assert not self.requires_grad and not self.conjugated, "torch has none then"
        return {**self.array.__array_interface__, "version": 3, "stream": 1}

    def detach(self):
        return Tensor(self.array, conjugated=self.conjugated)

    def resolve_conj(self):
        return Tensor(self.array.conj().copy()) if self.conjugated else self

    def resolve_neg(self):
        return self

    def reshape(self, shape):
        return Tensor(self.array.reshape(shape))

    def expand(self, shape):
        return Tensor(np.broadcast_to(self.array, shape))

    def copy_(self, source):
        self.array[...] = source.array


def empty(shape, dtype, device):
    """Aligned as an allocator of device memory aligns."""
    count = int(np.prod(shape, dtype=int))
    memory = np.empty(count * np.dtype(dtype).itemsize + 256, np.uint8)
    first = -memory.ctypes.data % 256
    used = memory[first : first + count * np.dtype(dtype).itemsize]
    allocated.append(used.nbytes)
    return Tensor(used.view(dtype).reshape(shape))


allocated = []


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=0x1234),
                                 device=lambda device: contextlib.nullcontext())
    module = types.SimpleNamespace(empty=empty, cuda=cuda, is_grad_enabled=lambda: True, float32=np.float32,
                                   float64=np.float64, complex64=np.complex64, complex128=np.complex128, uint8=np.uint8)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(_gemm._DeviceCall, "memory", _abi.HOST)
    monkeypatch.setattr(_gemm, "_on_stream", lambda tensors: _abi.Queue())
    allocated.clear()
    return module


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


def test_the_workspace_is_a_tensor():
    a = values(16, 16, dtype=np.float32)
    kintsugi.matmul(Tensor(a), Tensor(a), scheme="fp16x3", engine="cpu")
    assert allocated == [a.nbytes, kintsugi.last_plan()["workspace_bytes"]] and allocated[1] > 0


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


def test_conjugation_is_done_first():
    a, b = values(3, 4, dtype=np.complex128), values(4, 2, dtype=np.complex128)
    result = kintsugi.matmul(Tensor(a, conjugated=True), Tensor(b), accuracy="exact")
    assert (result.array == kintsugi.matmul(a.conj(), b, accuracy="exact")).all()


def test_prepared_tensors(monkeypatch):
    a, b = values(5, 7, dtype=np.float32), values(7, 3, dtype=np.float32, seed=2)
    prepared = kintsugi.prepare(a, side="a", scheme="fp16x3", engine="cpu")
    result = kintsugi.matmul(prepared, Tensor(b), scheme="fp16x3", engine="cpu")
    assert (result.array == kintsugi.matmul(a, b, scheme="fp16x3", engine="cpu")).all()
    prepared.on_device = True
    with pytest.raises(ValueError, match="do not meet in one product"):
        kintsugi.matmul(prepared, b)


def test_a_queue_is_the_current_stream(monkeypatch):
    monkeypatch.undo()
    tensors = types.SimpleNamespace(stream=lambda: 0x1234)
    queue = _gemm._on_stream(tensors)
    assert (queue.kind, queue.stream) == (_abi.QUEUE_CUDA, 0x1234) and _gemm._DeviceCall.memory == _abi.DEVICE


def test_empty_tensors_have_a_geometry_without_memory():
    array = _tensors.geometry(types.SimpleNamespace(__cuda_array_interface__={
        "shape": (0, 3), "typestr": "<f4", "data": (0, False), "strides": None, "version": 3}))
    assert array.shape == (0, 3) and array.dtype == np.float32


def test_what_does_not_go_together_is_refused():
    tensor, array = Tensor(values(2, 2)), values(2, 2)
    with pytest.raises(TypeError, match=r"a is a torch tensor on cuda:0 and b is not: a ndarray"):
        kintsugi.matmul(tensor, array)
    elsewhere = Tensor(array)
    elsewhere.device = "cuda:1"
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
