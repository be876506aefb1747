// Products of 52-bit words, summed in 128 bits.
#include "engines/cuda/gemm/int52_gemm.hpp"
#include "engines/cuda/gemm/integer_tiles.cuh"

namespace kintsugi::core::cuda {

// Computes a tile of the sums of group blockIdx.z. The slices are padded with zeros to whole tiles and steps.
extern "C" __global__ void __launch_bounds__(integer_threads, 2)
    multiply_int52(const __grid_constant__ WordProducts products) {
  __shared__ IntegerStep<std::int64_t> a, b;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * integer_tile;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * integer_tile;
  const std::int64_t stride = products.vector_stride;
  const auto group = static_cast<int>(blockIdx.z);
  IntegerSums<std::int64_t, Integer128> sums;
  for (int s = max(0, group - products.words + 1); s <= min(group, products.words - 1); ++s) {
    const std::int64_t* slice_a = products.a + s * products.slice_stride_a + first_row * stride;
    const std::int64_t* slice_b = products.b + (group - s) * products.slice_stride_b + first_column * stride;
    for (std::int64_t begin = 0; begin < stride; begin += integer_depth) {
      load(a, [&](int v, int p) { return slice_a[v * stride + begin + p]; });
      load(b, [&](int v, int p) { return slice_b[v * stride + begin + p]; });
      __syncthreads();
      sums.add(a, b);
      __syncthreads();
    }
  }
  sums.write(products.sums + group * products.rows * products.columns, products.rows, products.columns,
             first_row, first_column);
}

}  // namespace kintsugi::core::cuda
