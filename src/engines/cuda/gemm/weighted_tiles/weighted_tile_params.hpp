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

// Tile of a cluster: 256 rows, 128 in each thread block, whose consumer warpgroups have 64 each. The slices
// of the columns are loaded to both blocks. m64nNk32 with both operands in shared memory reads 2 KB and 32 N
// bytes in N / 2 cycles; shared memory transfers 128 bytes a cycle. With 128 columns these reads and the
// copies into shared memory take less time than the products. A thread holds N / 2 registers each of FP32
// sums, of high values and of every int32 accumulator.
struct WeightedTile {
  int slices_a;
  int slices_b;
  int columns;

  static constexpr int rows = 128;   // rows of C per thread block
  static constexpr int block = 128;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int threads = 384;
  static constexpr int row_panels = rows / weighted_tile_rows;

  // Weights in a stage, for up to four tiles along k: first those of the rows, then from byte column_weights
  // on those of the columns. Both are aligned as bulk copies demand.
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

// Tile of C of the kernels for tiles of `depth` inner indices. Those of 32 are multiplied in two accumulators
// (registers suffice for 96 columns), deeper ones in one accumulator. Four slices of each side leave shared
// memory for 96 columns.
constexpr WeightedTile weighted_tile(int slices_a, int slices_b, int depth) {
  return {slices_a, slices_b, depth == 32 || slices_a + slices_b > 6 ? 96 : 128};
}

// Sums of a panel of rows and one of columns of tiles that fail Eq. 9 (FailingSums).
inline constexpr int failing_sums_of_panels = weighted_tile_rows * weighted_tile_columns;

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
  // Sums of products of tiles that fail Eq. 9 (FailingSums), for the panels that have such tiles.
  float* failing_sums = nullptr;
};

}  // namespace kintsugi::core::cuda
