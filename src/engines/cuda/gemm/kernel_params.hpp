// Tiles and parameters of the multi-term GEMM kernels.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/mma_tiles.hpp"
#include "engines/cuda/gemm/tile_scheduler.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Description of a tensor in device memory, which bulk copies (ptx/tma.cuh) take: the driver's CUtensorMap.
struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

inline constexpr int gemm_cluster_size = 2;                          // thread blocks per cluster
inline constexpr int all_of_cluster = (1 << gemm_cluster_size) - 1;  // mask of a cluster's thread blocks
inline constexpr int term_tile_rows = 256;                           // rows of C per cluster
// Schedule::k_segment, before it is shortened, of all structures that have kernels.
inline constexpr int term_segment = 8192;
inline constexpr int term_threads = 384;

// Sub-block `Index` of a k-block that is divided into `Count` sub-blocks. The sums of each sub-block are
// added outside the matrix unit.
template <int Count, int Index>
struct KSubBlock {
  static constexpr int steps = term_block / 16 / Count;  // wgmma instructions per term
  static constexpr int first_step = Index * steps;
  static constexpr bool begins_block = Index == 0;
  static constexpr bool ends_block = Index + 1 == Count;
};

// Tile of a cluster, and the number of pipeline stages of each slice. A stage has half of the tile's rows and
// all of its columns. Wide tiles read less shared memory per multiplication. Narrow tiles are for products
// that have few tiles.
struct MultiTermTile {
  int columns;
  int stages[3];
  // True if the first slice of A is loaded into registers. Most terms read it, so this saves an eighth of the
  // time of shared memory.
  bool high_in_registers;

  constexpr int stage_bytes() const { return (term_tile_rows / 2 + columns) * term_block * 2; }
  constexpr int shared_bytes() const { return (stages[0] + stages[1] + stages[2]) * stage_bytes() + 1024; }
};
inline constexpr int max_tile_columns = 192;

// Bound of the number of clusters that a device holds; 132 SMs hold 66.
inline constexpr int max_clusters = 128;
inline constexpr int counters_of_tile = 4;  // one for each consumer warpgroup of the cluster

struct MultiTermParams {
  // Tile of C of the first batch item. Selections of all items are contiguous, and so are the ranges of
  // operands that differ between items.
  DeviceTile tile;
  TileSchedule schedule;
  bool shares_a = false;  // true: all batch items have the same slices
  bool shares_b = false;
  std::int32_t segment_blocks = 0;  // k-blocks of a segment (Schedule::segment_length)
  std::int32_t sub_blocks = 1;      // sub-blocks (KSubBlock) of a k-block: 1 or 2
  float* partial_sums = nullptr;    // memory in which a cluster sends its sums to the next cluster
  // Sums of earlier segments of k; not used if k is one segment. Each cluster has one tile, that on which it
  // works. The tiles that are split along k follow.
  float* segment_sums = nullptr;
  // counters_of_tile counters for each tile that is split along k. They must be 0 before the launch.
  std::uint32_t* k_parts_added = nullptr;
  std::uint32_t* clusters_begun = nullptr;  // counter of number_cluster(); used if tiles are split along k
  float rescale = 1;
};

// Small tiles, each for one thread block, for products that have few larger tiles. Two tiles of neighboring
// rows form a cluster and share the slices of the columns.
inline constexpr int small_tile_rows = 64;
inline constexpr int small_tile_threads = 160;
inline constexpr int max_stages = 8;  // pipeline stages of a small tile
// Segments of k can be computed in parallel, each by a thread block of its own. Largest number of tiles of C
// for which this is done, and largest number of bytes of their sums.
inline constexpr std::int64_t max_segmented_tiles = 1024;
inline constexpr std::int64_t max_segment_bytes = std::int64_t{64} << 20;

struct SmallTile {
  int columns;

  constexpr int stage_bytes(int slices) const {
    return slices * (small_tile_rows + columns) * term_block * 2;
  }
  // Smallest number of pipeline stages. Narrow tiles have registers for the accumulators of two k-blocks:
  // they multiply the next k-block before the stage of the last one is free.
  constexpr int min_stages() const { return columns > 64 ? 1 : 2; }
  // True if one thread block can compute several segments of k. With wide tiles a thread has no registers for
  // the sums of another segment.
  constexpr bool adds_segments() const { return columns <= 64; }
  constexpr int shared_bytes(int slices, int stages) const { return stages * stage_bytes(slices) + 1024; }
};

struct SmallTileParams {
  DeviceTile tile;             // MultiTermParams::tile
  std::int32_t row_pairs = 0;  // pairs of rows of tiles
  std::int32_t columns = 0;    // columns of tiles
  std::int32_t k_blocks = 0;
  std::int32_t segment_blocks = 0;  // MultiTermParams::segment_blocks
  std::int32_t segments = 1;        // number of segments of k that are computed in parallel; 1: one by one
  std::int32_t sub_blocks = 1;      // sub-blocks of a k-block: 1, 2 or 4
  std::int32_t stages = 0;
  bool shares_a = false;
  bool shares_b = false;
  bool swapped = false;  // true: the operands are exchanged; terms keep the schedule's order
  float rescale = 1;
  // Only used if segments are computed in parallel: the sums of every segment of each tile, and for each tile
  // the number of segments that have been stored. These numbers must be 0 before the launch.
  float* segment_sums = nullptr;
  std::uint32_t* segments_done = nullptr;
};

}  // namespace kintsugi::core::cuda
