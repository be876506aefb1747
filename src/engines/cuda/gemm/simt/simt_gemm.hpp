// Native products by SIMT kernels: expected times, and a kernel that selects candidates and then multiplies.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Expected time of a product without its launch and its writes of C.
double simt_time(const NativeShape& shape, const Costs& costs);

// Number of thread blocks of multiply_unsliced() that share a tile of C; each computes a part of k (split-K).
// It is 1 for all types except FP32.
std::int64_t blocks_per_tile(const DeviceTile& tile);

// True if select_or_multiply_unsliced() can be used and takes no more time than a launch for the selection
// and another for the product.
bool selects_and_multiplies(const DeviceTile& tile, const SelectionTask& task);

// Selects a candidate for each batch item. Then computes the products of the items for which it has selected
// tile.condition.candidate, as multiply_unsliced() does.
//
// The kernel is launched with programmatic dependent launch and makes no grid-dependency wait. Therefore the
// preceding kernel must have waited for the kernels that write the ranges, which this kernel reads, and for
// all kernels that use the selections and the report, which this kernel writes.
void select_or_multiply_unsliced(const Queue& queue, const DeviceTile& tile, const SelectionTask& task);

}  // namespace kintsugi::core::cuda
