#include "engines/cuda/gemm/block_narrow.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_NARROW_KERNELS(multiply_f32_block_32x16, narrow_warps_with_tma, 1, true)

}  // namespace kintsugi::core::cuda
