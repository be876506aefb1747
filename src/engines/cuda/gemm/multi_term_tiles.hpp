// Variants: ways to compute a product by the multi-term GEMM kernels, with their expected times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "base/memory.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/gemm/mma_params.hpp"

namespace kintsugi::core::cuda {

// Rows and columns of C, inner indices and batch items.
struct ProductSize {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t items;
};

struct ClusterTileVariant {
  std::size_t tile = 0;  // index
  TileSchedule schedule;
  double microseconds = 0;
};

// Time of a small tile's k-block with this number of sub-blocks, relative to a k-block with one sub-block.
// `alone` says that the tile has an SM of its own.
constexpr double block_factor(const SmallTile& tile, std::int32_t sub_blocks, bool alone,
                              const MultiTermCosts& costs) {
  if (sub_blocks == 1 || tile.columns == 32) return 1;
  if (sub_blocks == 2) return costs.two_sums_factor;
  return alone ? costs.four_sums_factor_alone : costs.four_sums_factor;
}

// Variant by tile `index`, for a device that holds `clusters` clusters.
constexpr ClusterTileVariant choose_tile_schedule(const MultiTermTile& tile, std::size_t index,
                                                  const TileTimes& times, const ProductSize& size,
                                                  std::int32_t sub_blocks, std::int32_t clusters,
                                                  const MultiTermCosts& costs) {
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  const TileSchedule schedule =
      make_tile_schedule(count(size.m, term_tile_rows), count(size.n, tile.columns),
                         static_cast<std::int32_t>(size.items), count(size.k, term_block), clusters);
  const int waves = schedule.waves + (schedule.split_tiles() > 0 ? 1 : 0);
  const double k_blocks_of_cluster = static_cast<double>(std::int64_t{schedule.waves} * schedule.k_blocks +
                                                         k_blocks_of_split_tiles(schedule));
  const double block_time = times.block * (sub_blocks == 1 ? 1 : costs.two_sums_factor);
  return {index, schedule, costs.launch + k_blocks_of_cluster * block_time + waves * times.tile};
}

struct SmallTileVariant {
  std::size_t tile = 0;        // index
  bool swapped = false;        // the kernel computes C transposed
  std::int32_t row_pairs = 0;  // pairs of rows of tiles
  std::int32_t columns = 0;    // columns of tiles
  std::int32_t stages = 0;     // pipeline stages
  std::int32_t segments = 1;   // segments of k that are computed in parallel; 1 means none
  double microseconds = 0;
};

// Bytes of the sums of all segments of k, for tiles of any size. There is no result if k is one segment.
// There is none either if the sums exceed max_segment_bytes: then tiles fill the device, and parallel
// segments gain nothing.
constexpr std::optional<std::int64_t> segment_sum_bytes(std::int64_t rows, std::int64_t columns,
                                                        std::int64_t items, std::int64_t segments) {
  constexpr std::int64_t max_side = 128;  // of a tile and of a pair of tiles
  const double elements = static_cast<double>(round_up(rows, max_side)) *
                          static_cast<double>(round_up(columns, max_side)) * static_cast<double>(items);
  const double bytes = elements * static_cast<double>(segments) * sizeof(float);
  if (segments == 1 || bytes > static_cast<double>(max_segment_bytes)) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

// Variant by small tile `index`, for a product with `slices` slices of each operand. `segments` counts the
// segments of k that are computed in parallel; 1 means none.
constexpr SmallTileVariant choose_small_tile(const SmallTile& tile, std::size_t index, bool swapped,
                                             const ProductSize& size, int slices, std::int32_t sub_blocks,
                                             std::int32_t sm_count, const MultiTermCosts& costs,
                                             std::int32_t segments = 1) {
  constexpr std::int64_t shared_bytes = 227 << 10;  // limit of a thread block; an SM has 1 KiB more
  const double cache_rate = tile.columns > 32 ? costs.cache_rate : costs.narrow_cache_rate;
  const std::int64_t k_blocks = divide_up(size.k, term_block);
  const std::int64_t vector_bytes = slices * term_block * 2;  // of all slices of a vector in a k-block
  const double operand_bytes = static_cast<double>(size.items * (size.m + size.n) * k_blocks * vector_bytes);
  SmallTileVariant variant{.tile = index, .swapped = swapped};
  variant.row_pairs =
      static_cast<std::int32_t>(divide_up(swapped ? size.n : size.m, small_tile_rows * gemm_cluster_size));
  variant.columns = static_cast<std::int32_t>(divide_up(swapped ? size.m : size.n, tile.columns));
  variant.segments = segments;
  const std::int64_t tiles = size.items * variant.row_pairs * gemm_cluster_size * variant.columns * segments;
  const auto stages_in = [&](std::int64_t bytes) {
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(max_stages, (bytes - 2048) / tile.stage_bytes(slices)));
  };
  variant.stages = stages_in(tiles > sm_count ? shared_bytes / 2 : shared_bytes);
  const auto tiles_per_sm = static_cast<double>(divide_up(tiles, sm_count));
  const std::int64_t tile_k_blocks = divide_up(k_blocks, segments);
  const double loaded_bytes = static_cast<double>(tiles * tile_k_blocks * vector_bytes) *
                              (small_tile_rows + tile.columns / static_cast<double>(gemm_cluster_size));
  const SmallTileTimes& times = costs.small_tiles[index];
  const double block_time = tiles_per_sm > 1 ? tiles_per_sm * times.shared : times.alone;
  const double computed_time = static_cast<double>(tile_k_blocks) * block_time *
                               block_factor(tile, sub_blocks, tiles_per_sm <= 1, costs);
  // The sums of segments are written once and read once.
  const double sum_bytes =
      segments == 1 ? 0 : 2.0 * static_cast<double>(tiles * small_tile_rows * tile.columns) * sizeof(float);
  variant.microseconds =
      costs.launch + tiles_per_sm * costs.small_tile +
      std::max({computed_time, operand_bytes / costs.memory_rate, loaded_bytes / cache_rate}) +
      (segments == 1 ? 0 : costs.segment_sums + sum_bytes / costs.memory_rate);
  return variant;
}

// Shared memory of a device.
struct SharedBytes {
  std::int64_t of_block;  // most of a thread block
  std::int64_t of_sm;
};

struct MmaTileVariant {
  std::size_t tile = 0;     // index
  std::int32_t stages = 0;  // pipeline stages; 0: the tile does not fit shared memory
  TileSchedule schedule{};  // with the number of thread blocks in the place of clusters
  double microseconds = 0;
};

// Variant by mma tile `index`, for a product with `slices` slices of each operand. Thread blocks of wide
// tiles need all registers of an SM; two others share an SM, if it has the shared memory and there are so
// many tiles.
constexpr MmaTileVariant choose_mma_tile(const MmaTile& tile, std::size_t index, const TileTimes& times,
                                         const ProductSize& size, int slices, std::int32_t sub_blocks,
                                         std::int32_t sm_count, const SharedBytes& shared,
                                         const MultiTermCosts& costs) {
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  const std::int32_t rows = count(size.m, tile.rows);
  const std::int32_t columns = count(size.n, tile.columns);
  const std::int64_t tiles = std::int64_t{rows} * columns * size.items;
  const std::int64_t k_blocks = divide_up(size.k, term_block);
  const auto stages_in = [&](std::int64_t bytes) { return (bytes - mma_static_bytes) / tile.stage_bytes(); };
  std::int32_t blocks_of_sm = tiles > sm_count ? tile.blocks_of_sm() : 1;
  const std::int64_t half = shared.of_sm / 2 - reserved_bytes_of_block;
  if (blocks_of_sm == 2 && stages_in(half) < min_mma_stages(slices)) blocks_of_sm = 1;
  // More stages would be loaded ahead of the next tile's begin (MmaLoader).
  const std::int64_t stages =
      std::min({std::int64_t{max_mma_stages}, stages_in(blocks_of_sm == 2 ? half : shared.of_block),
                slices * (k_blocks + 1) - 1});
  MmaTileVariant variant{.tile = index};
  if (stages >= min_mma_stages(slices))
    variant.stages = stages < max_mma_stages ? min_mma_stages(slices) : max_mma_stages;
  variant.schedule = make_whole_tile_schedule(rows, columns, static_cast<std::int32_t>(size.items),
                                              static_cast<std::int32_t>(k_blocks), sm_count * blocks_of_sm);
  double block_time = times.block;
  if (sub_blocks == 2) block_time *= costs.two_sums_factor;
  if (sub_blocks == 4) block_time *= costs.four_sums_factor;
  variant.microseconds = costs.launch + static_cast<double>(divide_up(tiles, sm_count)) *
                                            (static_cast<double>(k_blocks) * block_time + times.tile);
  return variant;
}

}  // namespace kintsugi::core::cuda
