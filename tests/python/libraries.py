"""torch and CuPy as the tests use them; the test is skipped where they, or the device, are missing."""

import numpy as np
import pytest


class Torch:
    """torch's tensors on one device."""

    name = "torch"
    negative_strides = False

    def __init__(self, device="cuda:0"):
        self.module = pytest.importorskip("torch")
        if device != "cpu" and not self.module.cuda.is_available():
            pytest.skip("torch sees no GPU")
        self.device = device

    def tensor(self, array):
        return self.module.from_numpy(np.array(array, order="C")).to(self.device)

    def array(self, tensor):
        return tensor.resolve_conj().resolve_neg().cpu().numpy()

    def owns(self, tensor):
        return isinstance(tensor, self.module.Tensor) and str(tensor.device) == self.device

    def stream(self):
        return self.module.cuda.Stream()

    def inside(self, stream):
        return self.module.cuda.stream(stream)

    def place(self, memory, geometry, dtype):
        line = self.module.from_numpy(memory.view(dtype).copy()).to(self.device)
        return line, line.as_strided(geometry.shape, [stride // dtype.itemsize for stride in geometry.strides],
                                     geometry.offset // dtype.itemsize)

    def bytes(self, line):
        return line.cpu().numpy().view(np.uint8)

    def synchronize(self):
        self.module.cuda.synchronize()


class Cupy:
    """CuPy's arrays on the current device."""

    name = "cupy"
    negative_strides = True

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

    def place(self, memory, geometry, dtype):
        line = self.module.asarray(memory)
        return line, self.module.ndarray(geometry.shape, dtype, line.data + geometry.offset, geometry.strides)

    def bytes(self, line):
        return self.module.asnumpy(line)

    def stream(self):
        return self.module.cuda.Stream(non_blocking=True)

    def inside(self, stream):
        return stream

    def synchronize(self):
        self.module.cuda.Device().synchronize()
