// GEMM kernels of an architecture for int8 slices with exponents per tile.
#pragma once

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_params.hpp"

namespace kintsugi::core::cuda {

struct WeightedTileKernel {
  WeightedTile tile;
  int depth;  // inner indices of a tile along k
  KernelName kernel;

  // True if the kernel multiplies tiles of `tile_depth` inner indices. A kernel for tiles of a whole k-block
  // also multiplies tiles of half a k-block.
  constexpr bool takes(int tile_depth) const {
    return tile_depth == depth || (depth == WeightedTile::block && tile_depth == depth / 2);
  }
};

}  // namespace kintsugi::core::cuda
