// Tile and parameters of the int8 GEMM kernels, and the order of a cluster's tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/gemm/mma_params.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/step_data.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// Tile of a cluster. Its two thread blocks have the same rows of C. Each loads half of the slices of these
// rows, to both thread blocks. A thread block has two consumer warpgroups, which compute tiles in turn
// (ping-pong): while one multiplies, the other one reduces and stores its sums. The rows of C are operand B
// of the instruction, so a thread's accumulators are adjacent in memory.
//
// Shared memory transfers 128 bytes per cycle. At the full rate of the matrix unit products read 85 bytes per
// cycle and copies write 53.
struct Int8Tile {
  static constexpr int rows = 192;         // rows of C of both thread blocks
  static constexpr int narrow_rows = 176;  // the same of a narrow tile
  static constexpr int block_columns = 128;
  static constexpr int columns = block_columns * gemm_cluster_size;
  static constexpr int block_k = 128;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int stages = 5;
  static constexpr int threads = 384;
  static constexpr int stage_bytes = (rows + block_columns) * block_k;
  static constexpr int narrow_stage_bytes = (narrow_rows + block_columns) * block_k;
  static constexpr int shared_bytes = stages * stage_bytes + 1024;
  static constexpr int copied_rows = rows / gemm_cluster_size;  // vectors of A that a thread block loads
};

// Order of the rows of C in shared memory, for sums that are stored as residues: row 8 p + 2 t + e of 64 rows
// has row 16 t + 2 p + e of C, where p < 8, t < 4 and e < 2. An instruction gives a thread two rows of every
// eight, those with its t (PTX ISA: fragment of D of wgmma). So a thread gets 16 adjacent rows of C, which it
// stores without exchanging any with other threads. A copy has the rows with four values of p.
struct PermutedRows {
  static constexpr int rows_of_thread = 16;
  static constexpr int threads = 4;
  static constexpr int pairs_of_thread = rows_of_thread / 2;
  static constexpr int copied_pairs = 4;
  static constexpr int rows = rows_of_thread * threads;
  static constexpr int copied_rows = 2 * threads * copied_pairs;
};

// Order of the last 48 rows of a narrow tile: row 8 p + 2 t + e has row 12 t + 2 p + e of C, where p < 6. A
// copy has the rows with three values of p.
struct LastPermutedRows {
  static constexpr int offset = Int8Tile::narrow_rows / PermutedRows::rows * PermutedRows::rows;
  static constexpr int rows_of_thread = (Int8Tile::narrow_rows - offset) / PermutedRows::threads;
  static constexpr int pairs_of_thread = rows_of_thread / 2;
  static constexpr int copied_pairs = pairs_of_thread / gemm_cluster_size;
  static constexpr int copied_rows = 2 * PermutedRows::threads * copied_pairs;
};

// Rows of C of a tile.
struct Int8TileRows {
  int first;
  bool is_narrow;  // true: narrow_rows of them
};

// Slices of a term of the schedule. The terms of a group share an accumulator.
struct Int8Term {
  std::int16_t a;
  std::int16_t b;
};

struct Int8Params {
  // In the schedule, groups take the place of batch items, in descending order, since the last groups have
  // the most terms. schedule.k_blocks is the number of k-blocks of one term.
  TileSchedule schedule;
  DeviceCondition condition;
  // If it has a selection, it replaces `condition`, and only the first groups are computed, as many as moduli
  // are selected. The schedule is that of the most moduli.
  SelectedModuli selected;
  std::byte* sums = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int32_t full_tiles = 0;                    // tiles of a column before its narrow ones
  std::uint16_t moduli[max_groups] = {};          // moduli of the groups, if sums are residues
  std::uint16_t first_term[max_groups + 1] = {};  // first term of each group; then the number of terms
  Int8Term terms[max_groups] = {};

