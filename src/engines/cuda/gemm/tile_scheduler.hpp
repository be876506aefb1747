// Tile scheduler of the persistent Hopper kernels: which cluster computes which tile of C, or which part of
// its k, and in what order. Sums are added in ascending k whichever clusters add them: a cluster may compute
// the first part of a tile and send its partial sums to the cluster that computes the next, so that the bits
// do not depend on the number of clusters.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::core::cuda {

// Work tile: number of a tile of C and, if the tile is split along k, which part of k.
struct WorkTile {
  std::int32_t tile = 0;
  std::int32_t k_part = 0;
};

struct TileCoord {
  std::int32_t item = 0;  // batch item
  std::int32_t row = 0;   // row of tiles
  std::int32_t column = 0;
};

// Whole tiles go to the clusters in turn, wave by wave. If the last wave would leave clusters idle, its tiles
// are split along k. The clusters are divided into as many ranges as a tile has parts: those of range p
// compute part p of k for all these tiles, tiles_of_k_part_cluster of them each. The parts are spread over
// the waves, the first before them and the last after them, so that a cluster rarely waits for the part
// before its own.
//
// Residency: part p of a tile is computed by a cluster with a higher number than that of part p - 1, and
// clusters are numbered in the order in which they begin. So a cluster waits only for clusters that began
// before it, the first one for none, and a product ends however few clusters the device holds at a time.
struct TileSchedule {
  std::int32_t rows = 0;  // rows of tiles
  std::int32_t columns = 0;
  std::int32_t items = 1;
  std::int32_t k_blocks = 0;
  std::int32_t clusters = 1;
  std::int32_t waves = 0;    // waves of whole tiles
  std::int32_t k_parts = 1;  // parts of a split tile
  std::int32_t tiles_of_k_part_cluster = 1;
  std::int32_t k_part_clusters = 1;  // clusters that compute parts of the same number

  // Columns of tiles whose operands, together with those of as many rows, stay in L2 while clusters compute
  // these tiles.
  static constexpr std::int32_t group = 8;

  KINTSUGI_HOST_DEVICE constexpr std::int64_t tiles() const { return std::int64_t{rows} * columns * items; }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t whole_tiles() const { return waves * clusters; }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t split_tiles() const {
    return static_cast<std::int32_t>(tiles()) - whole_tiles();
  }

  // Batch item, row and column of a work tile; successive tiles are neighbors in a group of columns.
  KINTSUGI_HOST_DEVICE constexpr TileCoord coord(const WorkTile& work_tile) const {
    const std::int32_t inside = work_tile.tile % (rows * columns);
    const std::int32_t first = inside / (group * rows) * group;
    const std::int32_t width = columns - first < group ? columns - first : group;
    const std::int32_t index_in_group = inside - first * rows;
    return {work_tile.tile / (rows * columns), index_in_group / width, first + index_in_group % width};
  }

  // Number of the tile among those that are split; negative for a whole tile.
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
  KINTSUGI_HOST_DEVICE constexpr std::int32_t first_block(const WorkTile& work_tile) const {
    return work_tile.k_part == 0 ? 0 : work_tile.k_part * k_blocks / k_parts;
  }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t end_block(const WorkTile& work_tile) const {
    return sends_partial_sums(work_tile) ? (work_tile.k_part + 1) * k_blocks / k_parts : k_blocks;
  }
};

// Time to send partial sums, in k-blocks: 200 KB are written and read.
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

// Time that clusters take for split tiles, in k-blocks.
constexpr std::int32_t k_blocks_of_split_tiles(const TileSchedule& schedule) {
  if (schedule.split_tiles() == 0) return 0;
  return schedule.tiles_of_k_part_cluster *
         (schedule.k_blocks / schedule.k_parts + (schedule.k_parts > 1 ? k_blocks_of_partial_sums : 0));
}

// Returns a schedule without split tiles.
constexpr TileSchedule make_whole_tile_schedule(std::int32_t rows, std::int32_t columns, std::int32_t items,
                                                std::int32_t k_blocks, std::int32_t clusters) {
  TileSchedule schedule{rows, columns, items, k_blocks, clusters, 0, 1};
  if (schedule.tiles() == 0) return schedule;
  if (schedule.tiles() <= clusters) schedule.clusters = static_cast<std::int32_t>(schedule.tiles());
  schedule.waves = static_cast<std::int32_t>(schedule.tiles() / schedule.clusters);
  return with_k_parts(schedule, 1);
}

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

// Iterates over the work tiles of one cluster of make_whole_tile_schedule().
class WholeTileScheduler {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit WholeTileScheduler(const TileSchedule& schedule)
      : schedule_(schedule) {}

  // Returns false if no work tile is left. `cluster` is the same number in every call.
  KINTSUGI_HOST_DEVICE constexpr bool next(std::int32_t cluster, WorkTile& work_tile) {
    work_tile = {wave_ * schedule_.clusters + cluster, 0};
    ++wave_;
    return work_tile.tile < schedule_.tiles();
  }

 private:
  const TileSchedule& schedule_;
  std::int32_t wave_ = 0;
};

// Iterates over the work tiles of one cluster of make_tile_schedule().
class TileScheduler {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit TileScheduler(const TileSchedule& schedule) : schedule_(schedule) {}

  // Returns false if no work tile is left. `cluster` is the same number in every call.
  KINTSUGI_HOST_DEVICE constexpr bool next(std::int32_t cluster, WorkTile& work_tile) {
    const std::int32_t k_part = cluster / schedule_.k_part_clusters;
    const std::int32_t split =
        cluster % schedule_.k_part_clusters * schedule_.tiles_of_k_part_cluster + turn_;
    const bool has_k_part = turn_ < schedule_.tiles_of_k_part_cluster && k_part < schedule_.k_parts &&
                            split < schedule_.split_tiles();
    if (has_k_part && wave_ >= wave_of(k_part)) {
      work_tile = {schedule_.whole_tiles() + split, k_part};
      ++turn_;
      return true;
    }
    if (wave_ == schedule_.waves) return false;
    work_tile = {wave_ * schedule_.clusters + cluster, 0};
    ++wave_;
    return true;
  }

 private:
  // Wave before which parts of that number are computed; at most the number of waves.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t wave_of(std::int32_t k_part) const {
    return schedule_.k_parts == 1 ? schedule_.waves : k_part * schedule_.waves / (schedule_.k_parts - 1);
  }

  const TileSchedule& schedule_;
  std::int32_t turn_ = 0;  // parts returned so far
  std::int32_t wave_ = 0;
};

}  // namespace kintsugi::core::cuda
