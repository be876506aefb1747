"""Products of torch's and CuPy's tensors on a GPU, and of arrays by DLPack; for a machine that has one, with
the package installed or on PYTHONPATH. Lazy views of torch are multiplied in lazy_cases.py, there on a GPU
too:

    python3 -m pytest tests/python/gpu_cases.py tests/python/lazy_cases.py

VIEW_SEEDS=0:100000 runs more random products than the usual hundreds.
"""

import ctypes
import gc
import os
import threading

import kintsugi
import numpy as np
import pytest
from kintsugi import _dlpack
from libraries import Cupy, Torch
from random_views import check_random_product

FIRST, LAST = (int(part) for part in os.environ.get("VIEW_SEEDS", "0:300").split(":"))


@pytest.fixture(params=[Torch, Cupy], ids=["torch", "cupy"])
def xp(request):
    return request.param()


def values(*shape, dtype=np.float32, seed=1):
    generator = np.random.default_rng(seed)
    real = generator.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        real = real + 1j * generator.standard_normal(shape)
    return real.astype(dtype)


def tolerance(a, b):
    """(k + 8) u |a||b|, a complex part two products a term; the reference is in double or long double."""
    terms = a.shape[-1] * (2 if np.iscomplexobj(a) else 1)
    return (terms + 8) * np.finfo(a.dtype).eps / 2 * (np.abs(a) @ np.abs(b)) + np.finfo(a.dtype).tiny


def check(xp, result, a, b):
    wide = np.clongdouble if np.iscomplexobj(a) else np.longdouble
    assert xp.owns(result)
    found = xp.array(result)
    expected = a.astype(wide) @ b.astype(wide)
    assert found.dtype == a.dtype and found.shape == expected.shape
    assert (np.abs(found - expected) <= tolerance(a, b)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((65, 130), (130, 33)), ((4,), (4, 3)), ((3, 4), (4,)),
                                    ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2)),
                                    ((2, 5, 3, 4), (5, 4, 2))])
def test_native(xp, shapes, dtype):
    a, b = values(*shapes[0], dtype=dtype), values(*shapes[1], dtype=dtype, seed=2)
    check(xp, kintsugi.matmul(xp.tensor(a), xp.tensor(b), policy="native"), a, b)


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_a_random_product(xp, seed):
    check_random_product(seed, xp)


@pytest.mark.parametrize("scheme", ["fp16x3", "fp16x3-wide", "bf16x9"])
def test_schemes(xp, scheme):
    a, b = values(200, 300), values(300, 100, seed=2)
    check(xp, kintsugi.matmul(xp.tensor(a), xp.tensor(b), scheme=scheme), a, b)
    assert kintsugi.last_report()["engine"] == "cuda"


def test_transposes_and_slices(xp):
    a, b = values(96, 64), values(96, 128, seed=2)
    result = kintsugi.matmul(xp.tensor(a).T, xp.tensor(b)[:, ::2], scheme="fp16x3")
    check(xp, result, np.ascontiguousarray(a.T), np.ascontiguousarray(b[:, ::2]))


def test_out(xp):
    a, b, c = values(32, 48), values(48, 16, seed=2), values(32, 16, seed=3)
    out = xp.tensor(c)
    assert kintsugi.matmul(xp.tensor(a), xp.tensor(b), alpha=2, beta=3, out=out, policy="native") is out
    expected = 2 * a.astype(np.float64) @ b + 3.0 * c
    assert (np.abs(xp.array(out) - expected) <= 4 * (tolerance(a, b) + np.finfo(np.float32).eps * np.abs(c))).all()


def test_out_may_be_an_operand(xp):
    a = values(64, 64)
    tensor = xp.tensor(a)
    kintsugi.matmul(tensor, tensor, out=tensor, scheme="fp16x3")
    check(xp, tensor, a, a)


def test_the_current_stream(xp):
    """Work of this stream before and after: nothing is lost where no one waits in between."""
    a = values(512, 512)
    base = xp.tensor(a)
    xp.synchronize()
    stream = xp.stream()
    with xp.inside(stream):
        result = base
        for _ in range(20):
            result = kintsugi.matmul(result * 0 + base, base, scheme="fp16x3")
    xp.synchronize()
    check(xp, result, a, a)


