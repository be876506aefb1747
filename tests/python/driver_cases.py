"""Products in the memory of the fake driver and by the fake cuBLAS (tests/fakes), for arrays with DLPack alone. Run by
test_package.py with the Python that the package is installed in, where the loader finds the fakes."""

import ctypes

import kintsugi
import numpy as np
import pytest
from kintsugi import _core


def needs_device_code():
    cuda = next(engine for engine in kintsugi.engines() if engine["name"] == "cuda")
    if not cuda["available"]:
        pytest.skip(cuda["reason"])


def on_device(array):
    made = kintsugi.DeviceArray.empty(array.shape, array.dtype, 0)
    array = np.ascontiguousarray(array)
    ctypes.memmove(made._address, array.ctypes.data, array.nbytes)  # the fake driver's memory is the host's
    return made


def elements(array):
    memory = (ctypes.c_char * int(np.prod(array.shape) * array.dtype.itemsize)).from_address(array._address)
    return np.frombuffer(memory, array.dtype).reshape(array.shape).copy()


def values(*shape, dtype=np.float64, seed=1):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 3)), ((3, 4), (4,)), ((5, 3, 4), (5, 4, 2)), ((5, 3, 4), (4, 2))])
def test_products(shapes, dtype):
    needs_device_code()
    a, b = values(*shapes[0], dtype=dtype), values(*shapes[1], dtype=dtype, seed=2)
    result = kintsugi.matmul(on_device(a), on_device(b), policy="native")
    assert isinstance(result, kintsugi.DeviceArray) and (elements(result) == a @ b).all()
    assert kintsugi.last_plan()["problem"]["memory"] == "device"


def test_out_and_plans():
    needs_device_code()
    a, b = values(3, 4), values(4, 5, seed=2)
    out = on_device(values(3, 5))
    assert kintsugi.matmul(on_device(a), on_device(b), out=out, policy="native") is out
    assert (elements(out) == a @ b).all()
    plan = kintsugi.plan(on_device(a), on_device(b), policy="native")
    assert (elements(plan(on_device(a), on_device(b))) == a @ b).all() and kintsugi.last_plan() == plan
    with pytest.raises(ValueError, match="memory is on the CPU and the plan has on a device"):
        plan(a, b)


def test_prepared_operands():
    needs_device_code()
    a, b = values(3, 4), values(4, 5, seed=2)
    prepared = kintsugi.prepare(on_device(a), side="a", policy="native")
    assert prepared.on_device
    assert (elements(kintsugi.matmul(prepared, on_device(b), policy="native")) == a @ b).all()


def test_a_capsule_keeps_the_memory():
    array = on_device(values(4, 4))
    address = array._address
    capsule = array.__dlpack__()
    del array
    found = _core.import_dlpack(capsule, None)
    assert found[:6] == (address, (4, 4), (32, 8), "f8", 0, False)
    del capsule
    memory = np.frombuffer((ctypes.c_char * 128).from_address(address), np.float64)
    assert (memory.reshape(4, 4) == values(4, 4)).all()


def test_the_drivers_errors():
    with pytest.raises(MemoryError, match="cuMemAlloc_v2: the device has no memory left"):
        kintsugi.DeviceArray.empty((1 << 40,), np.dtype(np.float64), 0)
    with pytest.raises(RuntimeError, match="cuDeviceGet failed with the driver's error"):
        _core.enter_device(7)
    outer = _core.enter_device(0)
    assert _core.leave_device(outer) is None
