"""Products of tensors on a device: an imitation of torch whose device is the host, and a library that does on the host what
it is asked to do on the device. Run by test_package.py with the Python that the package is installed in.
"""

import ctypes
import sys
import types

import kintsugi
import numpy as np
import pytest
import torch_imitation
from c_structs import (ALLOCATE, DEALLOCATE, DEVICE, HOST, QUEUE_CUDA, Operands, Options, Problem, Queue)
from c_structs import library as real
from kintsugi import _core, _tensors
from torch_imitation import Tensor, alive, allocated

STREAM = 0x1234
WORKSPACE = 1000


class DescribedTensor(Tensor):
    """A tensor with all attributes that _core reads."""

    is_cpu = property(lambda self: not self.is_cuda)
    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype.type)

    def get_device(self):
        return int(self.device.partition(":")[2]) if self.is_cuda else -1

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def data_ptr(self):
        return self.array.ctypes.data

    def new_empty(self, shape):
        return empty(shape, self.array.dtype, self.device)


def empty(shape, dtype, device):
    device = f"cuda:{device}" if isinstance(device, int) else device
    memory = torch_imitation.empty(shape, dtype, device)
    tensor = DescribedTensor(memory.array, device=device)
    alive.add(tensor)
    return tensor


GEMM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Problem), ctypes.POINTER(Options),
                        ctypes.POINTER(Operands))
PLAN_CREATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Problem), ctypes.POINTER(Options), ctypes.c_void_p)
PLAN_EXECUTE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Operands))


def of_host(problem):
    """The problem as one of the host; it must be one of a device."""
    assert problem.contents.memory == DEVICE
    found = Problem.from_buffer_copy(problem.contents)
    found.memory = HOST
    return found


class Library:
    """Takes the workspace from the allocator, multiplies on the host, and notes what it was given."""

    def __init__(self):
        self.problems, self.queues, self.users, self.addresses, self.workspaces = [], [], [], [], []
        self.functions = GEMM(self._gemm), PLAN_CREATE(self._plan_create), PLAN_EXECUTE(self._plan_execute)

    def _gemm(self, handle, problem, options, operands):
        given, memory = problem.contents, options.contents
        self.problems.append((given.memory, given.m, given.n, given.k, given.batch_count))
        self.queues.append((operands.contents.queue.kind, operands.contents.queue.stream))
        self.users.append(memory.allocator_user)
        address = ALLOCATE(memory.allocate)(memory.allocator_user, WORKSPACE, 256)
        if address is None:
            return real.kintsugi_set(None, b"allocator", b"")  # a failure with a message
        self.addresses.append(address)
        ctypes.memset(address, 0xFF, WORKSPACE)
        host_problem, host_operands = of_host(problem), Operands.from_buffer_copy(operands.contents)
        host_operands.queue = Queue()
        status = real.kintsugi_gemm(ctypes.c_void_p(handle), ctypes.byref(host_problem), None, ctypes.byref(host_operands))
        DEALLOCATE(memory.deallocate)(memory.allocator_user, address, WORKSPACE)
        return status

    def _plan_create(self, handle, problem, options, plan):
        host_options = Options.from_buffer_copy(options.contents)
        host_options.queue = Queue()
        return real.kintsugi_plan_create(ctypes.c_void_p(handle), ctypes.byref(of_host(problem)), ctypes.byref(host_options),
                                         ctypes.c_void_p(plan))

    def _plan_execute(self, handle, plan, operands):
        given = operands.contents
        self.queues.append((given.queue.kind, given.queue.stream))
        self.workspaces.append((given.workspace, given.workspace_size))
        host_operands = Operands.from_buffer_copy(given)
        host_operands.queue = Queue()
        return real.kintsugi_plan_execute(ctypes.c_void_p(handle), ctypes.c_void_p(plan), ctypes.byref(host_operands))


