#include <algorithm>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/dmma_gemm.hpp"
#include "engines/cuda/gemm/times.hpp"

namespace kintsugi::core::cuda {

namespace {

// True if the kernel computes the transpose of C. The matrix unit's rows should have an operand whose vectors
// are adjacent in memory, its columns an operand that is contiguous along k. If B is of the first kind and A
// of the second, B is given to the rows and A to the columns.
bool swaps(const DeviceTile& tile) {
  return !tile.a.matrix.complex() && tile.a.matrix.column_stride < tile.a.matrix.row_stride &&
         tile.b.matrix.row_stride < tile.b.matrix.column_stride;
}

DmmaTask task_of(const DeviceTile& tile, const DmmaConfig& config) {
  DmmaTask task{.tile = tile, .swapped = swaps(tile)};
  const std::int64_t rows = task.swapped ? tile.columns : tile.rows;
  const std::int64_t columns = task.swapped ? tile.rows : tile.columns;
  task.row_tiles = static_cast<std::int32_t>(divide_up(rows, config.rows));
  task.column_tiles = static_cast<std::int32_t>(divide_up(columns, config.columns));
  return task;
}

std::int64_t tiles_of(const DmmaTask& task) { return std::int64_t{task.row_tiles} * task.column_tiles; }

// Thread blocks per batch item. If k is short, a thread block computes several tiles; it copies the operands
// of the next tile while it writes the sums of the last one. If k is long, each tile has its own thread
// block, which begins as soon as an SM is free. A product with a condition follows emulations, of which one
// is nearly always selected, so that it exits early: 4096 thread blocks take 8.5 us for that, four times as
// many as the device holds take 3.5.
std::int64_t blocks_of(const DmmaTask& task, const DmmaTile& tile) {
  constexpr std::int64_t long_k = 2048;
  const std::int64_t resident_blocks = std::int64_t{sm_count()} * tile.blocks_per_sm;
  const std::int64_t k = std::max<std::int64_t>(1, task.tile.a.matrix.columns);
  const std::int64_t waves = std::max<std::int64_t>(1, tiles_of(task) * task.tile.items / resident_blocks);
  const std::int64_t blocks =
      divide_up(tiles_of(task), std::min(waves, std::max<std::int64_t>(1, long_k / k)));
  if (task.tile.condition.selection == nullptr) return blocks;
  return std::min(blocks, std::max<std::int64_t>(1, 4 * resident_blocks / task.tile.items));
}

// Returns the fastest tile, and the time per inner index that is expected. The times were measured in short
// products. Long ones run at the clock that the power limit leaves, where the largest tile gains by reading
// the fewest bytes: 128 x 128 took 0.91 of the time of 64 x 64 at n = 8192 and 0.95 at 4096,
// though 1.1 of it was expected (2026-11-24).
TileChoice choose_tile(const DmmaKernels& kernels, const NativeShape& shape, const Costs& costs) {
  constexpr double long_product = 1000;  // microseconds
  constexpr double power_gain = 1.15;    // ratio of expected times up to which the largest tile is chosen
  const auto& times = costs.native[static_cast<std::size_t>(shape.type)].tile_index;
  const TileChoice fastest =
      fastest_tile(kernels.tiles, std::span<const double>(times), shape.m, shape.n, shape.items, sm_count());
  const TileChoice largest = fastest_tile(kernels.tiles.first(1), std::span<const double>(times), shape.m,
                                          shape.n, shape.items, sm_count());
  const double k = static_cast<double>(shape.k) + costs.native_call.tile_ends;
  const bool is_long = fastest.time * k >= long_product;
  return is_long && largest.time <= power_gain * fastest.time ? TileChoice{0, fastest.time} : fastest;
}

// Returns the tile for a device without a profile. Every element of C is expected to take the same time.
TileChoice choose_unmeasured_tile(const DmmaKernels& kernels, const NativeShape& shape) {
  std::array<double, max_tiles> times{};
  std::ranges::transform(kernels.tiles, times.begin(), [](const DmmaTile& tile) {
    return static_cast<double>(tile.rows()) * tile.columns() * tile.blocks_per_sm;
  });
  return fastest_tile(kernels.tiles, std::span<const double>(times), shape.m, shape.n, shape.items,
                      sm_count());
}

}  // namespace

double dmma_time(const DmmaKernels& kernels, const NativeShape& shape, const Costs& costs) {
  return choose_tile(kernels, shape, costs).time *
         (static_cast<double>(shape.k) + costs.native_call.tile_ends);
}

void multiply_by_dmma(const Queue& queue, const DmmaKernels& kernels, const DeviceTile& tile) {
  const bool swapped = swaps(tile);
  const NativeShape shape{.type = tile.c.type,
                          .m = swapped ? tile.columns : tile.rows,
                          .n = swapped ? tile.rows : tile.columns,
                          .k = tile.a.matrix.columns,
                          .items = tile.items};
  const ProfileInForce* in_force = profile_in_force();
  const std::size_t index = (in_force != nullptr ? choose_tile(kernels, shape, in_force->profile.costs)
                                                 : choose_unmeasured_tile(kernels, shape))
                                .index;
  const DmmaTile& chosen = kernels.tiles[index];
  const DeviceMatrix& column_operand = swapped ? tile.a.matrix : tile.b.matrix;
  const bool along_k = column_operand.complex() || column_operand.column_stride < column_operand.row_stride;
  const KernelName& kernel = (along_k ? kernels.along_k : kernels.in_panels)[index];
  for_each_launch(tile.items, [&](std::int64_t first, std::int64_t items) {
    const DmmaTask task = task_of(from_item(tile, first), chosen.config);
    launch(kernel, {blocks_of(task, chosen), items}, chosen.config.threads(), chosen.config.shared_bytes(),
           queue, task);
  });
}

}  // namespace kintsugi::core::cuda
