// Tiles and parameters of the GEMM kernels for int8 slices with exponents per tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"

namespace kintsugi::core::cuda {

// Vectors of a tile, which share an exponent: 16 rows of A or 8 columns of B. So all four elements that a
// thread has in a 16 x 8 fragment of wgmma have the same product of weights.
inline constexpr int weighted_tile_rows = 16;
inline constexpr int weighted_tile_columns = 8;

// Tile of a cluster: 256 rows, 128 in each thread block, 64 in each consumer warpgroup. The slices of the
// columns are loaded into both thread blocks. The instruction m64nNk32 with both operands in shared memory
// reads 2 KiB and 32 N bytes in N / 2 cycles, and shared memory transfers 128 bytes a cycle. With 128 columns
// these reads and the copies into shared memory take less time than the products. A thread needs N / 2
// registers for FP32 sums, as many for high values, and as many for every int32 accumulator.
struct WeightedTile {
  int slices_a;
  int slices_b;
  int columns;

  static constexpr int rows = 128;   // rows of C per thread block
  static constexpr int block = 128;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int threads = 384;
  static constexpr int row_panels = rows / weighted_tile_rows;

  // Weights in a stage, of up to four tiles along k. The weights of the rows come first, and those of the
  // columns begin at byte column_weights. Both have the alignment that bulk copies demand.
  static constexpr int column_weights = 128;
  static constexpr int weight_bytes = 384;

  static constexpr int max_shared_bytes = 227 * 1024;
  static constexpr int max_static_bytes = 1200;  // barriers and parameters of the epilogue

  static constexpr int block_k_tiles(int depth) { return block / depth; }  // tiles along k in a k-block

  constexpr int column_panels() const { return columns / weighted_tile_columns; }
  constexpr int a_bytes() const { return rows * block; }
  constexpr int b_bytes() const { return columns * block; }
  constexpr int stage_bytes() const { return slices_a * a_bytes() + slices_b * b_bytes(); }
  constexpr int stages() const {
    return std::min(4, (max_shared_bytes - max_static_bytes - 1024) / (stage_bytes() + weight_bytes));
  }
  constexpr int shared_bytes() const { return stages() * (stage_bytes() + weight_bytes) + 1024; }
};

// Tile of C of the kernels for tiles of `depth` inner indices. Tiles of depth 32 are multiplied in two
// accumulators, for which registers suffice with 96 columns. Deeper tiles are multiplied in one accumulator.
// With four slices of each side, shared memory suffices for 96 columns.
constexpr WeightedTile weighted_tile(int slices_a, int slices_b, int depth) {
  return {slices_a, slices_b, depth == 32 || slices_a + slices_b > 6 ? 96 : 128};
}

// Number of sums that one panel of rows and one panel of columns have, for tiles that fail Eq. 9
// (FailingSums).
inline constexpr int failing_sums_of_panels = weighted_tile_rows * weighted_tile_columns;

struct WeightedTileParams {
  // Tile of C of the first batch item. Selections of all items are contiguous, and so are the ranges of
  // operands that differ between items.
  DeviceTile tile;
  TileSchedule schedule;
  bool shares_a = false;  // all batch items have the same slices
  bool shares_b = false;
  // Slices::tile_weights and Slices::tile_failures, from the first row or column of the region of C on. The
  // distance of weights is panels_a or panels_b from a tile to the next tile along k, and tiles_of_vector
  // times as much from a batch item to the next one.
  const float* weights_a = nullptr;
  const float* weights_b = nullptr;
  const std::int32_t* failures_a = nullptr;
  const std::int32_t* failures_b = nullptr;
  std::int64_t panels_a = 0;
  std::int64_t panels_b = 0;
  std::int32_t tiles_of_vector = 0;
  std::int32_t block_k_tiles = 0;  // tiles along k in a k-block
  // Sums of products of tiles that fail Eq. 9 (FailingSums), for panels that have such tiles.
  float* failing_sums = nullptr;
};

// Rows and columns of C of a thread block that multiplies the tiles that fail Eq. 9.

inline constexpr int failing_rows = 64;
inline constexpr int failing_columns = 64;
inline constexpr int failing_threads = 64;
inline constexpr int failing_blocks = 8;  // per SM
inline constexpr int failing_shared_bytes = 17 * 1024;

}  // namespace kintsugi::core::cuda
