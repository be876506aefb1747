"""Promises of the package kintsugi, run by test_package.py with the Python that it is installed in."""

import fractions
import multiprocessing
import threading

import kintsugi
import numpy as np
import pytest

TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(shape, dtype=np.float64, seed=1):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(dtype)


def exact(a, b, alpha=1, beta=0, c=None):
    """alpha a b + beta c of two matrices in rational numbers, each part rounded once (float64, complex128)."""
    result = np.empty((a.shape[0], b.shape[1]), a.dtype)
    for i, j in np.ndindex(result.shape):
        total = [fractions.Fraction(0)] * 2
        for x, y in zip(a[i], b[:, j]):
            total = add(total, times(parts(x), parts(y)))
        total = times(parts(alpha), total)
        if c is not None:
            total = add(total, times(parts(beta), parts(c[i, j])))
        real, imaginary = (float(part) for part in total)
        result[i, j] = complex(real, imaginary) if np.iscomplexobj(result) else real
    return result


def parts(x):
    """Real and imaginary part as rational numbers."""
    return fractions.Fraction(float(np.real(x))), fractions.Fraction(float(np.imag(x)))


def add(x, y):
    return x[0] + y[0], x[1] + y[1]


def times(x, y):
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def tolerance(a, b):
    """(k + 8) u |a||b|: what native and emulated products of the type's own accuracy promise; a complex one has two
    products a part."""
    terms = a.shape[-1] * (2 if np.iscomplexobj(a) else 1)
    return (terms + 8) * np.finfo(a.dtype).eps / 2 * (np.abs(a) @ np.abs(b)) + np.finfo(a.dtype).tiny


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((1, 1), (1, 1)), ((7, 33), (33, 2)), ((0, 3), (3, 2)),
                                    ((2, 0), (0, 3)), ((0, 2, 3), (3, 4)), ((3, 0, 4), (4, 2)), ((3, 2, 0), (0, 2)),
                                    ((4,), (4, 3)), ((3, 4), (4,)), ((4,), (4,)),
                                    ((5, 3, 4), (5, 4, 2)), ((2, 5, 3, 4), (4, 2)), ((3, 1, 2, 4), (5, 4, 6))])
def test_shapes_are_those_of_numpy(shapes, dtype):
    a, b = random(shapes[0], dtype), random(shapes[1], dtype, 2)
    c = kintsugi.matmul(a, b)
    expected = a @ b
    assert np.shape(c) == np.shape(expected) and c.dtype == dtype
    np.testing.assert_array_less(np.abs(c - expected), 2 * tolerance(a, b) + 1e-30)


@pytest.mark.parametrize("policy", ["auto", "emulate", "native"])
@pytest.mark.parametrize("dtype", TYPES)
def test_policies_keep_the_contract(policy, dtype):
    a, b = random((20, 30), dtype), random((30, 9), dtype, 2)
    c = kintsugi.matmul(a, b, policy=policy)
    assert (np.abs(c - a.astype(np.result_type(dtype, float)) @ b) <= 2 * tolerance(a, b)).all()


@pytest.mark.parametrize("dtype, alpha, beta", [(np.float64, 0.3, -1.7), (np.complex128, 0.3 - 2j, -1.7 + 0.1j)])
def test_exact_is_the_rounded_rational_number(dtype, alpha, beta):
    a, b, c = random((4, 30), dtype) * 10.0**random((4, 30), seed=4), random((30, 3), dtype, 2), random((4, 3), dtype, 3)
    np.testing.assert_array_equal(kintsugi.matmul(a, b, accuracy="exact"), exact(a, b))
    out = c.copy()
    assert kintsugi.matmul(a, b, accuracy="exact", alpha=alpha, beta=beta, out=out) is out
    np.testing.assert_array_equal(out, exact(a, b, alpha, beta, c))


