// Kernels of ozaki2, int8x6, ozaki-int8 and products of magnitudes.
#include "engines/cuda/gemm/int8/int8_sm90.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_INT8(name, ...)                                                                      \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1)                                \
      __launch_bounds__(Int8Tile::threads, 1)                                                         \
          name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap last_rows_of_a, \
               const __grid_constant__ TensorMap b, const __grid_constant__ Int8Params params) {      \
    int8_gemm<Int8Config<__VA_ARGS__>>({a, last_rows_of_a}, b, params);                               \
  }
KINTSUGI_INT8(residue_products, SumType::residue)
KINTSUGI_INT8(short_residue_products, SumType::residue, SumRange::int25)
KINTSUGI_INT8(integer_products, SumType::i64)
#undef KINTSUGI_INT8

}  // namespace kintsugi::core::cuda