@pytest.fixture
def torch(monkeypatch):
    stream = _tensors.TorchTensors.stream
    module = torch_imitation.install(monkeypatch)
    monkeypatch.setattr(_tensors, "MEMORY", DEVICE)
    monkeypatch.setattr(_tensors.TorchTensors, "stream", stream)
    module.Tensor, module.empty = DescribedTensor, empty
    module.cuda.current_device = lambda: module.current
    module.current = 0
    yield module
    module.Tensor = Tensor


@pytest.fixture
def library(torch):
    library = Library()
    _core.replace(*(ctypes.cast(function, ctypes.c_void_p).value for function in library.functions))
    yield library
    _core.replace(0, 0, 0)
    kintsugi.release_caches()


def values(*shape, dtype=np.float64, seed=1):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 3)), ((3, 4), (4,)), ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2))])
def test_a_product_is_put_into_torchs_stream(library, shapes, dtype):
    a, b = values(*shapes[0], dtype=dtype), values(*shapes[1], dtype=dtype, seed=2)
    result = kintsugi.matmul(DescribedTensor(a), DescribedTensor(b))
    assert type(result) is DescribedTensor and (result.array == a @ b).all() and result.array.dtype == dtype
    ((memory, *_),) = library.problems
    assert memory == DEVICE and library.queues == [(QUEUE_CUDA, STREAM)]


def test_workspaces_are_torchs_and_go_back(library):
    a = values(16, 16)
    result = kintsugi.matmul(DescribedTensor(a), DescribedTensor(a))
    assert allocated == [a.nbytes, WORKSPACE] and library.addresses[0] % 256 == 0
    assert [tensor.array.nbytes for tensor in alive] == [a.nbytes]
    assert (result.array == a @ a).all()


class Stream:
    """Functions of torch's C++ part for device 0, with the stream and whether it is captured."""

    def __init__(self, torch, address=0, is_captured=False):
        self.address, self.is_captured = address, is_captured
        torch._C = types.SimpleNamespace(_cuda_getDevice=lambda: 0, _cuda_getCurrentRawStream=lambda device: self.address,
                                         _cuda_isCurrentStreamCapturing=lambda: self.is_captured)


@pytest.fixture
def stream(library, torch, monkeypatch):
    stream = Stream(torch)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(**vars(torch)))  # so that it is loaded anew
    return stream


def workspaces(library):
    """Sizes of the workspaces that torch allocated for a product of 4 x 4."""
    before = len(allocated)
    a = DescribedTensor(values(4, 4))
    assert (kintsugi.matmul(a, a).array == a.array @ a.array).all() and library.queues[-1][1] in (None, STREAM)
    return allocated[before + 1 :]


def test_calls_in_the_null_stream_share_a_workspace(library, stream, monkeypatch):
    assert [workspaces(library) for _ in range(3)] == [[WORKSPACE], [], []] and len(set(library.addresses)) == 1
    monkeypatch.setattr(sys.modules[__name__], "WORKSPACE", WORKSPACE + 1)  # more than what is kept
    assert [workspaces(library) for _ in range(2)] == [[WORKSPACE], []]
    monkeypatch.setattr(sys.modules[__name__], "WORKSPACE", WORKSPACE - 500)
    assert workspaces(library) == []
    monkeypatch.setattr(sys.modules[__name__], "WORKSPACE", WORKSPACE + 500)  # a call that needs less loses nothing
    assert workspaces(library) == []
    monkeypatch.setattr(sys.modules[__name__], "WORKSPACE", (32 << 20) + (1 << 17))  # cuBLAS's, and a little more
    assert [workspaces(library) for _ in range(2)] == [[WORKSPACE], []]
    monkeypatch.setattr(sys.modules[__name__], "WORKSPACE", (64 << 20) + 1)  # too large to be kept
    assert [workspaces(library) for _ in range(2)] == [[WORKSPACE], [WORKSPACE]]


@pytest.mark.parametrize("other", [{"address": STREAM}, {"is_captured": True}])
def test_other_streams_and_captures_have_workspaces_of_their_own(library, stream, other):
    assert workspaces(library) == [WORKSPACE]
    kept = library.addresses[-1]
    for name, value in other.items():
        setattr(stream, name, value)
    assert workspaces(library) == [WORKSPACE] and library.addresses[-1] != kept
    assert workspaces(library) == [WORKSPACE] and library.addresses[-1] != kept
    stream.address, stream.is_captured = 0, False
    assert workspaces(library) == [] and library.addresses[-1] == kept


