// Parameters of the kernels that multiply FP32 operands in one launch (scheme fp16x3-block).
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// The order of additions over k, from 0 at each level: a leaf adds 4 k-blocks, a group 4 leaves, a segment 8
// groups, and the sum of an element its segments.
inline constexpr int split_block = 64;
inline constexpr int leaf_blocks = 4;
inline constexpr int group_leaves = 4;
inline constexpr int segment_groups = 8;
inline constexpr int leaf_length = split_block * leaf_blocks;
inline constexpr int segment_leaves = group_leaves * segment_groups;

struct BlockParams {
  DeviceTile tile;  // operands and C of the first batch item; all of C
  std::int32_t swapped = 0;    // 1: the kernel's rows are the columns of C
  std::int32_t blocks = 0;     // k-blocks
  std::int32_t by_tma[2] = {};  // 1 if tensor maps load the operand: rows' side, columns' side
  std::int32_t row_tiles = 0;
  std::int32_t column_tiles = 0;
  std::int32_t splits = 1;       // thread blocks that divide the segments of a tile
  std::int32_t leaves = 0;       // leaves of k for each of them
  float* partial_sums = nullptr;  // sums of segments or leaves
  void* statistics = nullptr;     // VectorStatistics of each split's tile
  std::uint32_t* counters = nullptr;  // one for each tile; 0 before and after the launch
};

}  // namespace kintsugi::core::cuda
