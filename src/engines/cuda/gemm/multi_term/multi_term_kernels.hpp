// The multi-term GEMM kernels of an architecture.
#pragma once

#include <array>
#include <span>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "formats/format.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// The kernels of one structure, with their tiles.
struct MultiTermKernels {
  std::span<const Term> terms;
  FormatId format;
  std::span<const MultiTermTile> tiles;
  std::array<KernelName, 3> kernels;  // of the tiles
  std::span<const SmallTile> small_tiles;
  std::array<KernelName, 3> small_kernels;
  std::array<KernelName, 3>
      segmented_kernels;  // of small tiles whose segments of k have thread blocks of their own
};

}  // namespace kintsugi::core::cuda
