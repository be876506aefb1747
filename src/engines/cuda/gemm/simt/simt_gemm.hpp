// Native products by SIMT kernels: their expected time.
#pragma once

#include <span>

#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// In units of the smallest tiles' time, an inner index.
double simt_time(std::span<const SimtTile> tiles, const NativeShape& shape);

}  // namespace kintsugi::core::cuda
