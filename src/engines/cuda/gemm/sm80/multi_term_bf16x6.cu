// Multi-term GEMM of bf16x6 by mma.sync.
#include "engines/cuda/arch/sm80/tiles.hpp"
#include "engines/cuda/gemm/multi_term_structures.hpp"
#include "engines/cuda/gemm/sm80/multi_term_mma.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_MULTI_TERM_MMA(multiply_f32_bf16x6_mma_64x64, bf16x6_structure, bf16, sm80::small_tiles[0])

}  // namespace kintsugi::core::cuda
