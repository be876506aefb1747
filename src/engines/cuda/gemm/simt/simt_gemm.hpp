// Expected time of native products by SIMT kernels.
#pragma once

#include <span>

#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Expected time per inner index, in units of the smallest tiles' time.
double simt_time(std::span<const SimtTile> tiles, const NativeShape& shape);

}  // namespace kintsugi::core::cuda
