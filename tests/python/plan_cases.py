"""Plans that are called: kintsugi.plan(), of plain operands and of operands that are converted first. Run by
test_package.py with the Python that the package is installed in."""

import concurrent.futures
import copy
import pickle

import kintsugi
import numpy as np
import pytest
import torch_imitation
from kintsugi import _core, _tensors
from random_views import TYPES, check, product_and_bound, random_shapes, random_values

@pytest.fixture(params=["plain", "converted"], autouse=True)
def operands(request, monkeypatch):
    if request.param == "converted":  # whether they must be or not
        for name in ("matmul", "execute"):
            monkeypatch.setattr(_core, name, lambda *_: NotImplemented)


def values(*shape, dtype=np.float64, seed=1):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("seed", range(100))
def test_a_plan_gives_what_matmul_gives(seed):
    rng = np.random.default_rng(seed)
    dtype, integers = TYPES[rng.integers(4)], rng.random() < 0.5
    a, b = (random_values(rng, shape, dtype, integers) for shape in random_shapes(rng))
    if rng.random() < 0.3 and a.ndim > 1:
        a = a.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    options = {"policy": ["native", "emulate"][int(rng.integers(2))], "threads": 1}
    plan = kintsugi.plan(a, b, **options)
    found = plan(a, b)
    assert np.asarray(found).tobytes() == np.asarray(kintsugi.matmul(a, b, **options)).tobytes()
    check(found, *product_and_bound(a, b, dtype(1), dtype(0), np.zeros(found.shape, dtype)), integers)
    out = np.ones(found.shape, dtype)
    assert plan(a, b, alpha=2, beta=-1, out=out) is out
    check(out, *product_and_bound(a, b, dtype(2), dtype(-1), np.ones(found.shape, dtype)), integers)


@pytest.mark.parametrize("dtype", ["float32", np.float64, "c8", np.dtype("c16")])
def test_a_plan_of_shapes(dtype):
    plan = kintsugi.plan((5, 3, 4), (4, 2), dtype=dtype)
    a, b = values(5, 3, 4, dtype=dtype), values(4, 2, dtype=dtype, seed=2)
    for _ in range(3):
        assert (plan(a, b) == a @ b).all()


def test_a_shape_needs_a_type():
    with pytest.raises(TypeError, match=r"a is the shape \(3, 4\) and dtype is not given"):
        kintsugi.plan((3, 4), (4, 5))
    with pytest.raises(TypeError, match="int64"):
        kintsugi.plan((3, 4), (4, 5), dtype=np.int64)
    with pytest.raises(ValueError, match="4 columns meet 5 rows"):
        kintsugi.plan((3, 4), (5, 4), dtype=np.float32)
    with pytest.raises(kintsugi.KintsugiError, match="fp17"):
        kintsugi.plan((3, 4), (4, 5), dtype=np.float32, scheme="fp17")


@pytest.mark.parametrize("a, b, out, message", [
    (values(4, 4), values(4, 5), None, "m is 4 and the plan has 3"),
    (values(3, 3), values(3, 5), None, "k is 3 and the plan has 4"),
    (values(3, 4, dtype=np.float32), values(4, 5, dtype=np.float32), None, "type_a is float32 and the plan has float64"),
    (values(2, 3, 4), values(4, 5), None, "batch_count is 2 and the plan has 1"),
    (values(4, 3).T, values(4, 5), None, "op_a is T and the plan has N"),
    (values(3, 8)[:, :4], values(4, 5), None, "lda is 8 and the plan has 4"),
    (values(3, 4), values(4, 5), np.empty((5, 3)).T, "layout is column major and the plan has row major"),
    (values(3, 4), values(4, 5), np.empty((3, 8))[:, :5], "ldc is 8 and the plan has 5"),
    (values(3, 4), values(4, 5), np.empty((3, 5), np.float32), r"out is float32 \(3, 5\); this product needs"),
    (values(3, 4), values(5, 5), None, "4 columns meet 5 rows"),
])
def test_what_does_not_fit_is_refused(a, b, out, message):
    plan = kintsugi.plan((3, 4), (4, 5), dtype=np.float64)
    before = None if out is None else out.tobytes()
    with pytest.raises(ValueError, match=message):
        plan(a, b, out=out)
    assert before is None or out.tobytes() == before
    with pytest.raises(ValueError, match="no out is given"):
        plan(values(3, 4), values(4, 5), beta=1)


