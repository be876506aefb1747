// Tiles and parameters of the GEMM kernels for int8 slices with exponents per tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"

namespace kintsugi::core::cuda {

// Vectors of a tile, which share an exponent: 16 rows of A or 8 columns of B. So the four elements of a
// thread in a fragment of 16 x 8 of wgmma have the same product of weights.
inline constexpr int weighted_tile_rows = 16;
inline constexpr int weighted_tile_columns = 8;

// Tile of a cluster: 64 columns and 256 rows, of which each thread block has 128 and each of its consumer
// warpgroups 64. The slices of the columns are loaded to both thread blocks.
//
// A thread holds 32 registers each of FP32 sums, of the combined high integers and of two INT32 accumulators,
// for products of weights 2^0 and 2^-7 first and then for those of 2^-14 and 2^-21. With 96 columns these
// would be 192 registers, too many together with those of the epilogue and the half-precision program. The
// instruction m64n64k32 with both operands in shared memory reads its 4 KB in the 32 cycles that it takes.
// With the copies into shared memory the matrix unit can therefore be busy for 4/5 of the time; because of
// the conversions it is busy for less.
struct WeightedTile {
  int slices_a;
  int slices_b;

  static constexpr int rows = 128;  // rows of C per thread block
  static constexpr int columns = 64;
  static constexpr int block = 128;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int threads = 384;
  static constexpr int row_panels = rows / weighted_tile_rows;
  static constexpr int column_panels = columns / weighted_tile_columns;

  // Weights in a stage, for up to four tiles along k: first those of the rows, then from byte column_weights
  // on those of the columns. Both are aligned as bulk copies demand.
  static constexpr int column_weights = 128;
  static constexpr int weight_bytes = 256;

  static constexpr int max_shared_bytes = 227 * 1024;
  static constexpr int max_static_bytes = 1280;  // barriers and parameters of the epilogue

  static constexpr int block_k_tiles(int depth) { return block / depth; }  // tiles along k in a k-block

  constexpr int a_bytes() const { return rows * block; }
  constexpr int b_bytes() const { return columns * block; }
  constexpr int stage_bytes() const { return slices_a * a_bytes() + slices_b * b_bytes(); }
  constexpr int stages() const {
    return std::min(4, (max_shared_bytes - max_static_bytes - 1024) / (stage_bytes() + weight_bytes));
  }
  constexpr int shared_bytes() const { return stages() * (stage_bytes() + weight_bytes) + 1024; }
};

struct WeightedTileParams {
  // Tile of C of the first batch item. Selections, and ranges of operands that differ, are stored
  // contiguously for all items.
  DeviceTile tile;
  TileSchedule schedule;
  bool shares_a = false;  // all batch items have the same slices
  bool shares_b = false;
  std::int32_t k_tiles = 0;  // tiles along k in the pipeline's k-blocks, those of padding included
  // Slices::tile_weights and Slices::tile_failures, from the first row or column of the region of C on.
  // Weights of the next tile along k are panels_a (panels_b) further on, those of the next batch item
  // tiles_of_vector times as far.
  const float* weights_a = nullptr;
  const float* weights_b = nullptr;
  const std::int32_t* failures_a = nullptr;
  const std::int32_t* failures_b = nullptr;
  std::int64_t panels_a = 0;
  std::int64_t panels_b = 0;
  std::int32_t tiles_of_vector = 0;
};

}  // namespace kintsugi::core::cuda
