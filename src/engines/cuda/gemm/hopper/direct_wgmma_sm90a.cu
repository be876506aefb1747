#include "engines/cuda/gemm/hopper/direct_wgmma.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_WIDE(name, columns, rows_along_k, columns_along_k, swapped)                                 \
  extern "C" __global__ void __launch_bounds__(wide_threads, 1)                                              \
      name(const __grid_constant__ TensorMap row_map, const __grid_constant__ TensorMap column_map,          \
           const __grid_constant__ DirectParams params) {                                                    \
    multiply_wide<WideConfig<columns, rows_along_k, columns_along_k, swapped>>(row_map, column_map, params); \
  }
#define KINTSUGI_WIDE_KERNELS(prefix, columns, swapped)     \
  KINTSUGI_WIDE(prefix##_kk, columns, true, true, swapped)  \
  KINTSUGI_WIDE(prefix##_kn, columns, true, false, swapped) \
  KINTSUGI_WIDE(prefix##_mk, columns, false, true, swapped) \
  KINTSUGI_WIDE(prefix##_mn, columns, false, false, swapped)
KINTSUGI_WIDE_KERNELS(multiply_f32_direct_128x64, 64, false)
KINTSUGI_WIDE_KERNELS(multiply_f32_direct_128x64_swapped, 64, true)
KINTSUGI_WIDE_KERNELS(multiply_f32_direct_128x128, 128, false)
KINTSUGI_WIDE_KERNELS(multiply_f32_direct_128x128_swapped, 128, true)
#undef KINTSUGI_WIDE
#undef KINTSUGI_WIDE_KERNELS

}  // namespace kintsugi::core::cuda
