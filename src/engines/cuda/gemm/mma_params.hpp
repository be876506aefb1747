// Tiles and parameters of multi-term GEMM kernels whose warps multiply by mma.sync.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/gemm/mma_tiles.hpp"

namespace kintsugi::core::cuda {

// A k-block of a structure with `slices` slices takes as many stages, and one more is loaded meanwhile.
constexpr int min_mma_stages(int slices) { return slices + 1; }
inline constexpr int max_mma_stages = 5;  // pipeline stages are as many as these, or min_mma_stages()

// Static shared memory of the kernels, and what the driver takes of an SM for each thread block.
inline constexpr int mma_static_bytes = 2048;
inline constexpr int reserved_bytes_of_block = 1024;

struct MmaParams {
  DeviceTile tile;        // MultiTermParams::tile
  TileSchedule schedule;  // of make_whole_tile_schedule(); a thread block takes the place of a cluster
  MmaOperand a;
  MmaOperand b;
  std::int32_t segment_blocks = 0;  // MultiTermParams::segment_blocks
  std::int32_t sub_blocks = 1;      // sub-blocks (KSubBlock) of a k-block: 1, 2 or 4
  std::int32_t stages = 0;
  float rescale = 1;
  // Sums of earlier segments of k of every thread block's tile; not used if k is one segment.
  float* segment_sums = nullptr;
};

}  // namespace kintsugi::core::cuda
