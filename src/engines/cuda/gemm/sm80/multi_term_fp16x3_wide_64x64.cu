// Multi-term GEMM of fp16x3-wide by mma.sync, tiles of 64 x 64: no file should compile for a minute.
#include "engines/cuda/arch/sm80/tiles.hpp"
#include "engines/cuda/gemm/multi_term_structures.hpp"
#include "engines/cuda/gemm/sm80/multi_term_mma.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_MULTI_TERM_MMA(multiply_f32_fp16x3_wide_mma_64x64, fp16x3_wide_structure, fp16,
                        sm80::multi_term_tiles[2])

}  // namespace kintsugi::core::cuda
