"""Products of torch's tensors whose elements are not what their memory has (conjugates, negatives), and what
else is torch's own: with an imitation on the CPU and on a device that is the host, and with torch where it is
installed, on a GPU where it sees one:

    python3 -m pytest tests/python/lazy_cases.py
"""

import functools
import gc
import os
import subprocess
import sys

import kintsugi
import numpy as np
import pytest
import torch_imitation
from libraries import Torch
from random_views import check_random_product

FIRST, LAST = (int(part) for part in os.environ.get("VIEW_SEEDS", "0:200").split(":"))

# One thread: a team for every one of so many small products takes longer than they.
matmul = functools.partial(kintsugi.matmul, threads=1)


class Imitation:
    """Tensors of the imitation on one device."""

    negative_strides = False

    def __init__(self, device):
        self.device = device
        self.module = sys.modules["torch"]

    def tensor(self, array):
        return torch_imitation.Tensor(np.array(array), device=self.device)

    def array(self, tensor):
        return tensor.elements()

    def owns(self, tensor):
        return isinstance(tensor, torch_imitation.Tensor) and tensor.device == self.device

    def place(self, memory, geometry, dtype):
        memory = memory.copy()
        return memory, torch_imitation.Tensor(geometry.view(memory, dtype), device=self.device)

    def bytes(self, memory):
        return memory


LIBRARIES = {f"{library.__name__} on {device}": (library, device)
             for library in (Imitation, Torch) for device in ("cpu", "cuda:0")}


def make(library, device, monkeypatch):
    if library is Imitation:
        torch_imitation.install(monkeypatch)
    return library(device)


@pytest.fixture(params=LIBRARIES)
def xp(request, monkeypatch):
    return make(*LIBRARIES[request.param], monkeypatch)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


VIEWS = {
    "stored": (lambda xp, x: x, lambda x: x),
    "conjugate": (lambda xp, x: x.conj(), lambda x: x.conj()),
    "negative": (lambda xp, x: xp.module._neg_view(x), lambda x: -x),
    "both": (lambda xp, x: xp.module._neg_view(x).conj(), lambda x: -x.conj()),
    "imaginary part of the conjugate": (lambda xp, x: x.conj().imag, lambda x: -x.imag),
    "imaginary part of the negative": (lambda xp, x: xp.module._neg_view(x).imag, lambda x: -x.imag),
    "adjoint": (lambda xp, x: x.mT.conj(), lambda x: x.conj().swapaxes(-1, -2)),
}


def values(*shape, dtype=np.complex128, seed=1):
    generator = np.random.default_rng(seed)
    return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("view_b", VIEWS)
@pytest.mark.parametrize("view_a", VIEWS)
def test_operands(xp, view_a, view_b, dtype):
    a, b = values(5, 5, dtype=dtype), values(5, 5, dtype=dtype, seed=2)
    (lazy_a, stored_a), (lazy_b, stored_b) = VIEWS[view_a], VIEWS[view_b]
    result = matmul(lazy_a(xp, xp.tensor(a)), lazy_b(xp, xp.tensor(b)), accuracy="exact")
    expected = matmul(stored_a(a), stored_b(b), accuracy="exact")
    assert xp.owns(result)
    assert xp.array(result).dtype == expected.dtype and (xp.array(result) == expected).all()


@pytest.mark.parametrize("view", VIEWS)
def test_out(xp, view):
    """Inside a larger tensor, whose other elements stay."""
    lazy, stored = VIEWS[view]
    a, b, c = (stored(values(4, 4, seed=seed)) for seed in (2, 3, 4))
    around = values(6, 8, seed=5)
    around[1:5, 2:6] = values(4, 4, seed=4)
    tensor = xp.tensor(around)
    out = lazy(xp, tensor[1:5, 2:6])
    version = tensor._version
    assert matmul(xp.tensor(a), xp.tensor(b), alpha=2, beta=3, out=out, accuracy="exact") is out
    assert tensor._version > version, "autograd knows of the change"
    target = c.copy()
    matmul(a, b, alpha=2, beta=3, out=target, accuracy="exact")
    assert (xp.array(out) == target).all()
    after = np.array(xp.array(tensor))
    if "imaginary" in view:
        assert (after.real == around.real).all()
    after[1:5, 2:6] = around[1:5, 2:6]
    assert (after == around).all()