def test_threads(xp):
    a = values(128, 128)
    base = xp.tensor(a)
    xp.synchronize()
    results = [None] * 4

    def work(place):
        with xp.inside(xp.stream()):
            for _ in range(10):
                results[place] = kintsugi.matmul(base, base, scheme="fp16x3")

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    xp.synchronize()
    for result in results:
        check(xp, result, a, a)
        assert (xp.array(result) == xp.array(results[0])).all()


def test_prepared(xp):
    a, b = values(100, 200), values(200, 50, seed=2)
    prepared = kintsugi.prepare(xp.tensor(a), side="a", scheme="fp16x3")
    with_it = kintsugi.matmul(prepared, xp.tensor(b), scheme="fp16x3")
    without = kintsugi.matmul(xp.tensor(a), xp.tensor(b), scheme="fp16x3")
    assert (xp.array(with_it) == xp.array(without)).all()
    with pytest.raises(ValueError, match="a was prepared on a device and the other operand is on the CPU"):
        kintsugi.matmul(prepared, b)


@pytest.mark.parametrize("options", [{"scheme": "fp16x3"}, {"policy": "native"}, {"accuracy": "exact"}])
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_prepared_operand_may_change_and_go(xp, side, options):
    a, b = values(300, 300), values(300, 300, seed=2)
    tensor = xp.tensor(a)
    prepared = kintsugi.prepare(tensor, side=side, **options)
    tensor.fill(float("nan")) if hasattr(tensor, "fill") else tensor.fill_(float("nan"))
    del tensor
    others = [xp.tensor(values(300, 300, seed=seed)) for seed in range(3, 9)]
    result = kintsugi.matmul(*((prepared, xp.tensor(b)) if side == "a" else (xp.tensor(b), prepared)), **options)
    del prepared, others  # while the product may run
    check(xp, result, *((a, b) if side == "a" else (b, a)))


def test_weights_prepared_under_auto(xp):
    weights = values(1024, 2048)
    prepared = kintsugi.prepare(xp.tensor(weights), side="b")
    for rows in (1, 64, 1024):
        a = values(rows, 1024, seed=rows)
        check(xp, kintsugi.matmul(xp.tensor(a), prepared), a, weights)
        assert kintsugi.last_plan()["problem"]["prepared_b"]
        assert kintsugi.last_report()["candidates"][0]["scheme"] == kintsugi.last_plan()["candidates"][0]["scheme"]


def test_torchs_allocator_has_the_workspace():
    xp = Torch()
    a = xp.tensor(values(512, 512))
    kintsugi.matmul(a, a, scheme="fp16x3")
    kintsugi.release_caches()  # a workspace that is kept for the next call would serve
    xp.module.cuda.reset_peak_memory_stats()
    before = xp.module.cuda.memory_allocated()
    result = kintsugi.matmul(a, a, scheme="fp16x3")
    assert xp.module.cuda.max_memory_allocated() - before >= kintsugi.last_plan()["workspace_bytes"] > 0
    kintsugi.release_caches()
    assert xp.module.cuda.memory_allocated() - before == a.nbytes, "the workspace is back, the result is not"
    del result


def test_torchs_allocator_has_prepared_operands():
    xp = Torch()
    a = xp.tensor(values(512, 512))
    kintsugi.release_caches()
    before = xp.module.cuda.memory_allocated()
    prepared = kintsugi.prepare(a, side="a", scheme="fp16x3")
    assert xp.module.cuda.memory_allocated() - before >= 2 * a.nbytes, "a copy and its slices"
    result = kintsugi.matmul(prepared, a, scheme="fp16x3")
    del prepared  # waits for the device
    check(xp, result, xp.array(a), xp.array(a))
    del result
    gc.collect()
    kintsugi.release_caches()
    assert xp.module.cuda.memory_allocated() == before


