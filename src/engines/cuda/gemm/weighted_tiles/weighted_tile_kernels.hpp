// GEMM kernels of an architecture for int8 slices with exponents per tile.
#pragma once

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_params.hpp"

namespace kintsugi::core::cuda {

struct WeightedTileKernel {
  WeightedTile tile;
  int depth;  // inner indices of a tile along k
  KernelName kernel;
};

}  // namespace kintsugi::core::cuda
