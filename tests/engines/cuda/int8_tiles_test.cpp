// Tests which tile a product of int8 slices gets, and that clusters compute every tile of every group once.
#include "engines/cuda/gemm/int8/int8_tiles.hpp"

#include "engines/cuda/arch/profile.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace kintsugi::core::cuda {
namespace {

constexpr std::int32_t h200_clusters = 66;  // of an H200

TEST(Int8Tiles, FitTheSharedMemoryOfABlock) {
  for (const Int8Tile& tile : int8_tiles) {
    EXPECT_LE(tile.shared_bytes() + 1024, 227 * 1024) << "with barriers";
    EXPECT_EQ(tile.block_rows % 64, 0) << "a thread stores parts of 64 rows";
    EXPECT_EQ(tile.block_columns % 128, 0) << "each of two warpgroups multiplies a multiple of 64 columns";
    EXPECT_LE(tile.copied_rows(), 256) << "limit of a TMA box";
    EXPECT_LE(tile.copied_columns(), 256);
  }
}

TEST(Int8Tiles, EveryTileOfEveryModulusIsComputedOnce) {
  for (const std::int64_t rows : {16, 256, 272, 800, 4096}) {
    for (const std::int64_t columns : {16, 384, 400, 3000}) {
      for (const int moduli : {2, 16, 49}) {
        for (const Int8Tile& tile : int8_tiles) {
          const TileSchedule schedule =
              int8_tile_schedule(tile, {rows, columns, 300, moduli, moduli}, h200_clusters);
          EXPECT_EQ(schedule.k_blocks, 3);
          EXPECT_LE(schedule.clusters, h200_clusters);
          std::set<std::tuple<int, int, int>> computed;
          for (int cluster = 0; cluster < schedule.clusters; ++cluster) {
            WholeTileScheduler tiles(schedule);
            for (WorkTile work_tile; tiles.next(cluster, work_tile);) {
              const TileCoord coord = schedule.coord(work_tile);
              EXPECT_LT(std::int64_t{coord.row} * tile.rows(), rows);
              EXPECT_LT(std::int64_t{coord.column} * tile.columns(), columns);
              EXPECT_LT(coord.item, moduli);
              EXPECT_EQ(schedule.k_parts_of(work_tile), 1);
              EXPECT_TRUE(computed.emplace(coord.item, coord.row, coord.column).second);
            }
          }
          EXPECT_EQ(static_cast<std::int64_t>(computed.size()), schedule.tiles());
          EXPECT_GE(std::int64_t{schedule.rows} * tile.rows(), rows);
          EXPECT_GE(std::int64_t{schedule.columns} * tile.columns(), columns);
        }
      }
    }
  }
}

// Measured with 16 moduli on an H200: small products need more clusters, and the narrow tile wins where it
// divides C better.
TEST(Int8Tiles, SmallProductsTakeNarrowTiles) {
  const auto chosen = [](std::int64_t n) {
    return int8_tiles[choose_int8_tile(int8_tiles, shipped_profiles().back().costs.int8_tiles,
                                       {n, n, n, 16, 16}, h200_clusters)
                          .tile]
        .block_columns;
  };
  EXPECT_EQ(chosen(256), 128);
  EXPECT_EQ(chosen(1024), 128);
  EXPECT_EQ(chosen(2048), 128);
  EXPECT_EQ(chosen(8192), 256);
}

}  // namespace
}  // namespace kintsugi::core::cuda