LAYOUTS = {
    "C order": lambda x: np.ascontiguousarray(x),
    "Fortran order": lambda x: np.asfortranarray(x),
    "rows of a larger one": lambda x: np.pad(x, ((0, 0), (2, 3)))[:, 2:-3],
    "columns of a larger one": lambda x: np.asfortranarray(np.pad(x, ((1, 4), (0, 0))))[1:-4],
    "every third row": lambda x: np.repeat(x, 3, axis=0)[::3],
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder()),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout_b", LAYOUTS)
@pytest.mark.parametrize("layout_a", LAYOUTS)
def test_strides_change_no_bit(layout_a, layout_b, dtype):
    a, b = random((6, 9), dtype), random((9, 5), dtype, 2)
    options = {"scheme": "fp16x3" if dtype in (np.float32, np.complex64) else "ozaki2", "engine": "reference"}
    expected = kintsugi.matmul(a, b, **options)
    result = kintsugi.matmul(LAYOUTS[layout_a](a), LAYOUTS[layout_b](b), **options)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("layout", ["C order", "Fortran order", "rows of a larger one", "columns of a larger one",
                                    "every third row", "every second column", "backwards"])
def test_out_may_have_any_strides(layout):
    a, b, c = random((6, 9)), random((9, 5), seed=2), random((6, 5), seed=3)
    out = LAYOUTS[layout](c.copy())
    assert kintsugi.matmul(a, b, accuracy="exact", beta=2, out=out) is out
    np.testing.assert_array_equal(out, exact(a, b, 1, 2, c))


def test_out_may_be_an_operand():
    a, b = random((5, 5)), random((5, 5), seed=2)
    expected = exact(a, b)
    kintsugi.matmul(a, b, accuracy="exact", out=a)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("cut", [np.s_[:], np.s_[::-1], np.s_[::2], np.s_[:, ::-1]])
def test_batches_of_any_strides(cut):
    a, b = random((4, 3, 5, 6))[cut], random((4, 3, 6, 2), seed=2)[cut]
    result = kintsugi.matmul(a, b, accuracy="exact")
    for item in np.ndindex(a.shape[:2]):
        np.testing.assert_array_equal(result[item], exact(a[item], b[item]))


def test_operands_are_not_changed_and_lists_are_taken():
    a, b = random((5, 6)), random((6, 4), seed=2)
    before = a.copy(), b.copy()
    kintsugi.matmul(a, b, policy="emulate")
    assert (a == before[0]).all() and (b == before[1]).all()
    assert (kintsugi.matmul([[1.0, 2.0]], [[3.0], [4.0]]) == [[11]]).all()


