#include "engines/cuda/gemm/hopper/block_narrow.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_NARROW(name, columns, rows_along_k, columns_along_k)                                   \
  extern "C" __global__ void __launch_bounds__(narrow_threads, 1)                                       \
      name(const __grid_constant__ TensorMap row_map, const __grid_constant__ TensorMap column_map,     \
           const __grid_constant__ BlockParams params) {                                                \
    multiply_narrow<NarrowConfig<columns, rows_along_k, columns_along_k>>(row_map, column_map, params); \
  }
KINTSUGI_NARROW(multiply_f32_block_32x16_kk, 16, true, true)
KINTSUGI_NARROW(multiply_f32_block_32x16_kn, 16, true, false)
KINTSUGI_NARROW(multiply_f32_block_32x16_mk, 16, false, true)
KINTSUGI_NARROW(multiply_f32_block_32x16_mn, 16, false, false)
#undef KINTSUGI_NARROW

}  // namespace kintsugi::core::cuda
