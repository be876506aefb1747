#include "engines/cuda/gemm/hopper/direct_wgmma.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_WIDE(name, rows_along_k, columns_along_k, swapped)                                 \
  extern "C" __global__ void __launch_bounds__(wide_threads, 1)                                     \
      name(const __grid_constant__ TensorMap row_map, const __grid_constant__ TensorMap column_map, \
           const __grid_constant__ DirectParams params) {                                           \
    multiply_wide<WideConfig<rows_along_k, columns_along_k, swapped>>(row_map, column_map, params,  \
                                                                      blockIdx.x);                  \
  }
KINTSUGI_WIDE(multiply_f32_direct_128x64_kk, true, true, false)
KINTSUGI_WIDE(multiply_f32_direct_128x64_kn, true, false, false)
KINTSUGI_WIDE(multiply_f32_direct_128x64_mk, false, true, false)
KINTSUGI_WIDE(multiply_f32_direct_128x64_mn, false, false, false)
KINTSUGI_WIDE(multiply_f32_direct_128x64_swapped_kk, true, true, true)
KINTSUGI_WIDE(multiply_f32_direct_128x64_swapped_kn, true, false, true)
KINTSUGI_WIDE(multiply_f32_direct_128x64_swapped_mk, false, true, true)
KINTSUGI_WIDE(multiply_f32_direct_128x64_swapped_mn, false, false, true)
#undef KINTSUGI_WIDE

}  // namespace kintsugi::core::cuda
