// Kernels for beta C alone.
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

namespace {

// Multiplies C by beta. A thread block takes `scaled_rows` rows of a column.
template <class T>
__device__ void scale(const ScaledMatrix& matrix) {
  if (!holds(matrix.condition)) return;
  const T beta = Scalars<T>(matrix.scalars).beta;
  if (beta == T(1)) return;
  const MatrixView<T> c = view_of<T>(matrix.c, matrix.item);
  const std::int64_t blocks = divide_up(c.rows, scaled_rows);                  // thread blocks per column
  const std::int64_t first = blockIdx.x % blocks * scaled_rows + threadIdx.x;  // the thread's first row
  const std::int64_t end = std::min(c.rows, first - threadIdx.x + scaled_rows);
  for (std::int64_t i = first; i < end; i += blockDim.x) {
    T& element = c(i, blockIdx.x / blocks);
    element = beta == T(0) ? T(0) : scaled_element(beta, element, matrix.scalars.rounding);
  }
}

}  // namespace

extern "C" __global__ void scale_real(const __grid_constant__ ScaledMatrix matrix) {
  if (matrix.c.type == ElementType::f32) {
    scale<float>(matrix);
  } else {
    scale<double>(matrix);
  }
}

extern "C" __global__ void scale_complex(const __grid_constant__ ScaledMatrix matrix) {
  if (matrix.c.type == ElementType::c32) {
    scale<Complex<float>>(matrix);
  } else {
    scale<Complex<double>>(matrix);
  }
}

}  // namespace kintsugi::core::cuda
