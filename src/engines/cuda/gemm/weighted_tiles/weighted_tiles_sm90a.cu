// Kernels of mixpert-1 ... mixpert-4 and mixpert-full, for tiles of KINTSUGI_DEPTH inner indices.
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_sm90.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_WEIGHTED_TILES(slices_a, slices_b)                                                       \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1)                                    \
      __launch_bounds__(WeightedTile::threads, 1) weighted_tiles_##slices_a##_##slices_b(                 \
          const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,                       \
          const __grid_constant__ TensorMap weights_a, const __grid_constant__ TensorMap weights_b,       \
          const __grid_constant__ WeightedTileParams params) {                                            \
    using Config = WeightedTileConfig<weighted_tile(slices_a, slices_b, KINTSUGI_DEPTH), KINTSUGI_DEPTH>; \
    weighted_tile_gemm<Config>({a, b, weights_a, weights_b}, params);                                     \
  }
KINTSUGI_WEIGHTED_TILES(2, 2)
KINTSUGI_WEIGHTED_TILES(2, 3)
KINTSUGI_WEIGHTED_TILES(3, 2)
KINTSUGI_WEIGHTED_TILES(3, 3)
KINTSUGI_WEIGHTED_TILES(4, 4)
#undef KINTSUGI_WEIGHTED_TILES

}  // namespace kintsugi::core::cuda