class Tensor:
    """Tensor that offers what torch's CPU tensors offer."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    a, b = random((5, 6), np.float32), random((6, 4), np.float32, 2)
    np.testing.assert_array_equal(kintsugi.matmul(Tensor(a), Tensor(b.T.copy().T)), kintsugi.matmul(a, b))


def test_prepared_operands_have_the_same_bits():
    a, b = random((6, 20), np.float32), random((20, 7), np.float32, 2)
    options = {"scheme": "fp16x3-wide", "engine": "reference"}
    expected = kintsugi.matmul(a, b, **options)
    left = kintsugi.prepare(np.asfortranarray(a), side="a", **options)
    right = kintsugi.prepare(b, side="b", **options)
    assert left.shape == (6, 20) and left.dtype == np.float32
    for x, y in [(left, b), (a, right), (left, right)]:
        np.testing.assert_array_equal(kintsugi.matmul(x, y, **options), expected)
    np.testing.assert_array_equal(kintsugi.matmul(left, b, accuracy="exact"), kintsugi.matmul(a, b, accuracy="exact"))
    with pytest.raises(ValueError, match="prepared as b is given as a"):
        kintsugi.matmul(right, b)
    batch = kintsugi.prepare(random((3, 6, 20), np.float32), side="a", **options)
    assert kintsugi.matmul(batch, b, **options).shape == (3, 6, 7)
    with pytest.raises(ValueError, match=r"a was prepared with the batch \(3,\) and the product has the batch \(2, 3\)"):
        kintsugi.matmul(batch, np.zeros((2, 3, 20, 4), np.float32))


def test_two_prepared_operands_of_different_types():
    left = kintsugi.prepare(random((6, 20), np.float32), side="a")
    right = kintsugi.prepare(random((20, 7), np.float64), side="b")
    with pytest.raises(ValueError, match=r"a was prepared as float32 and the product is one of float64; prepare "
                                         r"a.astype\(float64\), or give the other operand as float32"):
        kintsugi.matmul(left, right)


def test_plans_know_what_was_prepared_for_them():
    a, b = random((6, 20), np.float32), random((20, 7), np.float32, 2)
    left = kintsugi.prepare(a, side="a", accuracy="exact")
    problem = kintsugi.explain(left, b, accuracy="exact", policy="emulate")["problem"]
    assert problem["prepared_a"] and not problem["prepared_b"]
    assert not kintsugi.explain(left, b)["problem"]["prepared_a"]
    kintsugi.matmul(left, b, accuracy="exact")
    assert kintsugi.last_plan()["problem"]["prepared_a"]


@pytest.mark.parametrize("call, error, message", [
    (lambda a: kintsugi.matmul(a, a), ValueError, r"4 columns meet 3 rows"),
    (lambda a: kintsugi.matmul(a.astype(int), a.T), None, None),
    (lambda a: kintsugi.matmul(a.astype(int), a.T.astype(int)), None, None),
    (lambda a: kintsugi.matmul([[2**53 + 1]], a[:1]), ValueError, r"an operand has integers beyond 2\*\*53"),
    (lambda a: kintsugi.matmul(a > 0, a.T > 0), TypeError, "an operand is bool: convert to float64"),
    (lambda a: kintsugi.matmul(a.astype("f2"), a.T.astype("f2")), TypeError, "an operand is float16: convert to float32"),
    (lambda a: kintsugi.prepare(a.astype("f2"), side="a"), TypeError, "a is float16: convert to float32"),
    (lambda a: kintsugi.matmul([[2**70]], a[:1]), TypeError, "no array of numbers"),
    (lambda a: kintsugi.matmul(a.astype(np.longdouble), a.T), TypeError, "float32, float64"),
    (lambda a: kintsugi.matmul("a", a), TypeError, "no array of numbers"),
    (lambda a: kintsugi.matmul(object(), a), TypeError, "no array of numbers"),
    (lambda a: kintsugi.matmul(1.0, a), ValueError, "no dimensions"),
    (lambda a: kintsugi.matmul(a, a.T, beta=1), ValueError, "no out is given"),
    (lambda a: kintsugi.matmul(a, a.T, out=np.zeros((3, 4))), ValueError, r"needs an array, float64 \(3, 3\)"),
    (lambda a: kintsugi.matmul(a, a.T, out=np.zeros((3, 3), np.float32)), ValueError, "out is float32"),
    (lambda a: kintsugi.matmul(a, a.T, scheme="nothing"), kintsugi.KintsugiError, 'no scheme "nothing"'),
    (lambda a: kintsugi.matmul(a, a.T, accuracy="1e-30", policy="native"), kintsugi.KintsugiError, "1e-30"),
    (lambda a: kintsugi.matmul(a, a.T, engine="abacus"), kintsugi.KintsugiError, "abacus"),
    (lambda a: kintsugi.matmul(a, a.T, threads=-3), kintsugi.KintsugiError, "-3"),
    (lambda a: kintsugi.matmul(a, a.T, threads=2**33), ValueError, "threads = 8589934592"),
    (lambda a: kintsugi.matmul(a, a.T, workspace_limit=2**64), ValueError, "workspace_limit = 18446744073709551616"),
    (lambda a: kintsugi.matmul(a, a.T, threads=-2**33), ValueError, "threads = -8589934592 is less than -2147483648"),
    (lambda a: kintsugi.matmul(a, a.T, threads=1.5), TypeError, "threads = 1.5 is no integer"),
    (lambda a: kintsugi.matmul(a.T, a.T[::-1].T, workspace_limit=b"1"), TypeError, "workspace_limit = b'1' is neither"),
    (lambda a: kintsugi.matmul(a, a.T, alpha=[2, 3]), TypeError, r"alpha = \[2, 3\] is no number"),
    (lambda a: kintsugi.matmul(a, a.T, alpha=None), TypeError, "alpha = None is no number"),
    (lambda a: kintsugi.matmul(a, a.T, alpha=1j), TypeError, "alpha = 1j is complex"),
    (lambda a: kintsugi.matmul(a.astype("f4"), a.T.astype("f4"), alpha=1e300), ValueError, "beyond float32"),
    (lambda a: kintsugi.prepare(a, side="c"), ValueError, "neither 'a' nor 'b'"),
    (lambda a: kintsugi.prepare(a[0], side="a"), ValueError, "two dimensions"),
])
def test_errors_say_what_was_wrong(call, error, message):
    a = random((3, 4))
    if error is None:
        call(a)
        return
    with pytest.raises(error, match=message):
        call(a)


def test_integers_are_multiplied_as_float64():
    a = np.arange(12).reshape(3, 4)
    for dtype in (np.int64, np.int8, np.uint32):
        found = kintsugi.matmul(a.astype(dtype), a.T.astype(dtype))
        assert found.dtype == np.float64 and (found == a @ a.T).all()
    assert kintsugi.matmul([[1, 2]], [[3], [4]]).tolist() == [[11]]
    assert kintsugi.matmul(kintsugi.prepare(a, side="a"), a.T).tolist() == (a @ a.T).tolist()
    assert kintsugi.matmul(a.astype(np.int16), a.T.astype(np.float32)).dtype == np.float32
    assert kintsugi.matmul([[2**53]], [[-2**53]], accuracy="exact").tolist() == [[-2.0**106]]


def test_unaligned_arrays_are_copied():
    numbers = np.arange(12.0)
    unaligned = np.frombuffer(b"x" + numbers.tobytes(), np.uint8)[1:].view(np.float64).reshape(3, 4)
    assert not unaligned.flags.aligned
    expected = numbers.reshape(3, 4) @ numbers.reshape(4, 3)
    np.testing.assert_array_equal(kintsugi.matmul(unaligned, numbers.reshape(4, 3)), expected)
    prepared = kintsugi.prepare(unaligned, side="a")
    np.testing.assert_array_equal(kintsugi.matmul(prepared, numbers.reshape(4, 3)), expected)


def test_errors_have_the_status():
    with pytest.raises(kintsugi.KintsugiError) as caught:
        kintsugi.matmul(random((2, 2)), random((2, 2)), scheme="fp16")
    assert caught.value.status == "not_supported"


def test_plans_reports_schemes_engines():
    a, b = random((40, 50), np.float32), random((50, 30), np.float32, 2)
    plan = kintsugi.explain(a, b, scheme="fp16x3", engine="reference", threads=2)
    assert plan["format"] == "kintsugi.plan" and plan["engine"] == "reference" and plan["threads"] == 2
    assert plan["candidates"][0]["scheme"] == "fp16x3" and "fp16x3" in str(plan)
    kintsugi.matmul(a, b, scheme="fp16x3", engine="reference", threads=2)
    assert kintsugi.last_plan() == plan
    report = kintsugi.last_report()
    assert report["candidates"][0]["scheme"] == "fp16x3" and report["candidates"][0]["items"] == 1
    assert {"fp16x3", "ozaki2"} <= {scheme["name"] for scheme in kintsugi.schemes()}
    assert {"reference", "cpu"} <= {engine["name"] for engine in kintsugi.engines()}
    assert kintsugi.__version__.count(".") == 2


def test_every_thread_has_its_own_last_plan():
    kintsugi.matmul(random((2, 3)), random((3, 2)), engine="reference")
    seen = []

    def other():
        seen.append(kintsugi.last_plan())
        kintsugi.matmul(random((5, 6)), random((6, 4)), engine="reference")
        seen.append(kintsugi.last_plan()["problem"]["m"])

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[0] is None and seen[1] in (4, 5)
    assert kintsugi.last_plan()["problem"]["k"] == 3


def test_inputs_of_unit_stride_are_not_copied():
    from kintsugi._arrays import readable
    a = random((6, 9))
    for view in (a, a.T, a[1:4, 2:7], a[::2], a[:, 3:].T, random((3, 6, 9))[::2]):
        assert np.shares_memory(readable(view, a.dtype), view)
    assert not np.shares_memory(readable(a[:, ::2], a.dtype), a)


def product_of(seed):
    a = random((200, 150), np.float32, seed)
    return kintsugi.matmul(a, a.T, scheme="fp16x3", threads=3)


def products_of_children(seed):
    """A pool inside a child: its processes were forked by a forked one."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map_async(product_of, [seed, seed + 1]).get(timeout=60)


