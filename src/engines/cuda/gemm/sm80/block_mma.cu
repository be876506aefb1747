#include "engines/cuda/gemm/block_narrow.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_NARROW_KERNELS(multiply_f32_block_mma_32x16, narrow_warps_without_tma, 2, false)

}  // namespace kintsugi::core::cuda