def test_smaller_blocks_where_torch_has_no_more():
    """Torch may have what is in use, the result and half a workspace."""
    xp = Torch()
    cuda = xp.module.cuda
    a = xp.tensor(values(4096, 4096))
    whole = kintsugi.matmul(a, a, scheme="fp16x3")
    workspace = kintsugi.last_plan()["workspace_bytes"]
    expected = xp.array(whole)
    del whole
    cuda.synchronize()
    cuda.empty_cache()
    most = cuda.memory_reserved() + a.nbytes + workspace // 2 + (64 << 20)
    cuda.set_per_process_memory_fraction(most / cuda.get_device_properties(0).total_memory)
    try:
        result = kintsugi.matmul(a, a, scheme="fp16x3")
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    assert (xp.array(result) == expected).all()


def test_a_graph_of_torch():
    xp = Torch()
    a = values(256, 256)
    base = xp.tensor(a)
    out = xp.module.empty_like(base)
    kintsugi.matmul(base, base, out=xp.module.empty_like(base), scheme="fp16x3")
    graph = xp.module.cuda.CUDAGraph()
    with xp.module.cuda.graph(graph):
        kintsugi.matmul(base, base * 1, out=out, scheme="fp16x3")
    out.fill_(float("nan"))
    graph.replay()
    xp.synchronize()
    check(xp, out, a, a)


def test_mixtures_are_refused():
    xp = Torch()
    a = xp.tensor(values(2, 2))
    with pytest.raises(TypeError, match="b is not"):
        kintsugi.matmul(a, values(2, 2))
    with pytest.raises(TypeError, match="b is torch.float32 on cpu and a torch.float32 on cuda"):
        kintsugi.matmul(a.clone().requires_grad_(), values(2, 2))


def test_gradients_of_torch():
    """By matmul, an operator and a route. The backward runs in a thread of autograd's, with the accuracy asked for."""
    xp = Torch()
    torch = xp.module
    import kintsugi.torch as kt
    a, b, seed = (xp.tensor(values(96, 96, dtype=np.float64, seed=seed)) for seed in (1, 2, 3))
    expected = [seed @ b.mT, a.mT @ seed]

    def gradients(product):
        leaves = a.clone().requires_grad_(), b.clone().requires_grad_()
        product(*leaves).backward(seed)
        return [leaf.grad for leaf in leaves]

    for product in (kintsugi.matmul, torch.ops.kintsugi.mm):
        assert all(torch.allclose(x, y) for x, y in zip(gradients(product), expected))
    reaches_threads = hasattr(torch._C, "_remove_obj_from_tls")  # use() does, from torch 2.15 on
    with kt.enable() if reaches_threads else kt.enable("exact"), kt.use("exact"):
        kt.statistics(reset=True)
        found = gradients(torch.matmul)
        assert kt.statistics() == {"mm": {"routed": 3, "left": {}}}
    exact = [kintsugi.matmul(seed, b.mT, accuracy="exact"), kintsugi.matmul(a.mT, seed, accuracy="exact")]
    assert all(torch.equal(x, y) for x, y in zip(found, exact))


def test_a_graph_of_torchs_operators():
    xp = Torch()
    torch = xp.module
    import kintsugi.torch as kt
    a = values(256, 256)
    base, bias = xp.tensor(a), xp.tensor(values(256, seed=2))

    def products():
        with kt.enable():
            return torch.ops.kintsugi.mm(base, base), base @ base, torch.addmm(bias, base, base)

    products()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = products()
    for result in results:
        result.fill_(float("nan"))
    graph.replay()
    xp.synchronize()
    for result in (results[0], results[1], results[2] - bias):
        assert np.allclose(xp.array(result), a.astype(np.float64) @ a, atol=1e-3)


def test_prepared_layers_of_torch():
    xp = Torch()
    torch = xp.module
    import kintsugi.torch as kt
    layer = torch.nn.Linear(256, 128, device="cuda")
    x = xp.tensor(values(64, 256))
    kt.prepare(layer)
    with torch.no_grad():
        for _ in range(3):
            expected = torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
            assert torch.allclose(layer(x).double(), expected, atol=1e-4)
            layer.weight.mul_(-2)


