// Tests the tile scheduler: every k-block of every tile is computed once and in order, and clusters never
// wait for each other in a cycle.
#include "engines/cuda/gemm/multi_term_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/arch/hopper/tiles.hpp"

namespace kintsugi::core::cuda {
namespace {

// Costs of the multi-term kernels on an H200, from the measurements that the tests below name: L2 held the
// operands, unlike in a calibration.
const MultiTermCosts& costs_of_tests() {
  static const MultiTermCosts costs{
      .launch = 1.4,
      .two_sums_factor = 1.09,
      .four_sums_factor = 1.17,
      .four_sums_factor_alone = 1.5,
      .small_tile = 1,
      .segment_sums = 10,
      .memory_rate = 4100000,
      .cache_rate = 9000000,
      .narrow_cache_rate = 6400000,
      .tiles = {{{{{.block = 1.34, .tile = 3.7}, {.block = 0.91, .tile = 2.7}, {.block = 0.73, .tile = 0.6}}},
                 {{{.block = 1.44, .tile = 5.4}, {.block = 1.1, .tile = 2.3}, {.block = 0.8, .tile = 0.9}}},
                 {{{.block = 1.82, .tile = 2.7}, {.block = 1.2, .tile = 0.6}}}}},
      .small_tiles = {{{.alone = 0.28, .shared = 0.3},
                       {.alone = 0.32, .shared = 0.36},
                       {.alone = 0.82, .shared = 0.66}}}};
  return costs;
}

using Tile = std::tuple<int, int, int>;

Tile tile_of(const TileSchedule& schedule, const WorkTile& work_tile) {
  const TileCoord coord = schedule.coord(work_tile);
  return {coord.item, coord.row, coord.column};
}

std::vector<std::vector<WorkTile>> work_tiles_of(const TileSchedule& schedule) {
  std::vector<std::vector<WorkTile>> of_clusters(static_cast<std::size_t>(schedule.clusters));
  for (int cluster = 0; cluster < schedule.clusters; ++cluster) {
    TileScheduler scheduler(schedule);
    for (WorkTile work_tile; scheduler.next(cluster, work_tile);) of_clusters[cluster].push_back(work_tile);
  }
  return of_clusters;
}

// Returns the time, in k-blocks, when the last cluster ends. All clusters run at once; a work tile begins
// when the partial sums that it receives have been sent.
std::int64_t end_time(const TileSchedule& schedule) {
  const auto of_clusters = work_tiles_of(schedule);
  std::map<std::pair<Tile, int>, std::int64_t> ends;
  std::vector<std::size_t> next(of_clusters.size(), 0);
  std::vector<std::int64_t> clock(of_clusters.size(), 0);
  for (bool progressed = true; progressed;) {
    progressed = false;
    for (std::size_t c = 0; c < of_clusters.size(); ++c) {
      for (; next[c] < of_clusters[c].size(); ++next[c], progressed = true) {
        const WorkTile& work_tile = of_clusters[c][next[c]];
        if (schedule.receives_partial_sums(work_tile)) {
          const auto sender = ends.find({tile_of(schedule, work_tile), work_tile.k_part - 1});
          if (sender == ends.end()) break;
          clock[c] = std::max(clock[c], sender->second);
        }
        clock[c] += schedule.end_block(work_tile) - schedule.first_block(work_tile);
        ends[{tile_of(schedule, work_tile), work_tile.k_part}] = clock[c];
      }
    }
  }
  for (std::size_t c = 0; c < of_clusters.size(); ++c)
    EXPECT_EQ(next[c], of_clusters[c].size()) << "cluster " << c << " waits for ever";
  return *std::max_element(clock.begin(), clock.end());
}

// True if all clusters end on a device that holds `resident` of them at a time. Clusters begin in the order
// of their numbers; one that waits for another's part of k stays resident.
bool ends_with_resident(const TileSchedule& schedule, int resident) {
  const auto of_clusters = work_tiles_of(schedule);
  std::set<std::pair<Tile, int>> done;
  std::map<int, std::size_t> running;  // clusters, and how many of their work tiles are done
  for (int started = 0;;) {
    while (started < schedule.clusters && static_cast<int>(running.size()) < resident) running[started++] = 0;
    if (running.empty()) return true;
    bool progressed = false;
    for (auto cluster = running.begin(); cluster != running.end();) {
      const std::vector<WorkTile>& work_tiles = of_clusters[static_cast<std::size_t>(cluster->first)];
      for (std::size_t& next = cluster->second; next < work_tiles.size(); ++next, progressed = true) {
        const WorkTile& work_tile = work_tiles[next];
        if (schedule.receives_partial_sums(work_tile) &&
            !done.contains({tile_of(schedule, work_tile), work_tile.k_part - 1}))
          break;
        done.insert({tile_of(schedule, work_tile), work_tile.k_part});
      }
      const bool ended = cluster->second == work_tiles.size();
      progressed = progressed || ended;
      cluster = ended ? running.erase(cluster) : std::next(cluster);
    }
    if (!progressed) return false;
  }
}

void expect_every_k_block_once(const TileSchedule& schedule) {
  std::map<Tile, std::vector<WorkTile>> tiles;
  for (const auto& work_tiles : work_tiles_of(schedule)) {
    for (const WorkTile& work_tile : work_tiles) tiles[tile_of(schedule, work_tile)].push_back(work_tile);
  }
  ASSERT_EQ(tiles.size(), static_cast<std::size_t>(schedule.tiles()));
  for (auto& [tile, work_tiles] : tiles) {
    const auto [item, row, column] = tile;
    EXPECT_TRUE(0 <= item && item < schedule.items && 0 <= row && row < schedule.rows && 0 <= column &&
                column < schedule.columns);
    std::ranges::sort(work_tiles, {}, &WorkTile::k_part);
    int k_block = 0;
    for (const WorkTile& work_tile : work_tiles) {
      EXPECT_EQ(schedule.first_block(work_tile), k_block);
      EXPECT_LT(k_block, schedule.end_block(work_tile));
      EXPECT_EQ(schedule.sends_partial_sums(work_tile), schedule.end_block(work_tile) != schedule.k_blocks);
      EXPECT_LT(schedule.split_index(work_tile), schedule.clusters)
          << "there is memory for the partial sums of one tile per cluster";
      k_block = schedule.end_block(work_tile);
    }
    EXPECT_EQ(k_block, schedule.k_blocks);
  }
}

TEST(TileSchedule, EveryKBlockOfEveryTileIsComputedOnce) {
  for (const int clusters : {1, 2, 5, 7, 66}) {
    for (const int rows : {1, 2, 3, 8, 17}) {
      for (const int columns : {1, 7, 8, 9, 22}) {
        for (const int items : {1, 3}) {
          for (const int k_blocks : {1, 2, 3, 40}) {
            SCOPED_TRACE(testing::Message()
                         << rows << " x " << columns << " tiles, " << items << " batch items, " << k_blocks
                         << " k-blocks, " << clusters << " clusters");
            const TileSchedule schedule = make_tile_schedule(rows, columns, items, k_blocks, clusters);
            expect_every_k_block_once(schedule);
            end_time(schedule);
            for (const int resident : {1, 2, 3, 33})
              EXPECT_TRUE(ends_with_resident(schedule, resident)) << resident;
          }
        }
      }
    }
  }
}

// Tiles of the last wave are split along k, so that all clusters end at about the same time.
TEST(TileSchedule, TilesOfTheLastWaveAreSplitAlongK) {
  const TileSchedule schedule = make_tile_schedule(16, 22, 1, 64, 66);  // n = 4096: 5.33 waves
  EXPECT_EQ(schedule.waves, 5);
  EXPECT_EQ(schedule.k_parts, 3);
  EXPECT_LE(end_time(schedule), 5 * 64 + 64 / 3 + 1);
  EXPECT_EQ(make_tile_schedule(32, 43, 1, 128, 66).k_parts, 1) << "the last of 20.85 waves is nearly full";
  EXPECT_EQ(make_tile_schedule(33, 44, 1, 132, 66).split_tiles(), 0);
}

// Any number of tiles may be in the last wave, and any number of clusters resident.
TEST(TileSchedule, EndsForAnyNumberOfResidentClusters) {
  int schedules_with_parts = 0;
  for (int last_wave = 1; last_wave < 66; ++last_wave) {
    for (const int waves : {1, 2, 3, 5}) {
      const TileSchedule schedule = make_tile_schedule(waves * 66 + last_wave, 1, 1, 64, 66);
      schedules_with_parts += schedule.k_parts > 1 ? 1 : 0;
      expect_every_k_block_once(schedule);
      for (int resident = 1; resident <= 66; ++resident)
        ASSERT_TRUE(ends_with_resident(schedule, resident))
            << last_wave << " tiles in the last wave, " << resident << " resident";
    }
  }
  EXPECT_GT(schedules_with_parts, 100);
}

// Products of few tiles take narrow tiles, those of many tiles wide ones.
TEST(TileSchedule, SmallProductsTakeNarrowTiles) {
  const auto columns = [](std::int64_t n) {
    std::size_t best = 0;
    const auto time = [&](std::size_t tile) {
      return choose_tile_schedule(hopper::fp16x3_tiles[tile], tile, costs_of_tests().tiles[0][tile],
                                  {n, n, n, 1}, 1, 66, costs_of_tests())
          .microseconds;
    };
    for (std::size_t tile = 1; tile < hopper::fp16x3_tiles.size(); ++tile) {
      if (time(tile) < time(best)) best = tile;
    }
    return hopper::fp16x3_tiles[best].columns;
  };
  EXPECT_EQ(columns(512), 64);
  EXPECT_EQ(columns(1024), 64);
  EXPECT_EQ(columns(2048), 128);
  EXPECT_EQ(columns(8192), 192);
  EXPECT_EQ(columns(16384), 192);
}

// Tiles whose sums are rescaled have expected times of their own; the variant that was measured to be fastest
// is expected at each size.
TEST(TileSchedule, RescaledTilesHaveTheirOwnExpectedTimes) {
  const auto quickest_cluster_tile = [](std::int64_t n) {
    ClusterTileVariant best;
    for (std::size_t tile = 0; tile < hopper::fp16x3_wide_tiles.size(); ++tile) {
      const ClusterTileVariant choice =
          choose_tile_schedule(hopper::fp16x3_wide_tiles[tile], tile, costs_of_tests().tiles[1][tile],
                               {n, n, n, 1}, 1, 66, costs_of_tests());
      if (tile == 0 || choice.microseconds < best.microseconds) best = choice;
    }
    return best;
  };
  const auto small_tile_time = [](std::size_t tile, std::int64_t n) {
    return choose_small_tile(hopper::small_tiles[tile], tile, false, {n, n, n, 1}, 2, 1, 132,
                             costs_of_tests())
        .microseconds;
  };
  const auto quickest_small_tile = [&](std::int64_t n) {
    std::size_t best = 0;
    for (std::size_t tile = 1; tile < hopper::small_tiles.size(); ++tile) {
      if (small_tile_time(tile, n) < small_tile_time(best, n)) best = tile;
    }
    return best;
  };
  for (const std::int64_t n : {512, 1024}) {
    EXPECT_EQ(hopper::small_tiles[quickest_small_tile(n)].columns, 64);
    EXPECT_LT(small_tile_time(quickest_small_tile(n), n), quickest_cluster_tile(n).microseconds) << n;
  }
  for (const auto& [n, columns] : {std::pair{2048, 128}, std::pair{4096, 192}}) {
    EXPECT_EQ(hopper::fp16x3_wide_tiles[quickest_cluster_tile(n).tile].columns, columns);
    EXPECT_LT(quickest_cluster_tile(n).microseconds, small_tile_time(quickest_small_tile(n), n)) << n;
  }
}

// Small tiles cover all of C for every division, and use no more shared memory than an SM has.
TEST(SmallTiles, CoverCAndFitSharedMemory) {
  for (const SmallTile& tile : hopper::small_tiles) {
    for (const bool swapped : {false, true}) {
      for (const int m : {1, 64, 65, 4096}) {
        for (const int n : {1, 128, 129, 11008}) {
          const SmallTileVariant choice =
              choose_small_tile(tile, 0, swapped, {m, n, 500, 3}, 2, 1, 132, costs_of_tests());
          EXPECT_GE(choice.row_pairs * 2 * small_tile_rows, swapped ? n : m);
          EXPECT_LT((choice.row_pairs - 1) * 2 * small_tile_rows, swapped ? n : m);
          EXPECT_GE(choice.columns * tile.columns, swapped ? m : n);
          EXPECT_LT((choice.columns - 1) * tile.columns, swapped ? m : n);
          EXPECT_GE(choice.stages, 2);
          EXPECT_LE(choice.stages, max_stages);
          const bool alone = 3 * choice.row_pairs * 2 * choice.columns <= 132;
          EXPECT_LE(tile.shared_bytes(2, choice.stages) + 1024, (alone ? 227 : 114) << 10);
        }
      }
    }
  }
}

// Few rows times prepared weights: the variant that was measured to be fastest (lab/results/log) is
// selected, and its time is expected.
TEST(SmallTiles, TheShorterSideOfCIsTakenAsColumns) {
  const auto best = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    SmallTileVariant least;
    for (const bool swapped : {false, true}) {
      for (std::size_t tile = 0; tile < hopper::small_tiles.size(); ++tile) {
        const SmallTileVariant choice = choose_small_tile(hopper::small_tiles[tile], tile, swapped,
                                                          {m, n, k, 1}, 2, 1, 132, costs_of_tests());
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
    const SmallTileVariant choice = best(m, n, n);
    EXPECT_EQ(hopper::small_tiles[choice.tile].columns, columns) << m << " x " << n;
    EXPECT_TRUE(choice.swapped);
    EXPECT_NEAR(choice.microseconds, measured, 0.15 * measured);
  }
  EXPECT_EQ(hopper::small_tiles[best(128, 8192, 8192).tile].columns, 64);
  EXPECT_EQ(hopper::small_tiles[best(512, 512, 512).tile].columns, 64);
}

// Segments of k are given to separate thread blocks where tiles are few and k is long, and where the
// segments' sums fit into their memory.
TEST(SmallTiles, SeparateSegmentsAreForLongK) {
  const auto expected_time = [](std::int64_t n, std::int64_t k, std::int32_t sums, std::int32_t segments) {
    return choose_small_tile(hopper::small_tiles[1], 1, false, {n, n, k, 1}, 2, sums, 132, costs_of_tests(),
                             segments)
        .microseconds;
  };
  for (const auto& [n, k] :
       {std::pair<std::int64_t, std::int64_t>{64, 1 << 20}, {100, 100000}, {768, 131072}})
    EXPECT_LT(expected_time(n, k, 4, 16), 0.7 * expected_time(n, k, 4, 1)) << n << ", k = " << k;
  for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{64, 1024}, {512, 2048}, {768, 1024}})
    EXPECT_GT(expected_time(n, k, 4, 4), expected_time(n, k, 4, 1)) << n << ", k = " << k;
  EXPECT_EQ(segment_sum_bytes(768, 768, 1, 1), std::nullopt);
  EXPECT_EQ(segment_sum_bytes(768, 700, 1, 16), 768 * 768 * 16 * 4);
  EXPECT_EQ(segment_sum_bytes(1024, 1024, 1, 16), max_segment_bytes);
  EXPECT_EQ(segment_sum_bytes(1025, 1024, 1, 16), std::nullopt);
}

TEST(TileSchedule, FewTilesAreOneWave) {
  const TileSchedule schedule = make_tile_schedule(2, 3, 1, 8, 66);
  EXPECT_EQ(schedule.clusters, 6);
  EXPECT_EQ(schedule.waves, 1);
  EXPECT_EQ(schedule.split_tiles(), 0);
}

}  // namespace
}  // namespace kintsugi::core::cuda
