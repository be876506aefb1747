// Multi-term GEMM of fp16x3 by mma.sync.
#include "engines/cuda/arch/sm80/tiles.hpp"
#include "engines/cuda/gemm/multi_term_structures.hpp"
#include "engines/cuda/gemm/sm80/multi_term_mma.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_MULTI_TERM_MMA(multiply_f32_fp16x3_mma_128x128, fp16x3_structure, fp16, sm80::multi_term_tiles[0])
KINTSUGI_MULTI_TERM_MMA(multiply_f32_fp16x3_mma_128x64, fp16x3_structure, fp16, sm80::multi_term_tiles[1])

}  // namespace kintsugi::core::cuda
