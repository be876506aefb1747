// The kernels of FP64 products on tensor cores, and the product itself.
#pragma once

#include <array>
#include <span>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/dmma/dmma_tiles.hpp"

namespace kintsugi::core::cuda {

// Of one type of elements. The operand of the matrix unit's columns lies along k or in panels of its vectors
// (gemm/dmma/operand_copies.cuh); complex elements only along k.
struct DmmaKernels {
  std::span<const DmmaTile> tiles;
  std::span<const KernelName> along_k;  // one a tile
  std::span<const KernelName> in_panels;
};

// Expected time of a product, in units of the smallest tiles' time, an inner index.
double dmma_time(const DmmaKernels& kernels, const NativeShape& shape);

// C = alpha A B + beta C of the tile's batch items, where its condition holds. Elements that underflow or
// overflow on the way may have spoiled are computed again.
void multiply_by_dmma(const Queue& queue, const DmmaKernels& kernels, const DeviceTile& tile);

}  // namespace kintsugi::core::cuda
