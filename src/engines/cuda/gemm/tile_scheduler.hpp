// Tile scheduler of persistent kernels. It assigns tiles of C, or parts of k of a tile, to
// clusters, in an order. A cluster may compute the first part of k of a tile and send its partial sums to the
// cluster that computes the next part. So sums are always added in ascending k, and the bits do not depend on
// the number of clusters.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::core::cuda {

// Division by a number that is the same for many dividends.
class Divisor {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit Divisor(std::uint32_t divisor)
      : divisor_(divisor), reciprocal_(~0U / divisor) {}

  KINTSUGI_HOST_DEVICE constexpr std::uint32_t quotient(std::uint32_t dividend,
                                                        std::uint32_t& remainder) const {
    auto quotient = static_cast<std::uint32_t>(std::uint64_t{dividend} * reciprocal_ >> 32);
    remainder = dividend - quotient * divisor_;
    if (remainder >= divisor_) {  // the reciprocal is rounded down: the quotient is right or one too small
      remainder -= divisor_;
      ++quotient;
    }
    return quotient;
  }

 private:
  std::uint32_t divisor_;
  std::uint32_t reciprocal_;
};

// Work of a cluster: a tile of C, or one part of k of a tile that is split along k.
struct WorkTile {
  std::int32_t tile = 0;  // index among the tiles of all batch items
  std::int32_t k_part = 0;
};

struct TileCoord {
  std::int32_t item = 0;  // batch item
  std::int32_t row = 0;   // row of tiles
  std::int32_t column = 0;
};

// Assignment of tiles to clusters. Whole tiles go to the clusters in turn, wave by wave. If the last wave
// would leave clusters idle, its tiles are split along k. Then the clusters are divided into as many ranges
// as a tile has parts. Clusters of range p compute part p of k of all split tiles, and each of them computes
// tiles_of_k_part_cluster of these parts. Range 0 computes its parts before all waves, the last range after
// all waves, and the ranges between them between waves. So a cluster rarely has to wait for the part before
// its own.
//
// No deadlock: part p of a tile is computed by a cluster with a higher number than the cluster of part p - 1,
// and clusters are numbered in the order in which they begin. So a cluster only waits for clusters that began
// before it, and the first cluster waits for none. Therefore every product ends, however few clusters the
// device holds at a time.
struct TileSchedule {
  std::int32_t rows = 0;  // number of rows of tiles
  std::int32_t columns = 0;
  std::int32_t items = 1;
  std::int32_t k_blocks = 0;
  std::int32_t clusters = 1;
  std::int32_t waves = 0;                    // number of waves of whole tiles
  std::int32_t k_parts = 1;                  // number of parts of a split tile
  std::int32_t tiles_of_k_part_cluster = 1;  // number of parts that a cluster computes
  std::int32_t k_part_clusters = 1;          // number of clusters of a range

  // Number of columns of tiles in a group. Clusters compute a group row by row, so that the operands of these
  // columns and of about as many rows stay in L2.
  static constexpr std::int32_t group = 8;

  KINTSUGI_HOST_DEVICE constexpr std::int64_t tiles() const { return std::int64_t{rows} * columns * items; }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t whole_tiles() const { return waves * clusters; }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t split_tiles() const {
    return static_cast<std::int32_t>(tiles()) - whole_tiles();
  }

  // Batch item, row and column of a work tile. Successive tiles are neighbors in a group of columns.
  KINTSUGI_HOST_DEVICE constexpr TileCoord coord(const WorkTile& work_tile) const {
    const std::int32_t index_in_item = work_tile.tile % (rows * columns);
    const std::int32_t first_column = index_in_item / (group * rows) * group;
    const std::int32_t width = columns - first_column < group ? columns - first_column : group;
    const std::int32_t index_in_group = index_in_item - first_column * rows;
    return {work_tile.tile / (rows * columns), index_in_group / width, first_column + index_in_group % width};
  }

  // Index of the tile among the split tiles; negative for a whole tile.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t split_index(const WorkTile& work_tile) const {
    return work_tile.tile - whole_tiles();
  }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t k_parts_of(const WorkTile& work_tile) const {
    return split_index(work_tile) < 0 ? 1 : k_parts;
  }
  KINTSUGI_HOST_DEVICE constexpr bool receives_partial_sums(const WorkTile& work_tile) const {
    return work_tile.k_part > 0;
  }
  KINTSUGI_HOST_DEVICE constexpr bool sends_partial_sums(const WorkTile& work_tile) const {
    return work_tile.k_part + 1 < k_parts_of(work_tile);
  }
  // First k-block of a work tile; end_block() is the one after its last.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t first_block(const WorkTile& work_tile) const {
    return work_tile.k_part == 0 ? 0 : work_tile.k_part * k_blocks / k_parts;
  }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t end_block(const WorkTile& work_tile) const {
    return sends_partial_sums(work_tile) ? (work_tile.k_part + 1) * k_blocks / k_parts : k_blocks;
  }
};