def test_release_caches_gives_workspaces_back(library, stream):
    assert workspaces(library) == [WORKSPACE] and WORKSPACE in [tensor.array.nbytes for tensor in alive]
    kintsugi.release_caches()
    assert WORKSPACE not in [tensor.array.nbytes for tensor in alive] and workspaces(library) == [WORKSPACE]


def plan_of(a, b):
    plan = kintsugi.plan(DescribedTensor(a), DescribedTensor(b), scheme="fp16x3", engine="cpu")
    assert plan["workspace_bytes"] > 0
    allocated.clear()
    return plan


def test_a_plan_reuses_its_workspace(library, stream):
    a, b = values(64, 48, dtype=np.float32), values(48, 32, dtype=np.float32)
    plan = plan_of(a, b)
    for _ in range(3):
        assert (plan(DescribedTensor(a), DescribedTensor(b)).array == a @ b).all()
    assert allocated.count(plan["workspace_bytes"]) == 1 and len(set(library.workspaces)) == 1


def test_the_options_of_a_repeated_call_are_the_same(library):
    for _ in range(3):
        kintsugi.matmul(DescribedTensor(values(4, 4)), DescribedTensor(values(4, 4)))
    assert len(set(library.users)) == 1


def test_memory_that_is_not_aligned_is_taken_larger(library, torch, monkeypatch):
    def shifted(shape, dtype, device):
        whole = empty((shape + 8,), dtype, device) if isinstance(shape, int) else empty(shape, dtype, device)
        return DescribedTensor(whole.array[8:], device=whole.device) if isinstance(shape, int) else whole

    torch.empty = shifted
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(**vars(torch)))
    a = values(4, 4)
    assert (kintsugi.matmul(DescribedTensor(a), DescribedTensor(a)).array == a @ a).all()
    assert library.addresses[0] % 256 == 0 and allocated[1:] == [WORKSPACE + 8, WORKSPACE + 256 + 8]


def test_torchs_error_is_the_cause_where_there_is_no_memory(library, monkeypatch):
    monkeypatch.setattr(torch_imitation, "room", WORKSPACE - 1)
    with pytest.raises(kintsugi.KintsugiError) as caught:
        kintsugi.matmul(DescribedTensor(values(4, 4)), DescribedTensor(values(4, 4)))
    assert isinstance(caught.value.__cause__, MemoryError) and "torch has no" in str(caught.value.__cause__)
    monkeypatch.setattr(torch_imitation, "room", None)
    kintsugi.matmul(DescribedTensor(values(4, 4)), DescribedTensor(values(4, 4)))


@pytest.mark.parametrize("view", [lambda x: x[:4, :4], lambda x: x.T[:4, :4], lambda x: x[::2, :4]])
def test_out_takes_the_result_where_it_lies(library, view):
    a, target = values(4, 4), view(np.ones((8, 8)))
    out = DescribedTensor(target)
    assert kintsugi.matmul(DescribedTensor(a), DescribedTensor(a.T), alpha=2, beta=3, out=out) is out
    assert (target == 2 * a @ a.T + 3).all() and out._version == 1 and len(library.problems) == 1


def test_a_plan_has_its_workspace_from_torch(library, monkeypatch):
    a, b = values(64, 48, dtype=np.float32), values(48, 32, dtype=np.float32)
    plan = plan_of(a, b)
    size = plan["workspace_bytes"]
    result = plan(DescribedTensor(a), DescribedTensor(b))
    assert type(result) is DescribedTensor and (result.array == a @ b).all()
    ((address, given),) = library.workspaces
    assert given == size and address % 256 == 0 and library.queues == [(QUEUE_CUDA, STREAM)]
    assert allocated == [result.array.nbytes, size] and [x.array.nbytes for x in alive] == [result.array.nbytes]
    out = DescribedTensor(np.empty((64, 32), np.float32))
    assert plan(DescribedTensor(a), DescribedTensor(b), out=out) is out and out._version == 1 and (out.array == a @ b).all()
    monkeypatch.setattr(torch_imitation, "room", size - 1)  # the plan's allocator is asked then, and has no more
    with pytest.raises(kintsugi.KintsugiError, match="allocator has no") as caught:
        plan(DescribedTensor(a), DescribedTensor(b))
    assert library.workspaces[-1] == (None, 0) and isinstance(caught.value.__cause__, MemoryError)
    with pytest.raises(ValueError, match="m is 63 and the plan has 64"):
        plan(DescribedTensor(a[1:]), DescribedTensor(b))
    with pytest.raises(ValueError, match="memory is on the CPU and the plan has on a device"):
        plan(a, b)


