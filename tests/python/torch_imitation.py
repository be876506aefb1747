"""The part of torch that the package uses, over numpy arrays on the host: tensors that say that they are on the CPU,
and tensors that say that they are on a CUDA device, for machines without either."""

import contextlib
import ctypes
import sys
import types
import weakref

import numpy as np
from kintsugi import _core, _dlpack, _tensors

allocated = []  # sizes
alive = weakref.WeakSet()
room = None  # bytes of a workspace that torch would give; None: any
waits = []


class Device(str):
    @property
    def type(self):
        return self.partition(":")[0]


class Tensor:
    """A tensor: memory, and whether its elements are the conjugates or negatives of what that has."""

    def __init__(self, array, requires_grad=False, conjugated=False, negated=False, device="cuda:0", changes=None):
        self.array, self.requires_grad, self.conjugated, self.negated = array, requires_grad, conjugated, negated
        self.device = Device(device)
        self.is_cuda = self.device.type == "cuda"
        self._changes = [] if changes is None else changes  # of the memory, for all its views

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def _version(self):
        return len(self._changes)

    def like(self, array, conjugated=False, negated=False):
        return type(self)(array, False, conjugated, negated, self.device, self._changes)

    def is_conj(self):
        return self.conjugated

    def is_neg(self):
        return self.negated

    def elements(self):
        elements = self.array.conj() if self.conjugated else self.array
        return -elements if self.negated else elements

    @property
    def __cuda_array_interface__(self):
        assert not self.requires_grad and not self.conjugated, "torch has none then"
        return {**self.array.__array_interface__, "version": 3, "stream": 1}

    def numpy(self):
        assert not (self.requires_grad or self.conjugated or self.negated or self.is_cuda), "torch has none then"
        return self.array

    def __dlpack_device__(self):
        return (_dlpack.CUDA, int(self.device.partition(":")[2])) if self.is_cuda else (1, 0)

    def __dlpack__(self, **_):
        raise AssertionError("torch's own tensors are not converted")

    def detach(self):
        return self.like(self.array, self.conjugated, self.negated)

    def conj(self):
        return self.like(self.array, not self.conjugated, self.negated)

    @property
    def imag(self):
        return self.like(self.array.imag, negated=self.conjugated != self.negated)

    @property
    def mT(self):
        return self.like(self.array.swapaxes(-1, -2), self.conjugated, self.negated)

    def __getitem__(self, cut):
        return self.like(self.array[cut], self.conjugated, self.negated)

    def _made(self, array, **flags):
        """A new tensor. On a device an address does not keep it alive."""
        return type(self)(passing(array) if self.is_cuda else np.asarray(array), device=self.device, **flags)

    def resolve_conj(self):
        return self._made(self.array.conj(), negated=self.negated) if self.conjugated else self

    def resolve_neg(self):
        return self._made(-self.array, conjugated=self.conjugated) if self.negated else self

    def reshape(self, shape):
        return self.like(self.array.reshape(shape))

    def expand(self, shape):
        expanded = np.broadcast_to(self.array, shape)  # writable, as torch's is
        return self.like(np.lib.stride_tricks.as_strided(self.array, expanded.shape, expanded.strides))

    def copy_(self, source):
        elements = source.elements()
        elements = elements.conj() if self.conjugated else elements
        self.array[...] = -elements if self.negated else elements
        self._changes.append("copy_")

    def zero_(self):
        self.array[...] = 0
        self._changes.append("zero_")

    def cpu(self):
        return Tensor(self.array, conjugated=self.conjugated, negated=self.negated, device="cpu")


class Parameter(Tensor):
    """torch.nn.Parameter."""


class Passing(np.ndarray):
    """Memory whose library uses it for something else as soon as its tensor is gone."""


def passing(array):
    """A copy in such memory."""
    owner = np.array(array)
    memory = owner.view(Passing)
    weakref.finalize(memory, owner.fill, np.nan)
    return memory


def neg_view(tensor):
    return tensor.like(tensor.array, tensor.conjugated, not tensor.negated)


def empty(shape, dtype, device):
    """Aligned as an allocator of device memory aligns."""
    if room is not None and np.dtype(dtype) == np.uint8 and int(np.prod(shape)) > room:
        raise MemoryError(f"torch has no {shape} left")
    count = int(np.prod(shape, dtype=int))
    memory = np.empty(count * np.dtype(dtype).itemsize + 256, np.uint8)
    first = -memory.ctypes.data % 256
    used = memory[first : first + count * np.dtype(dtype).itemsize]
    allocated.append(used.nbytes)
    tensor = Tensor(used.view(dtype).reshape(shape), device=device)
    alive.add(tensor)
    return tensor


class OnHost:
    """numpy takes what says that it is on the host."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return self.capsule


def as_numpy(capsule):
    return np.from_dlpack(OnHost(capsule))


def from_dlpack(foreign):
    """As torch's: on its current stream."""
    return Tensor(as_numpy(foreign.__dlpack__(stream=0x1234)))


class Owner:
    """Owner of memory, whose end is watched."""


class HostDriver:
    """Memory of the host in place of _dlpack.Driver's."""

    def __init__(self):
        self.memory = {}

    @contextlib.contextmanager
    def device(self, number):
        assert number == 0
        yield

    def allocate(self, number, size):
        assert number == 0
        memory = (ctypes.c_char * size)()
        address, owner = ctypes.addressof(memory), Owner()
        self.memory[address] = memory
        weakref.finalize(owner, self.memory.pop, address)
        return address, owner


def install(monkeypatch):
    """The module torch, and a package for which device memory is the host's."""
    stream = types.SimpleNamespace(cuda_stream=0x1234, synchronize=lambda: waits.append(0x1234))
    cuda = types.SimpleNamespace(current_stream=lambda device: stream,
                                 device=lambda device: contextlib.nullcontext())
    module = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Parameter=Parameter), empty=empty, cuda=cuda,
                                   from_dlpack=from_dlpack, _neg_view=neg_view, is_grad_enabled=lambda: True, float32=np.float32, float64=np.float64,
                                   complex64=np.complex64, complex128=np.complex128, uint8=np.uint8)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(_tensors, "MEMORY", _core.HOST)
    monkeypatch.setattr(_tensors.TorchTensors, "stream", lambda tensors: None)
    monkeypatch.setattr(_dlpack, "driver", HostDriver())
    allocated.clear()
    waits.clear()
    return module
