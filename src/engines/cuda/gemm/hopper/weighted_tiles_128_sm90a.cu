// GEMM of int8 slices with one exponent per tile of 128 inner indices, the fastest, or of 64.
#include "engines/cuda/gemm/hopper/weighted_tiles.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_ALL_WEIGHTED_TILES(128)

}  // namespace kintsugi::core::cuda
