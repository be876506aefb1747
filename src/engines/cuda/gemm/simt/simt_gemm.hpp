// Native products by SIMT kernels: expected times, and products that follow a selection in one launch.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Expected time of a product without its launch and its writes of C.
double simt_time(const NativeShape& shape, const Costs& costs);

// Number of thread blocks of multiply_unsliced() that share a tile of C, each with a part of k; 1 for other
// types than FP32.
std::int64_t blocks_per_tile(const DeviceTile& tile);

// True if select_or_multiply_unsliced() can compute the product and the selection, and takes no more time than
// two launches.
bool selects_and_multiplies(const DeviceTile& tile, const SelectionTask& task);

// Selects a candidate for each batch item, and computes the product as multiply_unsliced() does if that is the
// candidate of the tile's condition. The kernel before it must have waited for the ranges, and for everything
// that uses the selections or the report, because this one reads and writes them without a wait.
void select_or_multiply_unsliced(const Queue& queue, const DeviceTile& tile, const SelectionTask& task);

}  // namespace kintsugi::core::cuda
