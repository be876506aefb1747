// Native products by SIMT kernels: expected times and thread blocks.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Expected time of a product without its launch and its writes of C.
double simt_time(const NativeShape& shape, const Costs& costs);

// Number of thread blocks of multiply_unsliced() that share a tile of C; each computes a part of k (split-K).
// It is 1 for all types except FP32.
std::int64_t blocks_per_tile(const DeviceTile& tile);

}  // namespace kintsugi::core::cuda
