#include "engines/cuda/gemm/direct_mma.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_DIRECT_MMA_KERNELS(multiply_f32_direct_mma_64x64, large_mma_edge, 2)

}  // namespace kintsugi::core::cuda
