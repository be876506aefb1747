// Kernels of FP64 products on tensor cores, and their launch.
#pragma once

#include <array>
#include <span>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/dmma/dmma_tiles.hpp"

namespace kintsugi::core::cuda {

struct Costs;

// Kernels of one element type. The operand of the matrix unit's columns is stored in shared memory along k or
// in panels of its vectors (gemm/dmma/operand_copies.cuh); complex elements only along k.
struct DmmaKernels {
  std::span<const DmmaTile> tiles;
  std::span<const KernelName> along_k;  // one per tile
  std::span<const KernelName> in_panels;
};

// Expected time of a product without its launch and its writes of C.
double dmma_time(const DmmaKernels& kernels, const NativeShape& shape, const Costs& costs);

// Computes C = alpha A B + beta C for the tile's batch items whose condition holds. Elements that
// intermediate underflow or overflow may have spoiled are recomputed.
void multiply_by_dmma(const Queue& queue, const DmmaKernels& kernels, const DeviceTile& tile);

}  // namespace kintsugi::core::cuda
