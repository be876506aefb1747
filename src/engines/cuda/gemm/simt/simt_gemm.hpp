// Expected time of native products by SIMT kernels.
#pragma once

#include <span>

#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Expected time per inner index, by the times of the tiles (NativeCosts::tile_index).
double simt_time(std::span<const SimtTile> tiles, const NativeShape& shape, std::span<const double> times);

}  // namespace kintsugi::core::cuda