def test_layers_with_a_bias():
    """It is added after the product, unless an accuracy is named: the sum is then rounded once."""
    xp = Torch()
    torch = xp.module
    import kintsugi.torch as kt
    linear, operator = torch.nn.functional.linear, torch.ops.kintsugi.linear
    x, weight, total = (xp.tensor(values(*shape)) for shape in ((3, 600, 512), (768, 512), (600, 768)))
    for bias in (xp.tensor(values(768)), xp.tensor(values(768, 3))[:, 1], xp.tensor(values(1)).expand(768)):
        expected = linear(x.double(), weight.double(), bias.double())
        with kt.enable():
            found = [linear(x, weight, bias), operator(x, weight, bias), operator(x, weight.clone().requires_grad_(), bias)]
            with kt.use("exact"):
                exact = torch.addmm(bias, x[0], weight.mT)
        assert all(torch.allclose(y.double(), expected, atol=1e-4) for y in found)
        once = kintsugi.matmul(x[0], weight.mT, beta=1, out=bias.expand(600, 768).clone(), accuracy="exact")
        assert torch.equal(exact, once) and torch.equal(operator(x, weight, bias, accuracy="exact")[0], once)
    with kt.enable():
        sums = [torch.addmm(total, x[0], weight.mT, out=torch.empty_like(total)), total.clone().addmm_(x[0], weight.mT),
                torch.baddbmm(total, x, weight.mT.expand(3, 512, 768))[0]]
    assert all(torch.allclose(y.double(), total.double() + x[0].double() @ weight.mT.double(), atol=1e-4) for y in sums)


class Stranger:
    """An array of a library that nobody knows: DLPack alone, and the streams that it was asked for."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream)


class Acquainted(Stranger):
    """Tensor of a library that also takes DLPack."""

    library = None

    def __array_namespace__(self):
        return self

    def from_dlpack(self, array):
        return Acquainted(self.library.from_dlpack(array))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shapes", [((65, 130), (130, 33)), ((4,), (4, 3)), ((5, 3, 4), (4, 2)), ((0, 3), (3, 2))])
def test_arrays_by_dlpack(xp, shapes, dtype):
    a, b = values(*shapes[0], dtype=dtype), values(*shapes[1], dtype=dtype, seed=2)
    operands = Stranger(xp.tensor(a)), Stranger(xp.tensor(b))
    result = kintsugi.matmul(*operands, policy="native")
    assert isinstance(result, kintsugi.DeviceArray) and result.dtype == dtype
    check(xp, xp.module.from_dlpack(result), a, b)
    assert [x.streams for x in operands] == [[_dlpack.DEFAULT_STREAM]] * 2


def test_a_scheme_by_dlpack(xp):
    a, b = values(200, 300), values(300, 100, seed=2)
    out = xp.tensor(np.ones((200, 100), np.float32))
    target = Stranger(out)
    operands = Stranger(xp.tensor(a)), Stranger(xp.tensor(b))
    assert kintsugi.matmul(*operands, scheme="fp16x3", out=target) is target
    expected = kintsugi.matmul(xp.tensor(a), xp.tensor(b), scheme="fp16x3")
    assert (xp.array(out) == xp.array(expected)).all()
    prepared = kintsugi.prepare(operands[0], side="a", scheme="fp16x3")
    result = xp.module.from_dlpack(kintsugi.matmul(prepared, operands[1], scheme="fp16x3"))
    assert (xp.array(result) == xp.array(expected)).all()


def test_dlpack_finds_what_a_stream_still_computes(xp):
    """The producer's stream is busy when the operand is asked for, and the call waits for it."""
    a = values(1024, 1024)
    base = xp.tensor(a)
    xp.synchronize()
    with xp.inside(xp.stream()):
        busy = base * 0
        for _ in range(50):
            busy = busy @ base
        late = base + busy * 0
        result = kintsugi.matmul(Stranger(late), Stranger(base), scheme="fp16x3")
    check(xp, xp.module.from_dlpack(result), a, a)