def test_tensors_that_are_copied_first_run_in_torchs_stream(library):
    """Types that differ: the copy, the workspace and the result are torch's."""
    a, b = values(64, 48), values(48, 32, dtype=np.float32)
    result = kintsugi.matmul(DescribedTensor(a), DescribedTensor(b), policy="emulate", engine="cpu")
    assert type(result) is DescribedTensor and (result.array == a @ b).all() and library.queues == [(QUEUE_CUDA, STREAM)]
    assert library.problems == [] and kintsugi.last_plan()["workspace_bytes"] in allocated


def left_to_python(library, a, b, **options):
    """Returns True if _core left the call to Python."""
    result = _core.matmul(a, b, options.get("alpha", 1), options.get("beta", 0), options.get("out"), *[None] * 6)
    return result is NotImplemented and library.problems == []


def test_what_python_code_has_to_look_at_is_left_to_it(library, torch):
    plain = DescribedTensor(values(4, 4))
    conjugated = DescribedTensor(values(4, 4, dtype=np.complex64))
    elsewhere = DescribedTensor(values(4, 4), device="cuda:1")
    assert left_to_python(library, conjugated.conj(), conjugated)
    assert left_to_python(library, plain, torch_imitation.neg_view(plain))
    assert left_to_python(library, DescribedTensor(values(4, 4), requires_grad=True), plain)
    assert left_to_python(library, plain, elsewhere)
    assert left_to_python(library, elsewhere, elsewhere), "cuda:0 is current"
    assert left_to_python(library, plain, DescribedTensor(values(4, 4), device="cpu"))
    assert left_to_python(library, plain, values(4, 4))
    assert left_to_python(library, plain, plain, out=DescribedTensor(values(4, 4), device="cpu"))
    assert left_to_python(library, plain, plain, out=plain), "it is an operand"
    assert left_to_python(library, plain, DescribedTensor(values(4, 4, dtype=np.int64)))
    assert left_to_python(library, plain, DescribedTensor(values(4, 4), device="xpu:0"))
    assert plain._version == 0


def test_tensors_on_the_cpu_are_products_of_the_cpu(torch):
    a = values(4, 4)
    kintsugi.matmul(a, a)
    result = _core.matmul(DescribedTensor(a, device="cpu"), DescribedTensor(a, device="cpu"), 1, 0, None, *[None] * 6)
    assert type(result) is DescribedTensor and result.device == "cpu" and (result.array == a @ a).all()
    assert kintsugi.last_plan()["problem"]["memory"] == "host"


def test_another_module_torch_is_another_torch(torch, monkeypatch):
    plain = DescribedTensor(values(4, 4), device="cpu")
    assert kintsugi.matmul(plain, plain).array.shape == (4, 4)
    torch_imitation.install(monkeypatch)  # whose tensors are another class
    assert _core.matmul(plain, plain, 1, 0, None, *[None] * 6) is NotImplemented


def test_an_interrupt_is_not_lost(torch, monkeypatch):
    class Interrupted(DescribedTensor):
        def stride(self):
            raise KeyboardInterrupt

    torch.Tensor = Interrupted
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(**vars(torch)))
    tensor = Interrupted(values(4, 4), device="cpu")
    with pytest.raises(KeyboardInterrupt):
        _core.matmul(tensor, tensor, 1, 0, None, *[None] * 6)
