"""kintsugi.accuracy(): what it holds for, and when it ends. Run by test_package.py with the Python that the package is
installed in."""

import asyncio
import contextlib
import threading

import kintsugi
import kintsugi.numpy as knp
import numpy as np
import pytest

ROW, ONES = np.array([[1.0, 1e20, -1e20]]), np.ones((3, 1))
SINGLE = np.random.default_rng(1).standard_normal((20, 20)).astype(np.float32)


def last(setting="accuracy"):
    """The setting of the last product; empty: the type's own."""
    return kintsugi.last_plan()["settings"][setting]["value"]


def accuracy():
    """The accuracy that a product without one of its own has in this place."""
    kintsugi.matmul(ROW, ONES)
    return last()


OWN = ""


@pytest.fixture(autouse=True)
def own():
    assert accuracy() == OWN
    yield
    assert accuracy() == OWN, "a default outlived its test"


def test_it_holds_for_all_products():
    products = [lambda: kintsugi.matmul(ROW, ONES), lambda: knp.dot(ROW, ONES), lambda: knp.einsum("ij,jk", ROW, ONES),
                lambda: knp.tensordot(ROW, ONES, 1), lambda: knp.linalg.multi_dot([ROW, ONES]),
                lambda: knp.vecdot(ROW[0], ONES[:, 0]), lambda: kintsugi.plan((1, 3), (3, 1), dtype=float)(ROW, ONES),
                lambda: kintsugi.matmul(kintsugi.prepare(ROW, side="a"), ONES)]
    for product in products:
        with kintsugi.accuracy("exact"):
            assert np.asarray(product()).item() == 1
            assert kintsugi.explain(ROW, ONES)["contract"]["accuracy"] == "exact"
    with kintsugi.accuracy("exact"):
        pairs = np.stack([ROW, 0 * ROW], -1), np.stack([ONES, 0 * ONES], -1)
        assert kintsugi.matmul_dd(*pairs)[0, 0].tolist() == [1, 0] and last() == "exact"


def test_arguments_win():
    with kintsugi.accuracy("exact", policy="emulate"):
        kintsugi.matmul(ROW, ONES, accuracy="fp64", policy="auto")
        assert last() == "fp64"
        kintsugi.matmul(SINGLE, SINGLE, scheme="fp16")  # with "exact" this is an error
        assert kintsugi.last_report()["candidates"][0]["scheme"] == "fp16"


def test_the_innermost_counts_and_policies_are_inherited():
    with kintsugi.accuracy("exact"):
        with kintsugi.accuracy(1e-3):
            assert accuracy() == "0.001"
            with kintsugi.accuracy(None):
                assert accuracy() == OWN
            assert accuracy() == "0.001"
        assert accuracy() == "exact"
    with kintsugi.accuracy(None, policy="emulate"), kintsugi.accuracy("fp32"):
        kintsugi.matmul(SINGLE, SINGLE)
        assert last("policy") == "emulate" and last() == "fp32"


def test_exceptions_end_it():
    with pytest.raises(ZeroDivisionError), kintsugi.accuracy("exact"), kintsugi.accuracy("fp64"):
        raise ZeroDivisionError


@pytest.mark.parametrize("arguments, message", [
    ({"accuracy": "exct"}, "did you mean exact"), ({"accuracy": -1.0}, '"-1.0?" is not accepted'),
    ({"accuracy": None, "policy": "emulated"}, "emulate"),
])
def test_wrong_ones_are_errors_at_once(arguments, message):
    with pytest.raises(kintsugi.KintsugiError, match=message) as caught, kintsugi.accuracy(**arguments):
        raise AssertionError("not entered")
    assert caught.value.status == "bad_setting"


def test_decorated_functions():
    @kintsugi.accuracy("exact")
    def inside(depth):
        return [accuracy()] + (inside(depth - 1) if depth else [])

    assert inside(2) == ["exact"] * 3 and accuracy() == OWN


def test_threads_begin_without():
    with kintsugi.accuracy("exact"):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(accuracy()))
        thread.start()
        thread.join()
        assert accuracy() == "exact"
    assert seen in ([OWN], ["exact"]), "the second where Python's threads inherit (-X thread_inherit_context)"


def test_tasks_keep_their_own():
    async def task(own, started, go):
        with kintsugi.accuracy(own) if own else contextlib.nullcontext():
            started.set()
            await go.wait()
            return accuracy(), await asyncio.to_thread(accuracy)

    async def main():
        started, go = [asyncio.Event() for _ in range(3)], asyncio.Event()
        tasks = [asyncio.ensure_future(task(own, event, go)) for own, event in zip((None, "exact"), started)]
        with kintsugi.accuracy("reproducible"):
            tasks.append(asyncio.ensure_future(task(None, started[2], go)))  # inherits
            for event in started:
                await event.wait()
            assert accuracy() == "reproducible"
        go.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [(OWN, OWN), ("exact", "exact"), ("reproducible", "reproducible")]


def test_generators_leave_it_to_their_caller():
    def generator():
        with kintsugi.accuracy("exact"):
            yield accuracy()
            yield accuracy()

    steps = generator()
    assert next(steps) == "exact" and accuracy() == "exact"
    assert next(steps) == "exact" and next(steps, None) is None and accuracy() == OWN


def test_coroutines_that_are_decorated_run_without():
    @kintsugi.accuracy("exact")
    async def coroutine():
        return accuracy()

    assert asyncio.run(coroutine()) == OWN