def test_forked_processes_multiply_after_a_product_with_several_threads():
    expected = [product_of(seed) for seed in range(8)]
    with multiprocessing.get_context("fork").Pool(4) as pool:
        found = pool.map_async(product_of, range(8)).get(timeout=60)
    for mine, theirs in zip(expected, found):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(product_of(3), expected[3])


def test_forks_of_forked_processes_multiply():
    expected = [product_of(seed) for seed in (1, 2)]
    process = multiprocessing.get_context("fork")
    receiver, sender = process.Pipe(duplex=False)
    child = process.Process(target=lambda: sender.send(products_of_children(1)))
    child.start()
    assert receiver.poll(60)
    for mine, theirs in zip(expected, receiver.recv()):
        np.testing.assert_array_equal(mine, theirs)
    child.join(60)
    assert child.exitcode == 0


def test_a_scheme_and_an_accuracy_that_it_cannot_give_are_an_error():
    a = random((4, 4), np.float32)
    for accuracy in ("exact", "fp32", 1e-9):
        with pytest.raises(kintsugi.KintsugiError, match="contradict") as error:
            kintsugi.matmul(a, a, scheme="fp16", accuracy=accuracy)
        assert error.value.status == "contract_unreachable"
    kintsugi.matmul(a, a, scheme="fp16", accuracy=1e-2)


