// Which cluster computes what: every block of every tile once and in order, and nobody waits for somebody who waits.
#include "engines/cuda/products/sm90/term_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "engines/cuda/products/sm90/term_structures.hpp"

namespace kintsugi::core::cuda {
namespace {

using Tile = std::tuple<int, int, int>;

Tile tile_of(const Walk& walk, const Piece& piece) {
  const TilePlace place = walk.place(piece);
  return {place.entry, place.row, place.column};
}

std::vector<std::vector<Piece>> pieces_of(const Walk& walk) {
  std::vector<std::vector<Piece>> all(static_cast<std::size_t>(walk.clusters));
  for (int cluster = 0; cluster < walk.clusters; ++cluster) {
    Pieces pieces(walk);
    for (Piece piece; pieces.next(cluster, piece);) all[cluster].push_back(piece);
  }
  return all;
}

// All clusters at once, a piece when the part before it is there; the time when the last one ends, in blocks.
std::int64_t time_of(const Walk& walk) {
  const auto all = pieces_of(walk);
  std::map<std::pair<Tile, int>, std::int64_t> ends;
  std::vector<std::size_t> next(all.size(), 0);
  std::vector<std::int64_t> clock(all.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t c = 0; c < all.size(); ++c) {
      for (; next[c] < all[c].size(); ++next[c], moved = true) {
        const Piece& piece = all[c][next[c]];
        if (walk.continues(piece)) {
          const auto before = ends.find({tile_of(walk, piece), piece.part - 1});
          if (before == ends.end()) break;
          clock[c] = std::max(clock[c], before->second);
        }
        clock[c] += walk.end_block(piece) - walk.first_block(piece);
        ends[{tile_of(walk, piece), piece.part}] = clock[c];
      }
    }
  }
  for (std::size_t c = 0; c < all.size(); ++c)
    EXPECT_EQ(next[c], all[c].size()) << "cluster " << c << " waits for ever";
  return *std::max_element(clock.begin(), clock.end());
}

// Whether all clusters end where the device holds so many at a time: they begin in the order of their numbers, and one that
// waits for another one's part keeps its place.
bool ends_with_resident(const Walk& walk, int resident) {
  const auto all = pieces_of(walk);
  std::set<std::pair<Tile, int>> done;
  std::map<int, std::size_t> running;  // clusters, and how many of their pieces are done
  for (int begun = 0;;) {
    while (begun < walk.clusters && static_cast<int>(running.size()) < resident) running[begun++] = 0;
    if (running.empty()) return true;
    bool moved = false;
    for (auto cluster = running.begin(); cluster != running.end();) {
      const std::vector<Piece>& pieces = all[static_cast<std::size_t>(cluster->first)];
      for (std::size_t& next = cluster->second; next < pieces.size(); ++next, moved = true) {
        const Piece& piece = pieces[next];
        if (walk.continues(piece) && !done.contains({tile_of(walk, piece), piece.part - 1})) break;
        done.insert({tile_of(walk, piece), piece.part});
      }
      const bool ended = cluster->second == pieces.size();
      moved = moved || ended;
      cluster = ended ? running.erase(cluster) : std::next(cluster);
    }
    if (!moved) return false;
  }
}

void expect_every_block_once(const Walk& walk) {
  std::map<Tile, std::vector<Piece>> tiles;
  for (const auto& pieces : pieces_of(walk)) {
    for (const Piece& piece : pieces) tiles[tile_of(walk, piece)].push_back(piece);
  }
  ASSERT_EQ(tiles.size(), static_cast<std::size_t>(walk.tiles()));
  for (auto& [tile, pieces] : tiles) {
    const auto [entry, row, column] = tile;
    EXPECT_TRUE(0 <= entry && entry < walk.entries && 0 <= row && row < walk.rows && 0 <= column &&
                column < walk.columns);
    std::ranges::sort(pieces, {}, &Piece::part);
    int block = 0;
    for (const Piece& piece : pieces) {
      EXPECT_EQ(walk.first_block(piece), block);
      EXPECT_LT(block, walk.end_block(piece));
      EXPECT_EQ(walk.hands_over(piece), walk.end_block(piece) != walk.blocks);
      EXPECT_LT(walk.shared(piece), walk.clusters) << "memory for sums is of so many tiles";
      block = walk.end_block(piece);
    }
    EXPECT_EQ(block, walk.blocks);
  }
}

TEST(Walk, EveryBlockOfEveryTileOnce) {
  for (const int clusters : {1, 2, 5, 7, 66}) {
    for (const int rows : {1, 2, 3, 8, 17}) {
      for (const int columns : {1, 7, 8, 9, 22}) {
        for (const int entries : {1, 3}) {
          for (const int blocks : {1, 2, 3, 40}) {
            SCOPED_TRACE(testing::Message()
                         << rows << " x " << columns << " tiles, " << entries << " entries, " << blocks
                         << " blocks, " << clusters << " clusters");
            const Walk walk = make_walk(rows, columns, entries, blocks, clusters);
            expect_every_block_once(walk);
            time_of(walk);
            for (const int resident : {1, 2, 3, 33})
              EXPECT_TRUE(ends_with_resident(walk, resident)) << resident;
          }
        }
      }
    }
  }
}

// The parts of a last wave end with it: no cluster waits, and none is long without work.
TEST(Walk, PartsShortenTheLastWave) {
  const Walk walk = make_walk(16, 22, 1, 64, 66);  // n = 4096: 5.33 waves
  EXPECT_EQ(walk.waves, 5);
  EXPECT_EQ(walk.parts, 3);
  EXPECT_LE(time_of(walk), 5 * 64 + 64 / 3 + 1);
  EXPECT_EQ(make_walk(32, 43, 1, 128, 66).parts, 1) << "20.85 waves are nearly whole";
  EXPECT_EQ(make_walk(33, 44, 1, 132, 66).left(), 0);
}

// Every shape of a last wave that is cut, on any part of the device.
TEST(Walk, EndsHoweverFewClustersAreResident) {
  int cut = 0;
  for (int left = 1; left < 66; ++left) {
    for (const int waves : {1, 2, 3, 5}) {
      const Walk walk = make_walk(waves * 66 + left, 1, 1, 64, 66);
      cut += walk.parts > 1 ? 1 : 0;
      expect_every_block_once(walk);
      for (int resident = 1; resident <= 66; ++resident)
        ASSERT_TRUE(ends_with_resident(walk, resident)) << left << " tiles left, " << resident << " resident";
    }
  }
  EXPECT_GT(cut, 100);
}

// Few tiles are narrow ones, many are wide.
TEST(Walk, TilesFitTheProduct) {
  const auto columns = [](std::int64_t n) {
    const auto time = [&](const TermTile& tile) {
      return choose_walk(tile, 0, n, n, 1, n, 1, 66).microseconds;
    };
    return std::ranges::min(joined_tiles, {}, time).columns;
  };
  EXPECT_EQ(columns(512), 64);
  EXPECT_EQ(columns(1024), 64);
  EXPECT_EQ(columns(2048), 128);
  EXPECT_EQ(columns(8192), 192);
  EXPECT_EQ(columns(16384), 192);
}

// Where sums are rescaled tiles have times of their own: what was the quickest way of all at each size.
TEST(Walk, RescaledTilesHaveTimesOfTheirOwn) {
  const auto quickest_walk = [](std::int64_t n) {
    TermChoice best;
    for (std::size_t tile = 0; tile < rescaled_tiles.size(); ++tile) {
      const TermChoice choice = choose_walk(rescaled_tiles[tile], tile, n, n, 1, n, 1, 66);
      if (tile == 0 || choice.microseconds < best.microseconds) best = choice;
    }
    return best;
  };
  const auto time_of = [](const SmallTile& tile, std::int64_t n) {
    return choose_small_tile(tile, 0, false, n, n, 1, n, 2, 1, 132).microseconds;
  };
  const auto quickest_small_tile = [&](std::int64_t n) {
    return std::ranges::min(small_tiles, {}, [&](const SmallTile& tile) { return time_of(tile, n); });
  };
  for (const std::int64_t n : {512, 1024}) {
    EXPECT_EQ(quickest_small_tile(n).columns, 64);
    EXPECT_LT(time_of(quickest_small_tile(n), n), quickest_walk(n).microseconds) << n;
  }
  for (const auto& [n, columns] : {std::pair{2048, 128}, std::pair{4096, 192}}) {
    EXPECT_EQ(rescaled_tiles[quickest_walk(n).tile].columns, columns);
    EXPECT_LT(quickest_walk(n).microseconds, time_of(quickest_small_tile(n), n)) << n;
  }
}

// All of C, whichever way it is divided, and no more shared memory than there is.
TEST(SmallTiles, CoverTheProduct) {
  for (const SmallTile& tile : small_tiles) {
    for (const bool swapped : {false, true}) {
      for (const int m : {1, 64, 65, 4096}) {
        for (const int n : {1, 128, 129, 11008}) {
          const SmallTileChoice choice = choose_small_tile(tile, 0, swapped, m, n, 3, 500, 2, 1, 132);
          EXPECT_GE(choice.row_pairs * 2 * small_tile_rows, swapped ? n : m);
          EXPECT_LT((choice.row_pairs - 1) * 2 * small_tile_rows, swapped ? n : m);
          EXPECT_GE(choice.columns * tile.columns, swapped ? m : n);
          EXPECT_LT((choice.columns - 1) * tile.columns, swapped ? m : n);
          EXPECT_GE(choice.stages, 2);
          EXPECT_LE(choice.stages, most_stages);
          const bool alone = 3 * choice.row_pairs * 2 * choice.columns <= 132;
          EXPECT_LE(tile.shared_bytes(2, choice.stages) + 1024, (alone ? 227 : 114) << 10);
        }
      }
    }
  }
}

// Prepared weights with some rows: what was measured to be the quickest way (docs/results/LOG.md), and its time.
TEST(SmallTiles, ShortSidesAreTheirColumns) {
  const auto best = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    SmallTileChoice least;
    for (const bool swapped : {false, true}) {
      for (std::size_t tile = 0; tile < small_tiles.size(); ++tile) {
        const SmallTileChoice choice =
            choose_small_tile(small_tiles[tile], tile, swapped, m, n, 1, k, 2, 1, 132);
        if (least.microseconds == 0 || choice.microseconds < least.microseconds) least = choice;
      }
    }
    return least;
  };
  for (const auto& [m, n, columns, measured] : {std::tuple{16, 4096, 32, 21.8},
                                                {32, 16384, 32, 252.0},
                                                {64, 4096, 64, 23.4},
                                                {64, 8192, 64, 71.1},
                                                {64, 16384, 64, 292.7}}) {
    const SmallTileChoice choice = best(m, n, n);
    EXPECT_EQ(small_tiles[choice.tile].columns, columns) << m << " x " << n;
    EXPECT_TRUE(choice.swapped);
    EXPECT_NEAR(choice.microseconds, measured, 0.15 * measured);
  }
  EXPECT_EQ(small_tiles[best(128, 8192, 8192).tile].columns, 64);
  EXPECT_EQ(small_tiles[best(512, 512, 512).tile].columns, 64);
}

TEST(Walk, FewTilesAreOneWave) {
  const Walk walk = make_walk(2, 3, 1, 8, 66);
  EXPECT_EQ(walk.clusters, 6);
  EXPECT_EQ(walk.waves, 1);
  EXPECT_EQ(walk.left(), 0);
}

}  // namespace
}  // namespace kintsugi::core::cuda