def test_a_library_that_takes_dlpack_gets_its_own(xp, monkeypatch):
    monkeypatch.setattr(Acquainted, "library", xp.module)
    a, b = values(64, 32), values(32, 16, seed=2)
    result = kintsugi.matmul(Acquainted(xp.tensor(a)), Acquainted(xp.tensor(b)), policy="native")
    assert isinstance(result, Acquainted)
    check(xp, result.tensor, a, b)


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert ctypes.CDLL("libcuda.so.1").cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value


def test_memory_of_dlpack_goes_back(xp):
    a = Stranger(xp.tensor(values(4096, 4096)))
    kintsugi.matmul(a, a, policy="native")
    before = free_bytes()
    for _ in range(8):  # 64 MiB each
        result = xp.module.from_dlpack(kintsugi.matmul(a, a, policy="native"))
        del result
    gc.collect()
    assert before - free_bytes() < 128 << 20


def test_guests_beside_the_librarys_own(xp):
    a, b = values(65, 130), values(130, 33, seed=2)
    guest = Stranger(xp.tensor(b))
    check(xp, kintsugi.matmul(xp.tensor(a), guest, policy="native"), a, b)
    assert len(guest.streams) == 1
    check(xp, kintsugi.matmul(Stranger(xp.tensor(a)), xp.tensor(b), policy="native"), a, b)


def test_torch_and_cupy_meet():
    torch, cupy = Torch(), Cupy()
    a, b = values(65, 130), values(130, 33, seed=2)
    check(torch, kintsugi.matmul(torch.tensor(a), cupy.tensor(b), scheme="fp16x3"), a, b)
    check(cupy, kintsugi.matmul(cupy.tensor(a), torch.tensor(b), scheme="fp16x3"), a, b)


LAZY = {"conjugate": (lambda torch, x: x.conj(), lambda x: x.conj()),
        "negative": (lambda torch, x: torch._neg_view(x), lambda x: -x),
        "both": (lambda torch, x: torch._neg_view(x).conj(), lambda x: -x.conj()),
        "imaginary part": (lambda torch, x: x.conj().imag, lambda x: -x.imag)}


@pytest.mark.parametrize("view", LAZY)
def test_lazy_views_of_torch_beside_other_libraries(view):
    """CuPy's product with torch's lazy operand and lazy out; torch's product with lazy ones beside CuPy's
    array and beside one by DLPack alone."""
    torch, cupy = Torch(), Cupy()
    lazy, stored = LAZY[view]
    a, b, c = (values(40, 40, dtype=np.complex64, seed=seed) for seed in (1, 2, 3))
    other = np.ascontiguousarray(stored(a))
    for left in (cupy.tensor(other), torch.tensor(other), Stranger(cupy.tensor(other))):
        whole = torch.tensor(c)
        out = lazy(torch.module, whole)
        right = lazy(torch.module, torch.tensor(b))
        assert kintsugi.matmul(left, right, beta=2, out=out, accuracy="exact") is out
        expected = np.ascontiguousarray(stored(c))
        kintsugi.matmul(other, np.ascontiguousarray(stored(b)), beta=2, out=expected, accuracy="exact")
        assert (out.resolve_conj().resolve_neg().cpu().numpy() == expected).all()
        if view == "imaginary part":
            assert (torch.array(whole).real == c.real).all()


def test_lazy_views_in_a_stream_that_is_busy():
    """Copies of lazy views, and what is written back, are in the current stream."""
    xp = Torch()
    a = values(512, 512, dtype=np.complex64)
    base = xp.tensor(a)
    xp.synchronize()
    with xp.inside(xp.stream()):
        busy = base * 0
        for _ in range(50):
            busy = busy @ base
        late = (base + busy * 0).conj()
        out = xp.module.empty_like(base).conj()
        prepared = kintsugi.prepare(late, side="a", policy="native")
        kintsugi.matmul(prepared, late, out=out, policy="native")
        result = out + 0
    xp.synchronize()
    check(xp, result, a.conj(), a.conj())


def test_what_dlpack_would_have_to_copy_is_refused(xp):
    a = xp.tensor(values(64, 64))
    with pytest.raises(ValueError, match="without a copy"):
        kintsugi.matmul(Stranger(a[::2, ::2]), Stranger(a[:32]))
