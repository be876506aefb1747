#include "engines/cuda/gemm/block_narrow.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_NARROW_KERNELS(multiply_f32_block_mma_32x16, mma_narrow_warps, 2, false)

}  // namespace kintsugi::core::cuda
