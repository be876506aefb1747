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
    element = beta == T(0) ? T(0) : scaled_element(beta, element);
  }
}

}  // namespace

#define KINTSUGI_SCALE(name, T) \
  extern "C" __global__ void name(const __grid_constant__ ScaledMatrix matrix) { scale<T>(matrix); }
KINTSUGI_SCALE(scale_f32, float)
KINTSUGI_SCALE(scale_f64, double)
KINTSUGI_SCALE(scale_c32, Complex<float>)
KINTSUGI_SCALE(scale_c64, Complex<double>)
#undef KINTSUGI_SCALE

}  // namespace kintsugi::core::cuda
