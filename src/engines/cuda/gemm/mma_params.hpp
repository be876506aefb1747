// Tiles and parameters of multi-term GEMM kernels whose warps multiply by mma.sync.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"

namespace kintsugi::core::cuda {

// Tile of C of a thread block, and the part of it that a warp computes.
struct MmaTile {
  int rows;
  int columns;
  int warp_rows;
  int warp_columns;
  // Rate of an SM that is full of such thread blocks, relative to the other tiles of the family.
  double rate;

  constexpr int threads() const { return rows / warp_rows * (columns / warp_columns) * 32; }
  // Bytes of a k-block of one slice of A and one of B, which a pipeline stage holds.
  constexpr int stage_bytes() const { return (rows + columns) * term_block * 2; }
  // True for a tile that also multiplies k-blocks of four sub-blocks, which products with a small C have.
  constexpr bool is_small() const { return rows * columns < 128 * 64; }
  // Thread blocks that the registers of an SM suffice for.
  constexpr int blocks_of_sm() const { return threads() <= 128 ? 2 : 1; }
  constexpr int sums() const { return rows * columns; }
};

// A k-block of a structure with `slices` slices takes as many stages, and one more is loaded meanwhile.
constexpr int min_mma_stages(int slices) { return slices + 1; }
inline constexpr int max_mma_stages = 5;  // pipeline stages are as many as these, or min_mma_stages()

// Static shared memory of the kernels, and what the driver takes of an SM for each thread block.
inline constexpr int mma_static_bytes = 2048;
inline constexpr int reserved_bytes_of_block = 1024;

// Slices of one operand of all batch items.
struct MmaOperand {
  const std::byte* data = nullptr;  // slice 0 of the first item
  std::int64_t vector_bytes = 0;    // from a vector to the next
  std::int64_t slice_bytes = 0;
  std::int64_t item_bytes = 0;  // 0: all items have the same slices
};

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
