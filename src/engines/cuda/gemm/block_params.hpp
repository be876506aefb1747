// Tiles and parameters of the kernels that convert FP32 operands while they multiply (fp16x3-block).
#pragma once

#include <cstdint>

#include "arith/block_arithmetic.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Numbers of k-blocks, leaves and groups in the levels of a sum (arith/block_arithmetic.hpp).
inline constexpr int leaf_blocks = block_leaf / block_depth;
inline constexpr int leaf_halves = block_leaf / half_block_depth;
inline constexpr int group_leaves = block_group / block_leaf;
inline constexpr int segment_groups = block_segment / block_group;

// Tiles of C. Rows may be rows or columns of C. Narrow tiles are multiplied by mma.sync, wide ones by wgmma.
inline constexpr int narrow_rows = 32;
inline constexpr int narrow_columns = 16;
inline constexpr int narrow_warps_with_tma = 8;
// Few enough for two thread blocks to share an SM, and for one to have 99 KiB.
inline constexpr int narrow_warps_without_tma = 4;
inline constexpr int wide_rows = 128;
inline constexpr int wide_threads = 384;
inline constexpr int max_wide_columns = 128;
inline constexpr int max_block_cluster = 4;

// Numbers of a vector by which its elements of C are accepted (BlockCounts), as threads add them up.
struct VectorStatistics {
  std::uint32_t largest;  // field of the exponent of the largest element, in place; that of infinity for NaN
  std::uint32_t zeros;    // elements that are zero, with those after k
  std::uint32_t zero_blocks;   // k-blocks of zeros
  std::uint32_t deep;          // deep elements
  std::uint32_t deep_largest;  // largest field of the k-blocks with deep elements
};

// Coordinates of an operand's region of C in its tensor map.
struct BlockSide {
  std::int32_t is_aligned = 0;  // 1: TMA can load the operand, by the tensor map
  std::int32_t begin = 0;       // first vector
  std::int32_t item = 0;        // of the launch's first batch item
  std::int32_t item_step = 0;
};

// C from the region's first element on, in the terms of the kernels, whose rows may be columns of C.
struct BlockTarget {
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
struct BlockParams {
  std::int32_t swapped = 0;  // 1: rows of the kernel's tiles are columns of C
  std::int32_t blocks = 0;   // k-blocks
  BlockSide sides[2];        // operands of the tile's rows and of its columns
  std::int32_t row_tiles = 0;
  std::int32_t column_tiles = 0;
  Divisor by_row_tiles{1};
  Divisor by_splits{1};
  // Wide tiles: thread blocks that share a tile, and leaves of k for each of them.
  std::int32_t splits = 1;
  std::int32_t leaves = 0;
  float* partial_sums = nullptr;
  VectorStatistics* statistics =
      nullptr;  // of the vectors of each thread block's tile, if they do not form a cluster
  std::uint32_t* counters = nullptr;  // one for each tile; 0 before the launch
  BlockTarget c;
  DeviceReport* report = nullptr;
  BlockUnit unit;   // of the narrow kernels; that of wide ones is BlockUnit{}
  DeviceTile tile;  // tile of the first batch item
};

constexpr int narrow_shared_bytes(int warps, bool columns_along_k) {
  const int columns = columns_along_k ? narrow_columns : 32;
  return warps * (narrow_rows + columns) * block_depth * 4 +
         2 * warps * narrow_columns * (narrow_rows + 1) * 4 + 1024;
}
// FP32 elements of k-blocks that a wide kernel keeps; a tile of 128 columns leaves no place for a second one.
constexpr int wide_buffers(int columns) { return columns < max_wide_columns ? 2 : 1; }
// Memory of a wide kernel for open elements: three half blocks of 128 rows and 64 columns, and four sums of
// each element.
inline constexpr int wide_open_bytes = 3 * (wide_rows + 64) * half_block_depth * 4 + 4 * wide_rows * 64 * 4;
constexpr int wide_shared_bytes(int columns) {
  const int bytes = 2 * 2 * columns * block_depth * 2 +
                    wide_buffers(columns) * (wide_rows + columns) * block_depth * 4 + wide_rows * columns * 4;
  return (bytes < wide_open_bytes ? wide_open_bytes : bytes) + 1024;
}

}  // namespace kintsugi::core::cuda
