// Tiles and parameters of the GEMM kernels for int8 slices with exponents per tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"

namespace kintsugi::core::cuda {

// Vectors that share a tile's exponent: 16 rows of A, 8 columns of B, so that the four elements of a thread
// in a fragment of 16 x 8 of wgmma have one product of weights.
inline constexpr int weighted_tile_rows = 16;
inline constexpr int weighted_tile_columns = 8;

// Tile of a cluster: 256 rows, 128 in each thread block, whose consumer warpgroups have 64 each. The slices
// of the 64 columns are loaded to both blocks. A thread holds 32 registers each of FP32 sums, combined high
// integers and two INT32 accumulators: the weights 2^0 and 2^-7 first, then 2^-14 and 2^-21. With 96 columns
// these would be 192, too many beside those of the epilogue and the half-precision program. m64n64k32 with
// both operands in shared memory reads its 4 KB in the 32 cycles that it takes, so the matrix unit can be
// busy for 4/5 of the time beside the copies into shared memory; conversions leave it less than that.
struct WeightedTile {
  int slices_a;
  int slices_b;

  static constexpr int rows = 128;  // rows of C per thread block
  static constexpr int columns = 64;
  static constexpr int block = 128;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int threads = 384;
  static constexpr int row_panels = rows / weighted_tile_rows;
  static constexpr int column_panels = columns / weighted_tile_columns;

  // Weights of a stage, up to four tiles along k: those of the rows, then from column_weights on of the
  // columns, both aligned for bulk copies.
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
  std::int32_t k_tiles = 0;  // tiles along k in the pipeline's k-blocks, all-zero ones included
  // As in Slices, of the first row and column of the region of C. Weights of the next tile along k are
  // panels_a apart, those of the next batch item panels_a * tiles_of_vector.
  const float* weights_a = nullptr;
  const float* weights_b = nullptr;
  const std::int32_t* failures_a = nullptr;
  const std::int32_t* failures_b = nullptr;
  std::int64_t panels_a = 0;
  std::int64_t panels_b = 0;
  std::int32_t tiles_of_vector = 0;
};

}  // namespace kintsugi::core::cuda
