// Tiles and parameters of the kernels that convert FP32 operands while they multiply (bf16x6-direct).
#pragma once

#include <array>
#include <cstdint>

#include "arith/direct_arithmetic.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Inner indices that kernels load at once, and numbers of these k-blocks, of steps and of leaves in the lower
// levels of a sum (arith/direct_arithmetic.hpp).
inline constexpr int direct_block = 64;
inline constexpr int block_steps = direct_block / direct_step;
inline constexpr int leaf_blocks = direct_leaf / direct_block;
inline constexpr int leaf_steps = direct_leaf / direct_step;
inline constexpr int group_leaves = direct_group / direct_leaf;

// Levels of a sum from groups on: groups, segments, sections, and all of k. A sum of a level is a chain of
// 2^level_bits sums of the level below; that of all of k has any number.
inline constexpr int level_bits = 5;
inline constexpr int last_level = 3;
static_assert(direct_segment == direct_group << level_bits);
static_assert(direct_section == direct_segment << level_bits);

// log2 of the number of groups in a sum of the level.
KINTSUGI_HOST_DEVICE constexpr int group_bits(int level) {
  return level == last_level ? 31 : level * level_bits;
}

// Number of sums of the level that `groups` groups have.
KINTSUGI_HOST_DEVICE constexpr int sums_of_level(int groups, int level) {
  return level == last_level ? 1 : ((groups - 1) >> group_bits(level)) + 1;
}

// Lowest level of which `groups` groups have one sum.
KINTSUGI_HOST_DEVICE constexpr int level_of_all(int groups) {
  int level = 0;
  while (sums_of_level(groups, level) > 1) ++level;
  return level;
}

// Pieces of a tile that thread blocks share through memory: sums of `level`, of which each thread block has
// one or more. The thread block that comes last to a node, a sum of a level above, adds it up, stores it in
// the place of its first piece, and comes to the node above. No thread block waits.
struct DirectTree {
  std::int32_t groups = 1;  // of all of k
  std::int32_t level = 0;
  std::int32_t block_bits = 0;  // log2 of the groups of a thread block

  // Groups of the node of `level_of_node` that has the group.
  struct Node {
    std::int32_t begin;
    std::int32_t end;
  };
  KINTSUGI_HOST_DEVICE constexpr Node node(int level_of_node, int group) const {
    if (level_of_node == last_level) return {0, groups};
    const int begin = group >> group_bits(level_of_node) << group_bits(level_of_node);
    const int left = groups - begin;
    const int length = 1 << group_bits(level_of_node);
    return {begin, begin + (left < length ? left : length)};
  }
  // Number of thread blocks that come to the node.
  KINTSUGI_HOST_DEVICE constexpr int arrivals(int level_of_node, const Node& node) const {
    const int bits = level_of_node == level + 1 ? block_bits : group_bits(level_of_node - 1);
    return ((node.end - node.begin - 1) >> bits) + 1;
  }
  // Counter of the node, among those of a tile.
  KINTSUGI_HOST_DEVICE constexpr int counter(int level_of_node, const Node& node) const {
    int first = 0;
    for (int above = last_level; above > level_of_node; --above) first += sums_of_level(groups, above);
    return first + (node.begin >> group_bits(level_of_node));
  }
  KINTSUGI_HOST_DEVICE constexpr int counters() const { return counter(level, {0, 0}); }
  KINTSUGI_HOST_DEVICE constexpr int pieces() const { return sums_of_level(groups, level); }

  // Ends the sum of `level_of_sum` with this index in a thread block's run: calls add(place) for the running
  // sums above it, up to the tree's level, and store(place) for the first one that goes on, or for a piece.
  // `block`: index among the thread blocks of the tile; -1: it has the tile to itself, and keeps its sum.
  // `first_running`: lowest level whose running sums have places. `ends_k`: no sum follows.
  template <class Add, class Store>
  KINTSUGI_HOST_DEVICE constexpr void end_sum(int block, int level_of_sum, int index, bool ends_k,
                                              int first_running, const Add& add, const Store& store) const {
    const int blocks_before = block < 0 ? 0 : block;
    KINTSUGI_ROLLED
    while (level_of_sum < level) {
      ++level_of_sum;
      const int child = level_of_sum == last_level ? index : index & ((1 << level_bits) - 1);
      index = level_of_sum == last_level ? 0 : index >> level_bits;
      const int place = level_of_sum == level ? index
                                              : pieces() + blocks_before * (level - first_running) +
                                                    level_of_sum - first_running;
      if (child != 0) add(place);
      const bool is_whole = level_of_sum != last_level && child == (1 << level_bits) - 1;
      if (!is_whole && !ends_k) return store(place);
    }
    if (block >= 0) store(index);
  }

  // Adds up pieces when a thread block has stored its own. Calls comes_last(counter, arrivals) at nodes, and
  // add_up(place, step, count), which begins a new sum, and store(place). True in the thread block that has
  // the tile's sum.
  template <class ComesLast, class AddUp, class Store>
  KINTSUGI_HOST_DEVICE constexpr bool meet(int block, const ComesLast& comes_last, const AddUp& add_up,
                                           const Store& store) const {
    KINTSUGI_ROLLED
    for (int of_node = level + 1;; ++of_node) {
      const Node group_range = node(of_node, block << block_bits);
      const int coming = arrivals(of_node, group_range);
      if (coming > 1 && !comes_last(counter(of_node, group_range), coming)) return false;
      const int place = group_range.begin >> group_bits(level);
      const int bits = group_bits(of_node - 1);
      add_up(place, 1 << (bits - group_bits(level)), ((group_range.end - group_range.begin - 1) >> bits) + 1);
      if (group_range.begin == 0 && group_range.end == groups) return true;
      store(place);
    }
  }
};

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
  // A thread block that does not belong to a cluster keeps sums of the tree's level and of those below it.
  DirectTree tree;
  // For each tile the places of its pieces; then, for each thread block, those of running sums of lower
  // levels.
  float* partial_sums = nullptr;
  std::int32_t places = 0;
  // Only used if thread blocks share tiles through memory; 0 before the launch: for each tile the largest
  // magnitudes of its vectors, and the tree's counters.
  std::uint32_t* largest = nullptr;
  std::uint32_t* counters = nullptr;
  DirectTarget c;
  DeviceReport* report = nullptr;
  DeviceTile tile;  // tile of the first batch item
};

// Lowest level whose running sums are in memory; in wide tiles those of segments are in shared memory.
constexpr int first_level_in_memory(bool is_wide) { return is_wide ? 2 : 1; }

// Slices of the columns of two k-blocks, FP32 elements of two, and the tile's sums of a group and a segment.
inline constexpr int wide_shared_bytes = 2 * 3 * wide_columns * direct_block * 2 +
                                         2 * (wide_rows + wide_columns) * direct_block * 4 +
                                         2 * wide_rows * wide_columns * 4 + 1024;

// FP32 elements of the stages, of each warp in small tiles; in large tiles also the sums of a group.
constexpr int direct_mma_shared_bytes(int edge) {
  const int stage_bytes = 2 * edge * 128;
  return direct_mma_stages * stage_bytes * (edge == large_mma_edge ? 1 : direct_mma_threads / 32) +
         (edge == large_mma_edge ? edge * edge * 4 : 0) + 128;
}

}  // namespace kintsugi::core::cuda
