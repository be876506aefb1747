"""Products of torch's and CuPy's tensors on a GPU; for a machine that has one, with the package installed or on
PYTHONPATH:

    python3 -m pytest tests/python/gpu_cases.py
"""

import threading

import kintsugi
import numpy as np
import pytest


class Torch:
    name = "torch"

    def __init__(self):
        self.module = pytest.importorskip("torch")
        if not self.module.cuda.is_available():
            pytest.skip("torch sees no GPU")

    def tensor(self, array):
        return self.module.from_numpy(np.ascontiguousarray(array)).cuda()

    def array(self, tensor):
        return tensor.cpu().numpy()

    def owns(self, tensor):
        return isinstance(tensor, self.module.Tensor) and tensor.is_cuda

    def stream(self):
        return self.module.cuda.Stream()

    def inside(self, stream):
        return self.module.cuda.stream(stream)

    def synchronize(self):
        self.module.cuda.synchronize()


class Cupy:
    name = "cupy"

    def __init__(self):
        self.module = pytest.importorskip("cupy")
        try:
            self.module.zeros(1)
        except self.module.cuda.runtime.CUDARuntimeError as error:
            pytest.skip(str(error))

    def tensor(self, array):
        return self.module.asarray(array)

    def array(self, tensor):
        return self.module.asnumpy(tensor)

    def owns(self, tensor):
        return isinstance(tensor, self.module.ndarray)

    def stream(self):
        return self.module.cuda.Stream(non_blocking=True)

    def inside(self, stream):
        return stream

    def synchronize(self):
        self.module.cuda.Device().synchronize()


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
    with pytest.raises(ValueError, match="do not meet"):
        kintsugi.matmul(prepared, b)


def test_torchs_allocator_has_the_workspace():
    xp = Torch()
    a = xp.tensor(values(512, 512))
    xp.module.cuda.reset_peak_memory_stats()
    before = xp.module.cuda.memory_allocated()
    kintsugi.matmul(a, a, scheme="fp16x3")
    assert xp.module.cuda.max_memory_allocated() - before >= kintsugi.last_plan()["workspace_bytes"]


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


def test_gradients_and_mixtures_are_refused():
    xp = Torch()
    a = xp.tensor(values(2, 2))
    with pytest.raises(TypeError, match="detach"):
        kintsugi.matmul(a.clone().requires_grad_(), a)
    with pytest.raises(TypeError, match="b is not"):
        kintsugi.matmul(a, values(2, 2))
