#include "engines/cuda/gemm/hopper/block_wide.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_WIDE(name, columns, rows_along_k, columns_along_k)                                 \
  extern "C" __global__ void __launch_bounds__(wide_threads, 1)                                     \
      name(const __grid_constant__ TensorMap row_map, const __grid_constant__ TensorMap column_map, \
           const __grid_constant__ BlockParams params) {                                            \
    multiply_wide<WideConfig<columns, rows_along_k, columns_along_k>>(row_map, column_map, params); \
  }
KINTSUGI_WIDE(multiply_f32_block_128x64_kk, 64, true, true)
KINTSUGI_WIDE(multiply_f32_block_128x64_kn, 64, true, false)
KINTSUGI_WIDE(multiply_f32_block_128x64_mk, 64, false, true)
KINTSUGI_WIDE(multiply_f32_block_128x64_mn, 64, false, false)
KINTSUGI_WIDE(multiply_f32_block_128x128_kk, 128, true, true)
KINTSUGI_WIDE(multiply_f32_block_128x128_kn, 128, true, false)
KINTSUGI_WIDE(multiply_f32_block_128x128_mk, 128, false, true)
KINTSUGI_WIDE(multiply_f32_block_128x128_mn, 128, false, false)
#undef KINTSUGI_WIDE

}  // namespace kintsugi::core::cuda