// Number of k-blocks that take as long as sending partial sums, of which 200 KB are written and read.
inline constexpr std::int32_t k_blocks_of_partial_sums = 4;
inline constexpr std::int32_t max_k_parts = 4;

// Returns the schedule with k split into `k_parts` parts for the tiles of its last wave.
constexpr TileSchedule with_k_parts(TileSchedule schedule, std::int32_t k_parts) {
  schedule.k_parts = k_parts;
  if (schedule.split_tiles() == 0) return schedule;
  schedule.tiles_of_k_part_cluster =
      (schedule.split_tiles() * k_parts + schedule.clusters - 1) / schedule.clusters;
  schedule.k_part_clusters =
      (schedule.split_tiles() + schedule.tiles_of_k_part_cluster - 1) / schedule.tiles_of_k_part_cluster;
  return schedule;
}

// Time that a cluster takes for its parts of split tiles, in k-blocks.
constexpr std::int32_t k_blocks_of_split_tiles(const TileSchedule& schedule) {
  if (schedule.split_tiles() == 0) return 0;
  return schedule.tiles_of_k_part_cluster *
         (schedule.k_blocks / schedule.k_parts + (schedule.k_parts > 1 ? k_blocks_of_partial_sums : 0));
}

// Returns a schedule without split tiles.
constexpr TileSchedule make_whole_tile_schedule(std::int32_t rows, std::int32_t columns, std::int32_t items,
                                                std::int32_t k_blocks, std::int32_t clusters) {
  TileSchedule schedule{
      .rows = rows, .columns = columns, .items = items, .k_blocks = k_blocks, .clusters = clusters};
  if (schedule.tiles() == 0) return schedule;
  if (schedule.tiles() <= clusters) schedule.clusters = static_cast<std::int32_t>(schedule.tiles());
  schedule.waves = static_cast<std::int32_t>(schedule.tiles() / schedule.clusters);
  return with_k_parts(schedule, 1);
}

// Returns the schedule whose clusters end first. Tiles of its last wave may be split along k.
constexpr TileSchedule make_tile_schedule(std::int32_t rows, std::int32_t columns, std::int32_t items,
                                          std::int32_t k_blocks, std::int32_t clusters) {
  TileSchedule schedule = make_whole_tile_schedule(rows, columns, items, k_blocks, clusters);
  for (std::int32_t k_parts = 2; k_parts <= max_k_parts && k_parts <= schedule.waves + 1; ++k_parts) {
    const TileSchedule split = with_k_parts(schedule, k_parts);
    const bool has_clusters = split.k_parts * split.k_part_clusters <= clusters;
    if (k_blocks >= k_parts && has_clusters &&
        k_blocks_of_split_tiles(split) < k_blocks_of_split_tiles(schedule))
      schedule = split;
  }
  return schedule;
}

// Iterates over the work tiles of one cluster, for a schedule of make_whole_tile_schedule().
class WholeTileScheduler {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit WholeTileScheduler(const TileSchedule& schedule)
      : schedule_(schedule) {}

  // Sets the next work tile. Returns false if none is left. `cluster` must be the same number in every call.
  KINTSUGI_HOST_DEVICE constexpr bool next(std::int32_t cluster, WorkTile& work_tile) {
    work_tile = {wave_ * schedule_.clusters + cluster, 0};
    ++wave_;
    return work_tile.tile < schedule_.tiles();
  }

 private:
  const TileSchedule& schedule_;
  std::int32_t wave_ = 0;
};

// Iterates over the work tiles of one cluster, for a schedule of make_tile_schedule().
class TileScheduler {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit TileScheduler(const TileSchedule& schedule) : schedule_(schedule) {}

  // Sets the next work tile. Returns false if none is left. `cluster` must be the same number in every call.
  KINTSUGI_HOST_DEVICE constexpr bool next(std::int32_t cluster, WorkTile& work_tile) {
    const std::int32_t k_part = cluster / schedule_.k_part_clusters;
    const std::int32_t split_index =
        cluster % schedule_.k_part_clusters * schedule_.tiles_of_k_part_cluster + k_parts_done_;
    const bool has_k_part = k_parts_done_ < schedule_.tiles_of_k_part_cluster && k_part < schedule_.k_parts &&
                            split_index < schedule_.split_tiles();
    if (has_k_part && wave_ >= wave_of(k_part)) {
      work_tile = {schedule_.whole_tiles() + split_index, k_part};
      ++k_parts_done_;
      return true;
    }
    if (wave_ == schedule_.waves) return false;
    work_tile = {wave_ * schedule_.clusters + cluster, 0};
    ++wave_;
    return true;
  }

 private:
  // Wave before which part k_part of split tiles is computed. If it is computed after all waves: the number
  // of waves.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t wave_of(std::int32_t k_part) const {
    return schedule_.k_parts == 1 ? schedule_.waves : k_part * schedule_.waves / (schedule_.k_parts - 1);
  }

  const TileSchedule& schedule_;
  std::int32_t k_parts_done_ = 0;  // number of parts of split tiles returned so far
  std::int32_t wave_ = 0;          // number of waves of whole tiles returned so far
};

}  // namespace kintsugi::core::cuda