@pytest.fixture
def without_blas(monkeypatch):
    """Plans as they are where there is no BLAS, in a process that has not warned yet."""
    describe = kintsugi._products.describe
    monkeypatch.setattr(kintsugi._products, "describe",
                        lambda plan: {**describe(plan), "warnings": ["engine cpu is missing"]})
    forget_the_warning(monkeypatch)


def forget_the_warning(monkeypatch):
    monkeypatch.setattr(kintsugi._products, "_warned", False)
    kintsugi._core.accept_host(False)


def test_a_missing_engine_is_warned_of_once(without_blas, recwarn):
    a = random((4, 4), np.float32)
    kintsugi.matmul(a, a, engine="reference")
    assert not recwarn.list, "the engine was named"
    for _ in range(2):
        kintsugi.matmul(a, a)
    (warning,) = recwarn.list
    assert warning.category is kintsugi.MissingEngineWarning and issubclass(warning.category, RuntimeWarning)
    assert str(warning.message) == "engine cpu is missing" and warning.filename == __file__


def test_nothing_is_warned_of_where_nothing_is_missing(monkeypatch, recwarn):
    if not any(engine["name"] == "cpu" and engine["available"] for engine in kintsugi.engines()):
        pytest.skip("no OpenBLAS here")
    forget_the_warning(monkeypatch)
    a = random((4, 4), np.float32)
    kintsugi.matmul(a, a)
    assert not recwarn.list and kintsugi.explain(a, a)["warnings"] == []


@pytest.mark.parametrize("dtype", TYPES)
def test_groups_are_products(dtype):
    shapes = [(3, 4, 5), (1, 1, 1), (30, 200, 7), (0, 3, 2), (5, 0, 6)]
    a = [random((m, k), dtype, 1) for m, k, n in shapes]
    b = [np.asfortranarray(random((k, n), dtype, 2)) for m, k, n in shapes]
    out = [random((m, n), dtype, 3) for m, k, n in shapes]
    expected = [kintsugi.matmul(x, y, alpha=2, beta=0.5, out=z.copy(), policy="emulate") for x, y, z in zip(a, b, out)]
    result = kintsugi.matmul_grouped(a, b, alpha=2, beta=0.5, out=out, policy="emulate")
    assert all(x is z for x, z in zip(result, out))
    assert all(np.array_equal(x, y) for x, y in zip(result, expected))
    assert kintsugi.matmul_grouped([], []) == []


def test_wrong_groups_are_refused():
    x = np.ones((2, 2))
    with pytest.raises(ValueError, match="a has 1 operands, b 2"):
        kintsugi.matmul_grouped([x], [x, x])
    with pytest.raises(ValueError, match=r"^group 1: a has the shape \(2, 2\) and b \(3, 2\): 2 columns meet 3 rows$"):
        kintsugi.matmul_grouped([x, x], [x, np.ones((3, 2))])
    with pytest.raises(ValueError, match=r"^group 1: a has the shape \(2, 2, 2\) and b \(3, 2, 2\), whose leading dim"):
        kintsugi.matmul_grouped([x, np.ones((2, 2, 2))], [x, np.ones((3, 2, 2))])
    with pytest.raises(ValueError, match=r"^group 1: out is float64 \(2, 3\); this product needs an array, float64 \(2, 2\)$"):
        kintsugi.matmul_grouped([x, x], [x, x], out=[x.copy(), np.ones((2, 3))])
    with pytest.raises(TypeError, match="^group 0: "):
        kintsugi.matmul_grouped([np.ma.masked_array(x)], [x])
    with pytest.raises(kintsugi.KintsugiError, match="group 0: "):
        kintsugi.matmul_grouped([x, x], [x, x], scheme="fp16x3")
