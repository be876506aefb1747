// Tiles and parameters of the kernels that convert FP32 operands while they multiply (bf16x6-direct).
#pragma once

#include <array>
#include <cstdint>

#include "arith/direct_arithmetic.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Inner indices that kernels load at once, and numbers of these k-blocks, of steps, leaves and groups in the
// levels of a sum (arith/direct_arithmetic.hpp).
inline constexpr int direct_block = 64;
inline constexpr int block_steps = direct_block / direct_step;
inline constexpr int leaf_blocks = direct_leaf / direct_block;
inline constexpr int leaf_steps = direct_leaf / direct_step;
inline constexpr int group_leaves = direct_group / direct_leaf;
inline constexpr int segment_groups = direct_segment / direct_group;

// Tiles of C by wgmma. Rows may be rows or columns of C.
inline constexpr int wide_rows = 128;
inline constexpr int wide_columns = 64;
inline constexpr int wide_threads = 384;
inline constexpr int max_direct_cluster = 4;

// Tiles of C by mma.sync: 64 x 64, or 32 rows and 16 or 32 columns whose leaves the warps divide.
inline constexpr int direct_mma_threads = 128;
inline constexpr int direct_mma_stages = 3;
inline constexpr int large_mma_edge = 64;
inline constexpr int small_mma_edge = 32;

// Tiles of C, of whose kernels a family has the first ones or all. Those of 128 rows are multiplied by wgmma
// and loaded by TMA, the others by mma.sync.
struct DirectTileShape {
  int rows;
  int columns;
  int blocks_of_sm;  // thread blocks that an SM holds

  constexpr bool is_wide() const { return rows == wide_rows; }
};
inline constexpr std::array<DirectTileShape, 4> direct_tiles{
    {{32, 16, 2}, {32, 32, 2}, {64, 64, 2}, {wide_rows, wide_columns, 1}}};

// Coordinates of an operand's region of C in its tensor map.
struct DirectSide {
  std::int32_t is_aligned = 0;  // 1: TMA can load the operand, by the tensor map
  std::int32_t begin = 0;       // first vector
  std::int32_t item = 0;        // of the launch's first batch item
  std::int32_t item_step = 0;
};

// C from the region's first element on, in the terms of the kernels, whose rows may be columns of C.
struct DirectTarget {
  void* data = nullptr;  // of the launch's first batch item; if `by_pointer`, an array of addresses
  std::int32_t by_pointer = 0;
  std::int64_t offset = 0;  // elements from an item's address on
  std::int64_t item_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

// Members that a kernel reads before its first load come first.
struct DirectParams {
  std::int32_t swapped = 0;       // 1: rows of the kernel's tiles are columns of C
  std::int32_t blocks = 0;        // k-blocks
  DirectSide sides[2];            // operands of the tile's rows and of its columns
  std::int32_t tile_columns = 0;  // of tiles by mma.sync
  std::int32_t row_tiles = 0;
  std::int32_t column_tiles = 0;
  Divisor by_row_tiles{1};
  Divisor by_splits{1};
  // Thread blocks that share a tile, and leaves of k for each of them.
  std::int32_t splits = 1;
  std::int32_t leaves = 0;
  float* partial_sums = nullptr;
  // Largest magnitudes of the vectors of each thread block's tile, if they do not form a cluster.
  std::uint32_t* largest = nullptr;
  std::uint32_t* counters = nullptr;  // one for each tile; 0 before the launch
  DirectTarget c;
  DeviceReport* report = nullptr;
  DeviceTile tile;  // tile of the first batch item
};

// Slices of the columns of two k-blocks, FP32 elements of two, and the tile's sums.
inline constexpr int wide_shared_bytes = 2 * 3 * wide_columns * direct_block * 2 +
                                         2 * (wide_rows + wide_columns) * direct_block * 4 +
                                         wide_rows * wide_columns * 4 + 1024;

// FP32 elements of the stages, of each warp in small tiles; in large tiles also the sums of a group.
constexpr int direct_mma_shared_bytes(int edge) {
  const int stage_bytes = 2 * edge * 128;
  return direct_mma_stages * stage_bytes * (edge == large_mma_edge ? 1 : direct_mma_threads / 32) +
         (edge == large_mma_edge ? edge * edge * 4 : 0) + 128;
}

}  // namespace kintsugi::core::cuda