@pytest.mark.parametrize("view", VIEWS)
def test_out_may_be_an_operand(xp, view):
    lazy, stored = VIEWS[view]
    a = values(4, 4)
    out = lazy(xp, xp.tensor(a))
    assert matmul(out, out, out=out, accuracy="exact") is out
    assert (xp.array(out) == matmul(stored(a), stored(a), accuracy="exact")).all()


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("view", VIEWS)
def test_prepared(xp, view, side):
    """And the copy of a lazy view lives until it was read."""
    lazy, stored = VIEWS[view]
    a, b = values(64, 64), xp.tensor(stored(values(64, 64, seed=2)))
    options = {"accuracy": "exact", "policy": "emulate", "threads": 1}
    prepared = kintsugi.prepare(lazy(xp, xp.tensor(a)), side=side, **options)
    prepared.on_device = prepared.on_device and isinstance(xp, Torch)  # the imitation's device is the host
    gc.collect()
    replacements = [xp.tensor(values(64, 64, seed=seed)) for seed in range(3, 9)]
    result = matmul(*((prepared, b) if side == "a" else (b, prepared)), **options)
    whole = (stored(a), xp.array(b))
    assert (xp.array(result) == matmul(*(whole if side == "a" else whole[::-1]), **options)).all()
    del replacements


@pytest.mark.parametrize("view", VIEWS)
def test_vectors_batches_and_types(xp, view):
    lazy, stored = VIEWS[view]
    a, b = values(3, 5, 5), values(5, 5, seed=2)
    b = stored(b).real.astype(np.float32)
    lazy_a = lazy(xp, xp.tensor(a))
    result = matmul(lazy_a, xp.tensor(b), accuracy="exact")
    assert (xp.array(result) == matmul(stored(a), b, accuracy="exact")).all()
    result = matmul(lazy_a[1][2], xp.tensor(b[:, 0]), accuracy="exact")
    assert xp.array(result) == matmul(stored(a)[1, 2], b[:, 0], accuracy="exact")


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_a_random_product(xp, seed):
    views = {"stored": (lambda x: x, lambda x: x), "conjugate": (lambda x: x.conj(), lambda x: x.conj()),
             "negative": (xp.module._neg_view, lambda x: -x),
             "both": (lambda x: xp.module._neg_view(x).conj(), lambda x: -x.conj())}
    check_random_product(seed, xp, views)


def test_scalars(torch):
    a, z = torch.eye(2, dtype=torch.complex128), torch.tensor([2 + 3j])
    assert matmul(a, a, alpha=z.conj()[0], accuracy="exact")[0, 0] == 2 - 3j
    assert matmul(a, a, alpha=z.conj().imag[0], accuracy="exact")[0, 0] == -3


@pytest.mark.parametrize("library", [Imitation, Torch])
class TestOnTheCpu:
    """Tensors there meet arrays, lists, and whatever has DLPack."""

    @pytest.fixture
    def xp(self, library, monkeypatch):
        return make(library, "cpu", monkeypatch)

    def test_one_tensor_among_the_operands_makes_the_result_one(self, xp):
        a, b = values(3, 4), values(4, 2, seed=2)
        expected = matmul(a, b, accuracy="exact")
        for x, y in ((xp.tensor(a), xp.tensor(b)), (xp.tensor(a), b), (a, xp.tensor(b)), (a.tolist(), xp.tensor(b)),
                     (kintsugi.prepare(a, side="a"), xp.tensor(b)), (xp.tensor(a), kintsugi.prepare(b, side="b"))):
            result = matmul(x, y, accuracy="exact")
            assert xp.owns(result) and (xp.array(result) == expected).all()
        vector = matmul(xp.tensor(a)[1], xp.tensor(b), accuracy="exact")
        assert vector.detach().numpy().shape == (2,) and (xp.array(vector) == expected[1]).all()
        assert xp.array(matmul(xp.tensor(a)[1], b[:, 0], accuracy="exact")).shape == ()

    @pytest.mark.parametrize("cut", [np.s_[:3, :2], np.s_[::2, 1:3], np.s_[1:4, ::3]])
    def test_out_is_what_was_given(self, xp, cut):
        a, b, c = values(3, 4), values(4, 2, seed=2), values(6, 6, seed=3)
        expected = c.copy()
        matmul(a, b, beta=2, out=expected[cut], accuracy="exact")
        tensor = xp.tensor(c)
        out = tensor[cut]
        assert matmul(a, b, beta=2, out=out, accuracy="exact") is out
        assert (xp.array(tensor) == expected).all()
        array = c.copy()[cut]
        assert matmul(xp.tensor(a), xp.tensor(b), beta=2, out=array, accuracy="exact") is array
        assert (array == expected[cut]).all()

    def test_what_out_cannot_be(self, xp):
        a = xp.tensor(values(2, 2))
        with pytest.raises(ValueError, match=r"out is complex128 \(2, 3\); this product needs an array, complex128"):
            matmul(a, a, out=xp.tensor(values(2, 3)))
        with pytest.raises(ValueError, match="out is complex64"):
            matmul(a, a, out=xp.tensor(values(2, 2, dtype=np.complex64)))
        with pytest.raises(ValueError, match="elements of out share memory"):
            matmul(a, a, out=xp.tensor(values(1, 2)).expand((2, 2)))
        with pytest.raises(ValueError, match="no out is given"):
            matmul(a, a, beta=1)

    def test_gradients_are_refused(self, xp):
        """But by matmul without out, of torch itself: torch_cases.py."""
        a = xp.tensor(values(2, 2))
        wants = xp.tensor(values(2, 2))
        wants.requires_grad = True
        for call in (lambda: matmul(wants, a, out=xp.tensor(values(2, 2))), lambda: matmul(a, a, out=wants),
                     lambda: kintsugi.prepare(wants, side="a"), lambda: kintsugi.explain(a, wants)):
            with pytest.raises(TypeError, match=r"requires a gradient.*detach\(\)"):
                call()
        assert xp.owns(matmul(wants.detach(), a))

    def test_double_double(self, xp):
        a, b, c = (values(3, 3, 2, seed=seed).real for seed in (1, 2, 3))
        result = kintsugi.matmul_dd(xp.tensor(a), xp.tensor(b))
        assert xp.owns(result) and (xp.array(result) == kintsugi.matmul_dd(a, b)).all()
        negative = kintsugi.matmul_dd(xp.module._neg_view(xp.tensor(a)), b)
        assert (xp.array(negative) == -kintsugi.matmul_dd(a, b)).all()
        for view in (lambda x: x, xp.module._neg_view):
            out = view(xp.tensor(c))
            assert kintsugi.matmul_dd(a, b, beta=2, out=out) is out
            expected = np.array(xp.array(view(xp.tensor(c))))
            kintsugi.matmul_dd(a, b, beta=2, out=expected)
            assert (xp.array(out) == expected).all()


