// Native products by SIMT kernels: expected times, and products that follow a selection in one launch.
#pragma once

#include <span>

#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Expected time of a product per inner index. `times`: those of the tiles (NativeCosts::tile_index).
double simt_time(std::span<const SimtTile> tiles, const NativeShape& shape, std::span<const double> times);

// True if select_or_multiply_unsplit() can compute the product and the selection, and takes no more time than
// two launches.
bool selects_and_multiplies(const DeviceTile& tile, const SelectionTask& task);

// Selects a candidate for each batch item, and computes the product as multiply_unsplit() does if that is the
// candidate of the tile's condition. The kernel before it must have waited for the ranges, and for everything
// that uses the selections or the report, because this one reads and writes them without a wait.
void select_or_multiply_unsplit(const Queue& queue, const DeviceTile& tile, const SelectionTask& task);

}  // namespace kintsugi::core::cuda
