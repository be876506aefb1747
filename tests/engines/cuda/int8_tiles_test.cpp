// Tests that clusters compute every tile of every group of a product of int8 slices once, and the
// expected time of the tiles of a cluster.
#include "engines/cuda/gemm/int8_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

namespace kintsugi::core::cuda {
namespace {

constexpr std::int32_t h200_clusters = 66;  // of an H200

TEST(Int8Tiles, FitTheSharedMemoryOfABlock) {
  EXPECT_LE(Int8Tile::shared_bytes + 1024, 227 * 1024) << "with barriers";
  EXPECT_EQ(Int8Tile::copied_rows % PermutedRows::copied_rows, 0);
  EXPECT_EQ(Int8Tile::rows % PermutedRows::rows, 0) << "a thread stores parts of its 16 rows of 64";
  EXPECT_EQ(Int8Tile::block_columns % 64, 0) << "an instruction multiplies 64 columns";
  EXPECT_LE(Int8Tile::block_columns, 256) << "limit of a TMA box";
}

TEST(Int8Tiles, EveryTileOfEveryModulusIsComputedOnce) {
  std::mt19937 random(31);
  for (int draw = 0; draw < 200; ++draw) {
    const auto below = [&](std::uint32_t bound) { return static_cast<int>(random() % bound); };
    const std::int64_t rows = 16 * (1 + below(draw % 4 == 0 ? 1024 : 100));
    const std::int64_t columns = 16 * (1 + below(draw % 4 == 1 ? 1024 : 100));
    const int moduli = 1 + below(49);
    const TileSchedule schedule = int8_tile_schedule({rows, columns, 300, moduli, moduli},
                                                     draw % 3 == 0 ? 1 + below(128) : h200_clusters);
    EXPECT_EQ(schedule.k_blocks, 3);
    std::set<std::tuple<int, int, int>> computed;
    for (int cluster = 0; cluster < schedule.clusters; ++cluster) {
      WholeTileScheduler tiles(schedule);
      Int8TileOrder order(schedule, moduli, cluster);
      for (WorkTile work_tile; tiles.next(cluster, work_tile); order.advance()) {
        const TileCoord coord = schedule.coord(work_tile);
        ASSERT_TRUE(order.has_tile());
        const TileCoord found = order.coord();
        ASSERT_EQ(std::tuple(found.item, found.row, found.column),
                  std::tuple(coord.item, coord.row, coord.column));
        EXPECT_EQ(order.group(), moduli - 1 - coord.item);
        EXPECT_LT(std::int64_t{coord.row} * Int8Tile::rows, rows);
        EXPECT_LT(std::int64_t{coord.column} * Int8Tile::columns, columns);
        EXPECT_LT(coord.item, moduli);
        EXPECT_TRUE(computed.emplace(coord.item, coord.row, coord.column).second);
      }
      EXPECT_FALSE(order.has_tile());
    }
    EXPECT_EQ(static_cast<std::int64_t>(computed.size()), schedule.tiles());
    EXPECT_GE(std::int64_t{schedule.rows} * Int8Tile::rows, rows);
    EXPECT_GE(std::int64_t{schedule.columns} * Int8Tile::columns, columns);
  }
}

// The schedule is that of the most moduli, and only the first groups are computed.
TEST(Int8Tiles, EveryTileOfSelectedModuliIsComputedOnce) {
  std::mt19937 random(53);
  for (int draw = 0; draw < 100; ++draw) {
    const auto below = [&](std::uint32_t bound) { return static_cast<int>(random() % bound); };
    const int most = 1 + below(20);
    const int selected = 1 + below(static_cast<std::uint32_t>(most));
    const TileSchedule schedule =
        int8_tile_schedule({16 * (1 + below(100)), 16 * (1 + below(100)), 300, most, most}, h200_clusters);
    std::set<std::tuple<int, int, int>> computed;
    for (int cluster = 0; cluster < schedule.clusters; ++cluster) {
      for (Int8TileOrder order(schedule, selected, cluster); order.has_tile(); order.advance()) {
        const TileCoord coord = order.coord();
        EXPECT_GE(order.group(), 0);
        EXPECT_LT(order.group(), selected);
        EXPECT_TRUE(computed.emplace(order.group(), coord.row, coord.column).second);
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(computed.size()),
              std::int64_t{schedule.rows} * schedule.columns * selected);
  }
}

TEST(Int8Tiles, NarrowTilesDivideTheRows) {
  std::mt19937 random(47);
  for (int draw = 0; draw < 5000; ++draw) {
    Int8Params params;
    params.rows = 16 * (1 + static_cast<int>(random() % (draw % 4 == 0 ? 2000 : 60)));
    const std::int64_t k = 1 + random() % 3000;
    params.schedule = int8_tile_schedule({params.rows, 256, k, 1, 1}, h200_clusters);
    params.full_tiles = full_int8_tiles(params.rows, k, 1);
    const int tiles = params.schedule.rows;
    const bool is_divided = k > 1023;
    std::int64_t next = 0;  // rows before it have been computed
    for (int index = 0; index < tiles; ++index) {
      const Int8TileRows tile = params.tile_rows(index);
      EXPECT_EQ(tile.is_narrow, index >= params.full_tiles);
      EXPECT_EQ(tile.first % PermutedRows::rows_of_thread, 0);
      if (index + 1 < tiles || !tile.is_narrow) {
        EXPECT_EQ(tile.first, next);
      }
      EXPECT_LE(tile.first, next);
      EXPECT_GE(tile.first, 0);
      next = tile.first + (tile.is_narrow ? Int8Tile::narrow_rows : Int8Tile::rows);
      if (tile.is_narrow) {
        EXPECT_LE(next, params.rows) << "copies of narrow tiles have no bound of rows";
      }
    }
    EXPECT_GE(next, params.rows);
    if (!is_divided) {
      EXPECT_EQ(params.full_tiles, tiles);
    } else if (params.full_tiles > 0 && params.rows >= Int8Tile::narrow_rows) {
      EXPECT_EQ(next, params.rows) << "rows are left over only if all tiles are narrow";
    }
  }
  EXPECT_EQ(full_int8_tiles(4096, 4096, 15), 14) << "22 tiles: 14 of 192 rows, 8 of 176";
  EXPECT_EQ(full_int8_tiles(4096, 1023, 15), 22) << "the kernel of int25 sums has no narrow tiles";
  EXPECT_EQ(full_int8_tiles(4096, 4096, 105), 22) << "clusters with narrow tiles would run ahead";
  EXPECT_EQ(full_int8_tiles(1536, 1536, 15), 8);
  EXPECT_EQ(full_int8_tiles(1024, 1024, 15), 0);
  EXPECT_EQ(full_int8_tiles(160, 1024, 15), 1) << "a narrow tile has no rows that do not exist";
}

TEST(Int8Tiles, TheLastRowsOfNarrowTilesAreCopiedOnce) {
  using Last = LastPermutedRows;
  EXPECT_EQ(Last::offset + gemm_cluster_size * Last::copied_rows, Int8Tile::narrow_rows);
  EXPECT_EQ(Last::offset % (gemm_cluster_size * PermutedRows::copied_rows), 0) << "halves are equal";
  EXPECT_EQ(Last::copied_rows % 8, 0) << "shared memory is swizzled in groups of eight rows";
  EXPECT_EQ(Last::rows_of_thread % 4, 0) << "a thread stores words";
  for (int row = 0; row < 1024; row += 16) {
    std::set<int> copied;
    for (int p = 0; p < Last::pairs_of_thread; ++p) {
      EXPECT_LT(row % Last::rows_of_thread / 2 + p, 2 * Last::pairs_of_thread - 1) << "length in the map";
      for (int t = 0; t < PermutedRows::threads; ++t) {
        for (int e = 0; e < 2; ++e)
          copied.insert((row / Last::rows_of_thread + t) * Last::rows_of_thread +
                        2 * (row % Last::rows_of_thread / 2 + p) + e);
      }
    }
    EXPECT_EQ(static_cast<int>(copied.size()), Last::rows_of_thread * PermutedRows::threads);
    EXPECT_EQ(*copied.begin(), row);
    EXPECT_EQ(*copied.rbegin(), row + Last::rows_of_thread * PermutedRows::threads - 1);
  }
}

TEST(Int8Tiles, NarrowTilesTakeTheTimeOfTheirRows) {
  constexpr TileTimes times{.block = 12, .tile = 4};
  constexpr std::int64_t k = 1024;
  const auto microseconds = [&](std::int64_t rows) {
    return int8_microseconds({rows, Int8Tile::columns, k, 1, 1}, times, 1);
  };
  EXPECT_DOUBLE_EQ(microseconds(Int8Tile::rows), 8 * 12 + 4);
  EXPECT_DOUBLE_EQ(microseconds(Int8Tile::narrow_rows), 8 * 11 + 4);
  EXPECT_DOUBLE_EQ(microseconds(Int8Tile::rows + Int8Tile::narrow_rows), 8 * (12 + 11) + 4);
  EXPECT_DOUBLE_EQ(microseconds(4096), 8 * (14 * 12 + 8 * 11) + 4);
}

TEST(Int8Tiles, DivisorsDivide) {
  std::mt19937 random(7);
  for (int draw = 0; draw < 20000; ++draw) {
    const auto number = static_cast<std::uint32_t>(random() >> (random() % 32));
    const auto divisor = std::max(1U, static_cast<std::uint32_t>(random() >> (random() % 32)));
    std::uint32_t remainder = 0;
    EXPECT_EQ(Divisor(divisor).quotient(number, remainder), number / divisor);
    EXPECT_EQ(remainder, number % divisor);
  }
}

TEST(Int8Tiles, TheLongerOfProductsAndReductionSetsTheTimeOfTurns) {
  constexpr TileTimes times{.block = 1, .tile = 4};
  const auto microseconds = [&](std::int64_t k, int tiles_of_cluster) {
    return int8_microseconds({Int8Tile::rows, Int8Tile::columns, k, tiles_of_cluster, tiles_of_cluster},
                             times, 1);
  };
  EXPECT_EQ(microseconds(128, 1), 1 + 4);
  EXPECT_EQ(microseconds(128, 2), 1 + 1 + 4) << "the second warpgroup begins after the first one's products";
  EXPECT_EQ(microseconds(128, 3), (1 + 4) + 1 + 4)
      << "the first one begins again when it has stored its tile";
  EXPECT_EQ(microseconds(1024, 3), 3 * 8 + 4) << "products hide reductions";
}

}  // namespace
}  // namespace kintsugi::core::cuda
