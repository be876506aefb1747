// Multi-term GEMM kernels of an architecture.
#pragma once

#include <array>
#include <span>

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "formats/format.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// Kernels of one structure, one of each kind for each tile.
struct MultiTermKernels {
  std::span<const Term> terms;
  FormatId format;
  std::span<const MultiTermTile> tiles;
  std::array<TileTimes, 3> MultiTermCosts::*tile_times;  // where a device's costs have the times of `tiles`
  std::array<KernelName, 3> cluster_kernels;
  std::span<const SmallTile> small_tiles;
  std::array<KernelName, 3> small_kernels;
  std::array<KernelName, 3> segmented_kernels;  // small tiles whose segments are computed in parallel
};

}  // namespace kintsugi::core::cuda