def test_tensors_on_a_device_do_not_fit_a_plan_for_the_cpu(monkeypatch):
    plan = kintsugi.plan((3, 4), (4, 5), dtype=np.float64)
    torch_imitation.install(monkeypatch)
    monkeypatch.setattr(_tensors, "MEMORY", _core.DEVICE)
    with pytest.raises(ValueError, match="memory is on a device and the plan has on the CPU"):
        plan(torch_imitation.Tensor(values(3, 4)), torch_imitation.Tensor(values(4, 5)))


def test_tensors_of_torch_on_the_cpu(monkeypatch):
    torch_imitation.install(monkeypatch)
    a, b = (torch_imitation.Tensor(x, device="cpu") for x in (values(3, 4), values(4, 5)))
    assert (kintsugi.plan(a, b)(a, b).array == a.array @ b.array).all()


def test_results_in_the_layout_of_a_given_out():
    a, b = values(3, 4), values(4, 5)
    plan = kintsugi.plan(a, b, out=np.empty((5, 3)).T)
    out = np.empty((5, 3)).T
    assert plan(a, b, out=out) is out and (out == a @ b).all()
    with pytest.raises(ValueError, match="layout is row major and the plan has column major"):
        plan(a, b)


def test_what_matmul_copies_a_plan_copies():
    plan = kintsugi.plan((3, 4), (4, 5), dtype=np.float64)
    a, b = values(6, 8), values(4, 5)
    assert (plan(a[::2, ::2], b) == a[::2, ::2] @ b).all()
    assert (plan(values(3, 4), b.astype(b.dtype.newbyteorder())) == values(3, 4) @ b).all()
    assert (plan(values(3, 4).tolist(), b) == values(3, 4) @ b).all()


def test_prepared_operands_fit_a_plan_of_arrays_and_the_other_way_round():
    a, b = values(8, 6, dtype=np.float32), values(6, 4, dtype=np.float32)
    options = {"scheme": "fp16x3"}
    prepared = kintsugi.prepare(np.asfortranarray(a), side="a", **options)
    expected = kintsugi.matmul(a, b, **options)
    for plan in (kintsugi.plan(a, b, **options), kintsugi.plan(prepared, b, **options)):
        assert (plan(a, b) == expected).all() and (plan(prepared, b) == expected).all()


def test_a_plan_is_its_description():
    plan = kintsugi.plan((200, 300), (300, 100), dtype=np.float32, scheme="fp16x3")
    assert plan["workspace_bytes"] > 0 and isinstance(plan, kintsugi.Plan)
    assert str(plan) == "\n".join(plan["words"])
    assert repr(plan) == (f"<kintsugi plan: 200 x 300 by 300 x 100, batch of 1, fp32, host: fp16x3 on {plan['engine']}, "
                          f"{plan['workspace_bytes']} bytes of workspace>")
    assert plan == kintsugi.explain(np.ones((200, 300), np.float32), np.ones((300, 100), np.float32), scheme="fp16x3")


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))])
def test_copies_are_made_again_of_the_description(twin):
    a, b = values(3, 4, dtype=np.float32), values(4, 5, dtype=np.float32)
    plan = kintsugi.plan(a, b, scheme="fp16x3", threads=1)
    other = twin(plan)
    assert other is not plan and other == plan and repr(other) == repr(plan)
    assert (other(a, b) == plan(a, b)).all()
    with pytest.raises(ValueError, match="m is 2 and the plan has 3"):
        other(a[:2], b)


def test_the_last_plan_can_be_called():
    a, b = values(3, 4), values(4, 5)
    kintsugi.matmul(a, b, policy="native", threads=1)
    plan = kintsugi.last_plan()
    kintsugi.matmul(a.T, a, policy="native")
    assert (plan(a, b) == a @ b).all() and kintsugi.last_plan() == plan


def test_threads_share_a_plan():
    plan = kintsugi.plan((64, 48), (48, 32), dtype=np.float32, scheme="fp16x3", threads=1)

    def work(seed):
        a, b = values(64, 48, dtype=np.float32, seed=seed), values(48, 32, dtype=np.float32, seed=seed + 1)
        expected = a @ b
        return all((plan(a, b) == expected).all() for _ in range(50)) and kintsugi.last_plan() == plan

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_errors_of_a_call_are_those_of_matmul():
    plan = kintsugi.plan((3, 4), (4, 5), dtype=np.float64)
    with pytest.raises(ValueError, match="out is read-only"):
        out = np.zeros((3, 5))
        out.flags.writeable = False
        plan(values(3, 4), values(4, 5), out=out)
    with pytest.raises(TypeError, match="alpha = 'x' is no number"):
        plan(values(3, 4), values(4, 5), alpha="x")
