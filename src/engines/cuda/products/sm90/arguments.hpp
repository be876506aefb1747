// What the product kernels of this folder are handed.
#pragma once

#include <cstdint>

#include "engines/cuda/products/sm90/walk.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// CUtensorMap of the driver.
struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

// What a cluster of two blocks of threads computes at once, and in how many inner indices a block of k, of which a pipeline
// stage holds one.
inline constexpr int term_tile_rows = 256;
inline constexpr int term_block = 64;
// Schedule::k_segment of all structures that have kernels, before it is shortened.
inline constexpr int term_segment = 8192;
inline constexpr int term_threads = 384;
inline constexpr int blocks_of_cluster = 2;  // of threads
// Columns of a tile, and places in shared memory for every slice, each of half of the tile's rows and all columns. Wide
// tiles read less shared memory for their work; narrow ones are for products that have few tiles.
struct TermTile {
  int columns;
  int places[3];
  // A's first slices, which most terms read, go to the products by way of registers: an eighth less of shared memory's
  // time.
  bool high_in_registers;
  // Measured on an H200, of a cluster: microseconds of a block of k, and of a tile besides.
  float block_time;
  float tile_time;

  constexpr int place_bytes() const { return (term_tile_rows / 2 + columns) * term_block * 2; }
  constexpr int shared_bytes() const { return (places[0] + places[1] + places[2]) * place_bytes() + 1024; }
};
inline constexpr int most_tile_columns = 192;

// More than any device has; the H200 has 66.
inline constexpr int most_clusters = 128;
inline constexpr int counters_of_tile = 4;  // one for each of its warpgroups

// Slices of A and B as one term after the other takes them, and what becomes of the sums.
struct TermProducts {
  DeviceTile
      tile;  // of the first entry; choices, and ranges of operands that differ, of the others lie behind its own
  Walk walk;
  bool shares_a = false;  // all entries have the same slices
  bool shares_b = false;
  std::int32_t segment_blocks = 0;  // blocks of k in a segment (Schedule::segment_length)
  std::int32_t sums_of_block = 1;   // sums in which a block of k leaves the matrix unit: 1 or 2
  float* partial_sums = nullptr;    // those that one cluster hands to the next
  // Sums of earlier segments: of the tile that each cluster works on, then of the tiles that have parts. Where k is one
  // segment there are none.
  float* segment_sums = nullptr;
  std::uint32_t* parts_added = nullptr;     // of every tile that has parts; 0 before the launch
  std::uint32_t* clusters_begun = nullptr;  // where tiles have parts; 0 before the launch
  float rescale = 1;
};

// Where there are few such tiles: smaller ones, each of one block of threads that has no other. Two neighbours along the
// rows are a cluster, and share the columns' slices.
inline constexpr int small_tile_rows = 64;
inline constexpr int small_tile_threads = 160;
inline constexpr int most_stages = 8;

struct SmallTile {
  int columns;
  // Measured on an H200: microseconds of a block of k where a multiprocessor has one block of threads, and of each where
  // it has more.
  float alone_time;
  float block_time;

  // Of a block of k.
  constexpr int stage_bytes(int slices) const {
    return slices * (small_tile_rows + columns) * term_block * 2;
  }
  // Registers hold sums of two blocks of k of narrow tiles: the next is multiplied before the last one's place is free.
  constexpr int least_stages() const { return columns > 64 ? 1 : 2; }
  // Wide tiles are for products whose k is one segment: a thread has no registers for another 64 sums.
  constexpr bool adds_segments() const { return columns <= 64; }
  constexpr int shared_bytes(int slices, int stages) const { return stages * stage_bytes(slices) + 1024; }
};

struct SmallTileProducts {
  DeviceTile tile;  // as of TermProducts
  std::int32_t row_pairs = 0;
  std::int32_t columns = 0;         // of tiles
  std::int32_t blocks = 0;          // of k
  std::int32_t segment_blocks = 0;  // as of TermProducts
  std::int32_t sums_of_block = 1;   // 1, 2 or 4
  std::int32_t stages = 0;
  bool shares_a = false;
  bool shares_b = false;
  bool swapped = false;  // a is the schedule's b, whose terms are multiplied in the same order
  float rescale = 1;
};

}  // namespace kintsugi::core::cuda
