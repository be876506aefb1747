// int8 GEMM kernels of an architecture.
#pragma once

#include <array>
#include <span>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/int8/int8_tiles.hpp"

namespace kintsugi::core::cuda {

struct Int8Kernels {
  std::span<const Int8Tile> tiles;
  std::array<KernelName, 2> residues;  // kernels for the tiles; sums are reduced modulo the groups' moduli
  std::array<KernelName, 2> integers;  // kernels for the tiles; sums are 64-bit integers
};

}  // namespace kintsugi::core::cuda
