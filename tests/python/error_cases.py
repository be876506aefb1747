"""Errors that leave their thread or process. Run by test_package.py with the Python that the package is
installed in."""

import concurrent.futures
import copy
import multiprocessing
import pickle

import kintsugi
import numpy as np
import pytest


class OwnError(kintsugi.KintsugiError):
    """A user's, made of other things."""

    def __init__(self, item):
        super().__init__("internal", f"item {item} failed")
        self.item = item


def fails(item):
    if item is not None:
        raise OwnError(item)
    return kintsugi.matmul(np.eye(2), np.eye(2), scheme="fp17")


def caught(item):
    with pytest.raises(kintsugi.KintsugiError) as info:
        fails(item)
    return info.value


WAYS = {f"pickle {protocol}": lambda error, protocol=protocol: pickle.loads(pickle.dumps(error, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)}
WAYS.update({"copy": copy.copy, "deepcopy": copy.deepcopy})


@pytest.mark.parametrize("item", [None, 7])
@pytest.mark.parametrize("way", WAYS)
def test_copies_are_whole(way, item):
    error = caught(item)
    error.note = "of a user"
    twin = WAYS[way](error)
    assert twin is not error and type(twin) is type(error)
    assert (twin.status, twin.args, str(twin), twin.__dict__) == (error.status, error.args, str(error), error.__dict__)
    assert twin.status == ("bad_setting" if item is None else "internal") and "f" in str(twin)


@pytest.mark.parametrize("item", [None, 7])
def test_process_pools_hand_them_on(item):
    """A pool whose worker's error cannot be pickled, or made again, breaks or waits for ever."""
    context = multiprocessing.get_context("spawn")
    error = caught(item)
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        found = pool.submit(fails, item).exception(timeout=120)
    with context.Pool(1) as pool, pytest.raises(type(error)) as info:
        pool.apply_async(fails, (item,)).get(timeout=120)
    for twin in (found, info.value):
        assert type(twin) is type(error) and (twin.status, str(twin)) == (error.status, str(error))


def masked(*shape):
    """Ones, of which the mask hides the first one."""
    return np.ma.masked_array(np.ones(shape), mask=np.arange(np.prod(shape)).reshape(shape) == 0)


MASKED_CALLS = {
    "a": lambda: kintsugi.matmul(masked(2, 2), np.eye(2)),
    "b": lambda: kintsugi.matmul(np.eye(2), masked(2, 2)),
    "out": lambda: kintsugi.matmul(np.eye(2), np.eye(2), out=masked(2, 2)),
    "alpha": lambda: kintsugi.matmul(np.eye(2), np.eye(2), alpha=np.ma.masked),
    "beta": lambda: kintsugi.matmul(np.eye(2), np.eye(2), beta=np.ma.masked, out=np.eye(2)),
    "an item of a": lambda: kintsugi.matmul([masked(2), np.ones(2)], np.eye(2)),
    "an item of an item of b": lambda: kintsugi.matmul(np.eye(2), [[masked(2)]]),
    "a of matmul_dd": lambda: kintsugi.matmul_dd(masked(2, 2, 2), np.ones((2, 2, 2))),
    "out of matmul_dd": lambda: kintsugi.matmul_dd(np.ones((2, 2, 2)), np.ones((2, 2, 2)), out=masked(2, 2, 2)),
    "alpha of matmul_dd": lambda: kintsugi.matmul_dd(np.ones((2, 2, 2)), np.ones((2, 2, 2)), alpha=np.ma.masked),
    "a of plan": lambda: kintsugi.plan(masked(2, 2), np.eye(2)),
    "b of a plan": lambda: kintsugi.plan(np.eye(2), np.eye(2))(np.eye(2), masked(2, 2)),
    "b of explain": lambda: kintsugi.explain(np.eye(2), masked(2, 2)),
    "a of prepare": lambda: kintsugi.prepare(masked(2, 2), side="a"),
}


@pytest.mark.parametrize("name", MASKED_CALLS)
def test_masked_arrays_are_refused(name):
    """np.matmul ignores their masks, too, and returns a masked array; np.ma.dot takes them for zeros."""
    with pytest.raises(TypeError, match=rf"^{name.partition(' of ')[0] if 'item' not in name else name} is a masked array"
                                        r".*\.filled\(0\)"):
        MASKED_CALLS[name]()


def test_masked_results_are_untouched():
    out = masked(2, 2)
    with pytest.raises(TypeError):
        kintsugi.matmul(np.eye(2), 3 * np.eye(2), out=out)
    assert (out.data == 1).all() and out.mask.sum() == 1
