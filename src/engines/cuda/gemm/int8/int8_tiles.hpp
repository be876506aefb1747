// Tiles and parameters of the int8 GEMM kernels, and the choice of a tile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/device.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// Tile of a cluster. Its two thread blocks have the same rows of C or the same columns. Each loads half of
// the shared slices, to both thread blocks. In a thread block two warpgroups multiply; each takes all rows
// and half of the columns. The rows of C are operand B of the instruction, which makes a thread's
// accumulators adjacent in memory.
struct Int8Tile {
  int block_rows;  // rows of C per thread block
  int block_columns;
  bool shares_rows;  // true: both thread blocks have the same rows; false: the same columns

  static constexpr int block_k = 128;  // inner indices of a k-block, which a pipeline stage holds
  static constexpr int stages = 4;
  static constexpr int threads = 384;

  constexpr int rows() const { return block_rows * (shares_rows ? 1 : gemm_cluster_size); }
  constexpr int columns() const { return block_columns * (shares_rows ? gemm_cluster_size : 1); }
  // Number of vectors of A, and of B, that a thread block loads.
  constexpr int copied_rows() const { return block_rows / (shares_rows ? gemm_cluster_size : 1); }
  constexpr int copied_columns() const { return block_columns / (shares_rows ? 1 : gemm_cluster_size); }
  constexpr int stage_bytes() const { return (block_rows + block_columns) * block_k; }
  constexpr int shared_bytes() const { return stages * stage_bytes() + 1024; }
};

// Shared memory transfers 128 bytes per cycle. With the wide tile, products read 85 bytes per cycle and
// copies write 37. With the narrow tile they are 80 and 48; it is for products that do not fill the wide
// tile.
inline constexpr std::array int8_tiles{
    Int8Tile{.block_rows = 192, .block_columns = 256, .shares_rows = false},
    Int8Tile{.block_rows = 256, .block_columns = 128, .shares_rows = true}};

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
  std::byte* sums = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::uint16_t moduli[max_groups] = {};          // moduli of the groups, if sums are residues
  std::uint16_t first_term[max_groups + 1] = {};  // first term of each group; then the number of terms
  Int8Term terms[max_groups] = {};

  KINTSUGI_HOST_DEVICE int group(const TileCoord& coord) const { return schedule.items - 1 - coord.item; }
  // Number of k-blocks of all terms of a group.
  KINTSUGI_HOST_DEVICE int k_blocks(int group) const {
    return schedule.k_blocks * (first_term[group + 1] - first_term[group]);
  }
};

// Shape of the sums that are computed; rows, columns and inner indices include padding.
struct Int8Shape {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t k;
  int groups;
  int terms;
};

// A tile with its schedule and expected time.
struct Int8TileVariant {
  std::size_t tile = 0;  // index of the tile
  TileSchedule schedule;
  double microseconds = 0;
};

constexpr TileSchedule int8_tile_schedule(const Int8Tile& tile, const Int8Shape& shape,
                                          std::int32_t clusters) {
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  return make_whole_tile_schedule(count(shape.rows, tile.rows()), count(shape.columns, tile.columns()),
                                  shape.groups, count(shape.k, Int8Tile::block_k), clusters);
}

// Schedule and expected time of tile `index` on a device that holds `clusters` clusters.
constexpr Int8TileVariant schedule_int8_tile(const Int8Tile& tile, std::size_t index, const TileTimes& times,
                                             const Int8Shape& shape, std::int32_t clusters) {
  const TileSchedule schedule = int8_tile_schedule(tile, shape, clusters);
  const int waves = schedule.waves + (schedule.split_tiles() > 0 ? 1 : 0);
  const double k_blocks = static_cast<double>(schedule.k_blocks) * shape.terms / shape.groups;  // per tile
  return {index, schedule, waves * (k_blocks * times.block + times.tile)};
}

// Variant with the shortest expected time. `times` are those of the tiles.
constexpr Int8TileVariant choose_int8_tile(std::span<const Int8Tile> tiles, std::span<const TileTimes> times,
                                           const Int8Shape& shape, std::int32_t clusters) {
  Int8TileVariant best;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Int8TileVariant choice = schedule_int8_tile(tiles[i], i, times[i], shape, clusters);
    if (i == 0 || choice.microseconds < best.microseconds) best = choice;
  }
  return best;
}

}  // namespace kintsugi::core::cuda
