// GEMM of int8 slices with one exponent per tile of 32 inner indices, as in the paper.
#include "engines/cuda/gemm/hopper/weighted_tiles.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_ALL_WEIGHTED_TILES(32)

}  // namespace kintsugi::core::cuda
