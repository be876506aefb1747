// Kernels of fp16x3 and fp16x3-wide for small tiles.
#include "engines/cuda/gemm/multi_term/multi_term_small_sm90.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_SMALL_TILES(name, structure, tile)                                                         \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1) __launch_bounds__(                   \
      small_tile_threads, 2) name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, \
                                  const __grid_constant__ SmallTileParams params) {                         \
    multiply_small_tile<SmallTileConfig<structure, FormatId::fp16, tile>>(a, b, params);                    \
  }
KINTSUGI_SMALL_TILES(fp16_small_tiles_32, fp16x3_structure, small_tiles[0])
KINTSUGI_SMALL_TILES(fp16_small_tiles_64, fp16x3_structure, small_tiles[1])
KINTSUGI_SMALL_TILES(fp16_small_tiles_128, fp16x3_structure, small_tiles[2])
KINTSUGI_SMALL_TILES(fp16_rescaled_small_tiles_32, fp16x3_wide_structure, small_tiles[0])
KINTSUGI_SMALL_TILES(fp16_rescaled_small_tiles_64, fp16x3_wide_structure, small_tiles[1])
KINTSUGI_SMALL_TILES(fp16_rescaled_small_tiles_128, fp16x3_wide_structure, small_tiles[2])
#undef KINTSUGI_SMALL_TILES

}  // namespace kintsugi::core::cuda
