"""A CUDA device by ctypes: memory, a stream, and two cuBLAS, the one that programs find by name and the real one."""

import ctypes
import sys

import suite

ARENA = 1 << 26  # bytes of device memory: four arrays


class Device:
    """A context, a stream, an arena of memory, and the two cuBLAS: the process's by name, and the real one by its handle."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, arena, self.stream, self.handle = (ctypes.c_void_p() for _ in range(4))
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.check(self.cuda.cuCtxSetCurrent(context))
        self.check(self.cuda.cuStreamCreate(ctypes.byref(self.stream), 0))
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(arena), ctypes.c_size_t(ARENA)))
        self.arena, self.kept = arena.value, []
        self.real, self.hooked = ctypes.CDLL(suite.cublas()), ctypes.CDLL(None)
        self.lt = ctypes.CDLL(suite.cublas_lt(), ctypes.RTLD_GLOBAL)  # for the descriptors
        self.check(self.real.cublasCreate_v2(ctypes.byref(self.handle)))
        self.check(self.real.cublasSetStream_v2(self.handle, self.stream))
        if hasattr(self.real, "fake_cublas_allow_default_workspace"):
            self.real.fake_cublas_allow_default_workspace(self.handle)

    @staticmethod
    def check(status):
        if status:
            sys.exit(f"status {status} of the CUDA driver or of cuBLAS")

    def real_of(self, name):
        return self.lt if name == "cublasLtMatmul" else self.real

    def address(self, part):
        return self.arena + part * (ARENA // 4)

    def write(self, part, array):
        self.copy(self.address(part), array)

    def read(self, part, array):
        self.check(self.cuda.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(array.ctypes.data), ctypes.c_void_p(self.address(part)),
                                                  ctypes.c_size_t(array.nbytes), self.stream))
        self.check(self.cuda.cuStreamSynchronize(self.stream))
        self.kept.clear()

    def copy(self, address, array):
        """Does not wait: where processes share a device, each wait takes as long as the others' turns."""
        self.kept.append(array)
        self.check(self.cuda.cuMemcpyHtoDAsync_v2(ctypes.c_void_p(address), ctypes.c_void_p(array.ctypes.data),
                                                  ctypes.c_size_t(array.nbytes), self.stream))