def test_lazy_views_beside_other_libraries(monkeypatch):
    """A guest of torch is computed with as it is given, and torch's own lazy views beside it."""
    xp = make(Imitation, "cuda:0", monkeypatch)
    a, b, c = values(4, 4), values(4, 4, seed=2), values(4, 4, seed=3)

    class Guest:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, stream=None):
            return b.__dlpack__()

    out = xp.tensor(c).conj()
    assert matmul(xp.tensor(a).conj(), Guest(), beta=2, out=out, accuracy="exact") is out
    expected = c.conj()
    matmul(a.conj(), b, beta=2, out=expected, accuracy="exact")
    assert (xp.array(out) == expected).all()


def test_a_change_that_a_gradient_does_not_expect_is_an_error(torch):
    a, x = torch.eye(3), torch.ones(3, 3, requires_grad=True)
    for lazy in (lambda y: y, torch._neg_view):
        out = torch.ones(3, 3)
        y = (x * out).sum()  # its gradient by x is out
        matmul(a, a, out=lazy(out))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_without_gradients_every_tensor_is_taken(torch):
    a = torch.nn.Parameter(torch.randn(3, 3))
    with torch.no_grad():
        result = matmul(a, a, out=torch.empty(3, 3))
        assert matmul(a, a, out=a) is a and (a == result).all()
    assert not result.requires_grad
    with torch.inference_mode():
        assert (matmul(torch.eye(3), torch.eye(3)) == torch.eye(3)).all()


def test_subclasses(torch):
    class Own(torch.Tensor):
        pass

    a = torch.randn(3, 3, dtype=torch.complex128)
    expected = matmul(a.conj(), a)
    for arguments in ((a.as_subclass(Own).conj(), a), (a.as_subclass(Own).requires_grad_(), a)):
        with pytest.raises(TypeError, match="a is a Own, a subclass of torch.Tensor"):
            matmul(*arguments)
    with pytest.raises(TypeError, match="out is a Own, a subclass of torch.Tensor"):
        matmul(a.conj(), a, out=torch.empty_like(a).as_subclass(Own))
    frozen = torch.nn.Parameter(a, requires_grad=False)
    assert (matmul(frozen.conj(), frozen) == expected).all()


def test_devices_and_types_without_products(torch):
    a = torch.ones(2, 2)
    with pytest.raises(TypeError, match="b is a torch tensor on meta"):
        matmul(a, torch.ones(2, 2, device="meta"))
    with pytest.raises(TypeError, match="bfloat16"):
        matmul(a.to(torch.bfloat16), a)
    with pytest.raises(TypeError, match="sparse|layout"):
        matmul(a.to_sparse(), a)
    with pytest.raises(TypeError, match="int64"):
        matmul(a.long(), a.long())


def test_products_of_arrays_do_not_import_torch():
    program = "import sys, numpy, kintsugi; kintsugi.matmul(numpy.eye(2), numpy.eye(2)); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
