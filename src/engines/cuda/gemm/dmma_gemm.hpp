// Kernels of FP64 products on tensor cores, and their launch.
#pragma once

#include <array>
#include <span>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/dmma_tiles.hpp"

namespace kintsugi::core::cuda {

struct Costs;

// Kernels of one element type, one for each tile. In shared memory the operand of the matrix unit's columns
// is stored along k or in panels: a line has a vector's inner indices, or 16 vectors at one inner index.
// Complex elements are only stored along k.
struct DmmaKernels {
  std::span<const DmmaTile> tiles;
  std::span<const KernelName> along_k;
  std::span<const KernelName> in_panels;  // empty for complex elements
};

// Expected time of a product without its launch and its writes of C.
double dmma_time(const DmmaKernels& kernels, const NativeShape& shape, const Costs& costs);

// Computes C = alpha A B + beta C for the tile's batch items whose condition holds.
void multiply_by_dmma(const Queue& queue, const DmmaKernels& kernels, const DeviceTile& tile);

}  // namespace kintsugi::core::cuda
