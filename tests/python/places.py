"""Fixtures of cases that arrays of numpy, CuPy (an imitation) and torch take: `place`, functions that put an array there and
bring it back, and `rng`, random numbers. Their seed is new in every run, and a failure shows it: CASES_SEED=7 takes that one."""

import os
import random

import cupy_imitation
import numpy as np
import pytest

SEED = int(os.environ.get("CASES_SEED", random.SystemRandom().randrange(2**32)))


@pytest.fixture
def rng(request):
    print(f"CASES_SEED={SEED}")
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.fixture(params=["numpy", "cupy", "torch"])
def place(request, monkeypatch):
    if request.param == "numpy":
        return np.asarray, np.asarray
    if request.param == "cupy":
        return cupy_imitation.install(monkeypatch)
    torch = pytest.importorskip("torch")
    return lambda x: torch.from_numpy(np.array(x)), lambda x: x.numpy()
