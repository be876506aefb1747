"""Arrays and times of a device: numpy on the CPU, CuPy on a GPU, under the same names."""

import platform
import time

import numpy


class Cpu:
    """numpy, the wall clock and the products of numpy's BLAS."""

    name = "cpu"
    xp = numpy

    @staticmethod
    def description():
        return platform.processor() or platform.machine()

    @staticmethod
    def timed(work):
        """Seconds that work() took, and its result."""
        begin = time.perf_counter()
        result = work()
        return time.perf_counter() - begin, result

    @staticmethod
    def native(a, b, alpha, beta, out):
        """out = alpha a b + beta out."""
        product = numpy.matmul(a, b)
        if alpha != 1:
            product *= alpha
        if beta != 0:
            product += beta * out
        out[...] = product


    @staticmethod
    def times_vector(matrix, x):
        """Product of a row-major FP32 matrix and an FP64 vector, in FP64."""
        rows = 2048  # at a time, so that no FP64 copy of the matrix is held
        return numpy.concatenate([matrix[i:i + rows].astype("float64") @ x for i in range(0, matrix.shape[0], rows)])


# y = A x in FP64 for a row-major FP32 matrix A, which is read once without an FP64 copy. A thread block
# computes four elements of y, for which it reads x once.
TIMES_VECTOR = r"""
extern "C" __global__ void times_vector(const float* a, const double* x, double* y, long long rows, long long columns) {
  constexpr int block_rows = 4;
  __shared__ double partial[block_rows][32];
  const long long first = static_cast<long long>(blockIdx.x) * block_rows;
  double sums[block_rows] = {};
  for (long long column = threadIdx.x; column < columns; column += blockDim.x) {
    const double factor = x[column];
    for (int row = 0; row < block_rows; ++row)
      if (first + row < rows) sums[row] += factor * a[(first + row) * columns + column];
  }
  for (int row = 0; row < block_rows; ++row) {
    for (int lanes = 16; lanes > 0; lanes /= 2) sums[row] += __shfl_down_sync(0xffffffffu, sums[row], lanes);
    if (threadIdx.x % 32 == 0) partial[row][threadIdx.x / 32] = sums[row];
  }
  __syncthreads();
  if (threadIdx.x >= block_rows || first + threadIdx.x >= rows) return;
  double sum = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += partial[threadIdx.x][warp];
  y[first + threadIdx.x] = sum;
}
"""


class Cuda:
    """CuPy, events of the current stream and cuBLAS's own calls in FP32 and FP64."""

    name = "cuda"

    def __init__(self):
        import cupy
        self.xp = cupy
        # Without this cuBLAS might use TF32 where the environment asks for it.
        cupy.cuda.cublas.setMathMode(cupy.cuda.device.get_cublas_handle(), cupy.cuda.cublas.CUBLAS_DEFAULT_MATH)
        self.times_vector_kernel = cupy.RawKernel(TIMES_VECTOR, "times_vector")

    def description(self):
        return self.xp.cuda.runtime.getDeviceProperties(self.xp.cuda.Device().id)["name"].decode()

    def timed(self, work):
        """Seconds of the stream from the first to the last kernel of work(), gaps included, and its result."""
        begin, end = self.xp.cuda.Event(), self.xp.cuda.Event()
        begin.record()
        result = work()
        end.record()
        end.synchronize()
        return self.xp.cuda.get_elapsed_time(begin, end) / 1e3, result

    def times_vector(self, matrix, x):
        """Product of a row-major FP32 matrix and an FP64 vector, in FP64."""
        rows, columns = matrix.shape
        y = self.xp.empty(rows, "float64")
        block_rows, threads = 4, 512
        self.times_vector_kernel(((rows + block_rows - 1) // block_rows,), (threads,),
                                 (matrix, x, y, numpy.int64(rows), numpy.int64(columns)))
        return y

    def native(self, a, b, alpha, beta, out):
        """out = alpha a b + beta out by cuBLAS's gemm, of batches by gemmStridedBatched.

        Row-major out is out^T = b^T a^T in column-major.
        """
        cublas, real = self.xp.cuda.cublas, numpy.dtype(out.dtype).type
        handle = self.xp.cuda.device.get_cublas_handle()
        scalars = numpy.array([alpha, beta], real)
        letter, is_batch = "s" if real is numpy.float32 else "d", out.ndim == 3
        call = getattr(cublas, letter + ("gemmStridedBatched" if is_batch else "gemm"))
        rows, columns = out.shape[-2:]
        (op_b, stride_b), (op_a, stride_a) = _addressed(b), _addressed(a)
        distance_b, distance_a, distance_out = ((x.strides[0] // x.itemsize,) if is_batch else () for x in (b, a, out))
        call(handle, op_b, op_a, columns, rows, a.shape[-1], scalars.ctypes.data, b.data.ptr, stride_b, *distance_b, a.data.ptr,
             stride_a, *distance_a, scalars.ctypes.data + scalars.itemsize, out.data.ptr, out.strides[-2] // out.itemsize,
             *distance_out, *((out.shape[0],) if is_batch else ()))


def _addressed(x):
    """BLAS's operation (0: none, 1: transpose) and leading dimension that make x^T of the memory of a matrix or batch x."""
    if x.strides[-1] == x.itemsize:
        return 0, max(x.strides[-2] // x.itemsize, x.shape[-1])
    if x.strides[-2] == x.itemsize:
        return 1, max(x.strides[-1] // x.itemsize, x.shape[-2])
    raise ValueError(f"strides {x.strides} of shape {x.shape}: neither rows nor columns are contiguous")


def uniform(xp, shape, seed, low=0.0, high=1.0):
    """FP32 numbers from low to below high, of 24 random bits each: the same on every device.

    MurmurHash3's finaliser of a count; made in slices of rows, since the integers take as much memory again.
    """
    rows, columns = shape
    values = xp.empty(shape, "float32")
    slice_rows = max(1, (1 << 26) // columns)
    for first in range(0, rows, slice_rows):
        last = min(first + slice_rows, rows)
        bits = xp.arange(first * columns, last * columns, dtype="uint64")
        bits += xp.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
        for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
            bits ^= bits >> xp.uint64(shift)
            bits *= xp.uint64(factor)
        bits ^= bits >> xp.uint64(33)
        part = (bits >> xp.uint64(40)).astype("float32").reshape(last - first, columns)
        part *= xp.float32((high - low) / 2**24)
        part += xp.float32(low)
        values[first:last] = part
    return values


DEVICES = {"cpu": Cpu, "cuda": Cuda}
