// Which tile products of int8 slices get, and that clusters compute every tile of every group once.
#include "engines/cuda/products/sm90/byte_tiles.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace kintsugi::core::cuda {
namespace {

constexpr std::int32_t clusters = 66;  // of an H200

TEST(ByteTiles, FitTheSharedMemoryOfABlock) {
  for (const ByteTile& tile : byte_tiles) {
    EXPECT_LE(tile.shared_bytes() + 1024, 227 * 1024) << "with barriers";
    EXPECT_EQ(tile.block_rows % 64, 0) << "a thread's stores are of parts of 64 rows";
    EXPECT_EQ(tile.block_columns % 128, 0) << "two warpgroups multiply 64 columns each, or more";
    EXPECT_LE(tile.copied_rows(), 256) << "of a box";
    EXPECT_LE(tile.copied_columns(), 256);
  }
}

TEST(ByteTiles, EveryTileOfEveryModulusOnce) {
  for (const std::int64_t rows : {16, 256, 272, 800, 4096}) {
    for (const std::int64_t columns : {16, 384, 400, 3000}) {
      for (const int moduli : {2, 16, 49}) {
        for (const ByteTile& tile : byte_tiles) {
          const Walk walk = byte_walk(tile, {rows, columns, 300, moduli, moduli}, clusters);
          EXPECT_EQ(walk.blocks, 3);
          EXPECT_LE(walk.clusters, clusters);
          std::set<std::tuple<int, int, int>> places;
          for (int cluster = 0; cluster < walk.clusters; ++cluster) {
            WholeTiles tiles(walk);
            for (Piece piece; tiles.next(cluster, piece);) {
              const TilePlace place = walk.place(piece);
              EXPECT_LT(std::int64_t{place.row} * tile.rows(), rows);
              EXPECT_LT(std::int64_t{place.column} * tile.columns(), columns);
              EXPECT_LT(place.entry, moduli);
              EXPECT_EQ(walk.parts_of(piece), 1);
              EXPECT_TRUE(places.emplace(place.entry, place.row, place.column).second);
            }
          }
          EXPECT_EQ(static_cast<std::int64_t>(places.size()), walk.tiles());
          EXPECT_GE(std::int64_t{walk.rows} * tile.rows(), rows);
          EXPECT_GE(std::int64_t{walk.columns} * tile.columns(), columns);
        }
      }
    }
  }
}

// As measured with 16 moduli on an H200: small products need more clusters, and where the narrow tile fits better it wins.
TEST(ByteTiles, SuitTheProduct) {
  const auto chosen = [](std::int64_t n) {
    return byte_tiles[choose_byte_tile({n, n, n, 16, 16}, clusters).tile].block_columns;
  };
  EXPECT_EQ(chosen(256), 128);
  EXPECT_EQ(chosen(1024), 128);
  EXPECT_EQ(chosen(2048), 128);
  EXPECT_EQ(chosen(8192), 256);
}

}  // namespace
}  // namespace kintsugi::core::cuda