  // Rows of tile `index` of a column. If fewer rows are left for the last narrow tile, it begins earlier and
  // computes rows of its predecessor, too: both store the same residues.
  KINTSUGI_HOST_DEVICE Int8TileRows tile_rows(int index) const {
    if (index < full_tiles) return {index * Int8Tile::rows, false};
    const int first = full_tiles * Int8Tile::rows + (index - full_tiles) * Int8Tile::narrow_rows;
    return {std::min(first, static_cast<int>(rows) - Int8Tile::narrow_rows), true};
  }
  // Number of k-blocks of all terms of a group.
  KINTSUGI_HOST_DEVICE int k_blocks(int group) const {
    return schedule.k_blocks * (first_term[group + 1] - first_term[group]);
  }
  // Number of products of int8 in a sum of the group with the most terms, where a term has `k` of them.
  std::int64_t max_products(std::int64_t k) const {
    int most_terms = 0;
    for (int g = 0; g < schedule.items; ++g)
      most_terms = std::max(most_terms, first_term[g + 1] - first_term[g]);
    return most_terms * k;
  }
};

// Tile of a thread block of the kernels that multiply by mma.sync, and the part of a warp. The columns of C
// are the rows of the instruction, so that a thread's accumulators are adjacent in memory (PermutedRows).
struct Int8MmaTile {
  static constexpr int rows = 256;  // of C
  static constexpr int columns = 128;
  static constexpr int warp_rows = 64;
  static constexpr int warp_columns = 64;
  static constexpr int threads = rows / warp_rows * (columns / warp_columns) * 32;
  static constexpr int block_k = 64;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int stage_bytes = (rows + columns) * block_k;
  static constexpr int min_stages = 4;  // pipeline stages are as many as this, or max_stages
  static constexpr int max_stages = 6;
};

struct Int8MmaParams {
  Int8Params int8;  // with thread blocks in the place of clusters; full_tiles is not used
  MmaOperand a;
  MmaOperand b;
  std::int32_t a_vectors = 0;  // vectors of A that its slices have memory for
  std::int32_t stages = 0;
};

// Shape of the sums that are computed; rows, columns and inner indices include padding.
struct Int8Shape {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t k;
  int groups;
  int terms;
};

// True if sums of `products` products of int8 are in the range SumRange::int25.
constexpr bool are_int25_sums(std::int64_t products) {
  constexpr std::int64_t largest_product = 1 << 14;
  constexpr std::int64_t largest_int25 = (1 << 24) - 1;
  return products * largest_product <= largest_int25;
}

// Number of tiles of a column that have Int8Tile::rows rows, for `groups` groups of residues of sums of
// `products` products. The tiles after them are narrow, as many as are needed for tiles without rows that do
// not exist. Tiles of int25 sums are all full: they have few k-blocks, so their time is that of their
// reduction. So are those of many groups: a cluster often has the same rows in all groups, and clusters with
// narrow tiles would get so far ahead of the others that they no longer share slices in L2 (a tenth slower
// with 105 groups; lab/results/log/2026-11-27-strassen-on-residues.md).
constexpr std::int32_t full_int8_tiles(std::int64_t rows, std::int64_t products, int groups) {
  constexpr int many_groups = 24;
  const std::int64_t tiles = divide_up(rows, std::int64_t{Int8Tile::rows});
  constexpr int saved = Int8Tile::rows - Int8Tile::narrow_rows;
  const bool may_be_narrow =
      rows >= Int8Tile::narrow_rows && groups < many_groups && !are_int25_sums(products);
  const std::int64_t narrow = may_be_narrow ? std::min(tiles, (tiles * Int8Tile::rows - rows) / saved) : 0;
  return static_cast<std::int32_t>(tiles - narrow);
}

constexpr TileSchedule int8_tile_schedule(const Int8Shape& shape, std::int32_t clusters) {
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  return make_whole_tile_schedule(count(shape.rows, Int8Tile::rows), count(shape.columns, Int8Tile::columns),
                                  shape.groups, count(shape.k, Int8Tile::block_k), clusters);
}

// Expected time of the products of a shape. A warpgroup begins its next tile when it has stored its last one
// and the other warpgroup has multiplied. So two tiles take the time of their products, or of the products of
// one tile and its reduction, whichever is longer. Clusters have nearly equal shares of the narrow tiles.
constexpr double int8_microseconds(const Int8Shape& shape, const TileTimes& times, std::int32_t clusters) {
  const TileSchedule schedule = int8_tile_schedule(shape, clusters);
  const std::int64_t tiles = divide_up(schedule.tiles(), std::int64_t{schedule.clusters});  // of a cluster
  const double k_blocks = static_cast<double>(schedule.k_blocks) * shape.terms / shape.groups;  // of a tile
  const double narrow = 1.0 - static_cast<double>(full_int8_tiles(
                                  shape.rows, shape.k * shape.terms / shape.groups, shape.groups)) /
                                  schedule.rows;
  constexpr double saved = 1 - static_cast<double>(Int8Tile::narrow_rows) / Int8Tile::rows;
  const double products = k_blocks * times.block * (1 - narrow * saved);
  const double two_tiles = products + std::max(products, times.tile);
  const std::int64_t earlier = tiles - 1;
  return static_cast<double>(earlier / 2) * two_tiles + static_cast<double>(earlier % 2) * products +
         products + times.tile;
}

// Iterates over the tiles of one cluster, in the order of WholeTileScheduler and with the coordinates of
// TileSchedule::coord(), without divisions: these would take as long as a fifth of a tile's reduction.
class Int8TileOrder {
 public:
  // `groups` is the number of groups that are computed, at most schedule.items.
  KINTSUGI_HOST_DEVICE constexpr Int8TileOrder(const TileSchedule& schedule, std::int32_t groups,
                                               std::int32_t cluster)
      : items_(groups), columns_(schedule.columns), tiles_of_item_(schedule.rows * schedule.columns),
        item_step_(schedule.clusters / tiles_of_item_), step_(schedule.clusters % tiles_of_item_),
        item_(cluster / tiles_of_item_), index_(cluster % tiles_of_item_),
        group_(static_cast<std::uint32_t>(TileSchedule::group * schedule.rows)),
        last_width_(static_cast<std::uint32_t>((columns_ - 1) % TileSchedule::group + 1)) {}

  KINTSUGI_HOST_DEVICE constexpr bool has_tile() const { return item_ < items_; }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t group() const { return items_ - 1 - item_; }
  KINTSUGI_HOST_DEVICE constexpr void advance() {
    item_ += item_step_;
    index_ += step_;
    if (index_ < tiles_of_item_) return;
    index_ -= tiles_of_item_;
    ++item_;
  }
  KINTSUGI_HOST_DEVICE constexpr TileCoord coord() const {
    constexpr auto width = static_cast<std::uint32_t>(TileSchedule::group);
    std::uint32_t index_in_group = 0;
    const std::uint32_t first_column =
        group_.quotient(static_cast<std::uint32_t>(index_), index_in_group) * width;
    std::uint32_t row = index_in_group / width;
    std::uint32_t column = index_in_group % width;
    if (first_column + width > static_cast<std::uint32_t>(columns_))
      row = last_width_.quotient(index_in_group, column);
    return {item_, static_cast<std::int32_t>(row), static_cast<std::int32_t>(first_column + column)};
  }

 private:
  std::int32_t items_;
  std::int32_t columns_;
  std::int32_t tiles_of_item_;
  std::int32_t item_step_;  // advance() adds item_step_ items and step_ tiles
  std::int32_t step_;
  std::int32_t item_;
  std::int32_t index_;  // index among the item's tiles
  Divisor group_;       // tiles of a group of columns
  Divisor last_width_;  // columns of the last group
};

}  // namespace kintsugi::core::cuda
