#include "engines/cuda/gemm/simt_tiles.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/times.hpp"
#include "engines/cuda/select/select.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

#define KINTSUGI_SIMT(name) \
  KernelName { "simt_gemm", name, waits_for_grid_dependency }
// Kernels of each element type, in the order of the family's tiles.
const std::array<KernelName, 3> kernels_f32{{KINTSUGI_SIMT("multiply_f32_simt_128"),
                                             KINTSUGI_SIMT("multiply_f32_simt_64"),
                                             KINTSUGI_SIMT("multiply_f32_simt_32")}};
const std::array<KernelName, 1> kernels_f64{{KINTSUGI_SIMT("multiply_f64_simt_64")}};
const std::array<KernelName, 2> kernels_c32{
    {KINTSUGI_SIMT("multiply_c32_simt_64"), KINTSUGI_SIMT("multiply_c32_simt_32")}};
const std::array<KernelName, 1> kernels_c64{{KINTSUGI_SIMT("multiply_c64_simt_32")}};
const std::array<std::span<const KernelName>, 4> kernels_of_types{kernels_f32, kernels_f64, kernels_c32,
                                                                  kernels_c64};
// Selects the candidate first. It has the narrowest tile of FP32.
const KernelName selecting_kernel = KINTSUGI_SIMT("select_or_multiply_f32_simt_32");
#undef KINTSUGI_SIMT

// Number of tiles of C.
std::int64_t tiles_of(std::int64_t rows, std::int64_t columns, const SimtTile& tile) {
  return divide_up(rows, tile.side) * divide_up(columns, tile.side);
}

// Returns the times of the tiles. For FP32 they are those of the device's profile. For FP64 they are the
// relative times of SimtTile, because the profile's times may be those of DMMA tiles; relative times suffice
// to compare tiles.
std::array<double, 4> times_of(std::size_t type, std::span<const SimtTile> tiles) {
  const ProfileInForce* in_force = profile_in_force();
  const bool is_fp32 = type == static_cast<std::size_t>(ElementType::f32) ||
                       type == static_cast<std::size_t>(ElementType::c32);
  if (in_force != nullptr && is_fp32) return in_force->profile.costs.native[type].tile_index;
  std::array<double, 4> times{};
  std::ranges::transform(tiles, times.begin(), [](const SimtTile& tile) { return double{tile.time}; });
  return times;
}

struct ChosenTile {
  std::size_t index;
  std::int64_t blocks;  // thread blocks per batch item
};

// Returns the expected time if k is not divided.
double time_of_whole_tiles(const NativeShape& shape, const Costs& costs) {
  const auto type = static_cast<std::size_t>(shape.type);
  const std::span<const double> times(costs.native[type].tile_index);
  return fastest_tile(current_family().simt_tiles[type], times, shape.m, shape.n, shape.items, sm_count())
             .time *
         (static_cast<double>(shape.k) + costs.native_call.tile_ends);
}

// A way to divide the inner indices of FP32 products among the thread blocks of clusters.
struct Division {
  std::int64_t blocks = 1;  // thread blocks per tile; 1: the indices are not divided
  double time = std::numeric_limits<double>::infinity();
};

// Number of clusters of `blocks` thread blocks that the device holds at once. The SMs of a cluster belong to
// one GPC, which has 16 or 18 SMs; 16 are assumed.
std::int64_t resident_clusters(std::int64_t blocks) {
  constexpr std::int64_t sms_of_gpc = 16;
  return sm_count() / sms_of_gpc * (sms_of_gpc * simt_tiles_f32[simt_split_tile].blocks_per_sm / blocks);
}

// Returns the fastest division of k; its time is infinite if there is none. A wave counts as if all SMs had
// all their thread blocks. A thread block with an SM to itself is no faster, because with its short part of k
// it mostly waits for memory.
Division fastest_division(const NativeShape& shape, const Costs& costs) {
  constexpr double sums_time = 0.5;  // microseconds in which a cluster adds its parts of a tile
  Division best;
  if (shape.type != ElementType::f32 || shape.k == 0 || !current_family().has_clusters ||
      !current_family().has_gemm_kernels())
    return best;
  const std::int64_t tiles = tiles_of(shape.m, shape.n, simt_tiles_f32[simt_split_tile]) * shape.items;
  for (std::int64_t blocks = 2; blocks <= simt_split_blocks; ++blocks) {
    const std::int64_t length = split_length(shape.k, blocks);
    if (divide_up(shape.k, length) < blocks) continue;  // a thread block would have nothing to multiply
    const auto waves =
        static_cast<double>(divide_up(tiles, std::max<std::int64_t>(1, resident_clusters(blocks))));
    const double time = sums_time + waves * (static_cast<double>(length) + costs.native_call.tile_ends) *
                                        costs.native[0].tile_index[simt_split_tile];
    if (time < best.time) best = {blocks, time};
  }
  return best;
}

void multiply_with_divided_k(const Queue& queue, const DeviceTile& tile, std::int64_t blocks) {
  static const KernelName kernel{"simt_split_clusters", "multiply_f32_simt_64_split",
                                 waits_for_grid_dependency};
  const std::int64_t tiles = tiles_of(tile.rows, tile.columns, simt_tiles_f32[simt_split_tile]);
  for_each_launch(tile.items, [&](std::int64_t first, std::int64_t items) {
    launch(kernel, {.x = tiles * blocks, .y = items, .cluster = blocks}, simt_threads, no_shared_bytes, queue,
           from_item(tile, first));
  });
}

ChosenTile choose_tile(const DeviceTile& tile) {
  const auto type = static_cast<std::size_t>(tile.c.type);
  const std::span<const SimtTile> tiles = current_family().simt_tiles[type];
  const std::size_t index = fastest_tile(tiles, std::span<const double>(times_of(type, tiles)), tile.rows,
                                         tile.columns, tile.items, sm_count())
                                .index;
  return {index, tiles_of(tile.rows, tile.columns, tiles[index])};
}

}  // namespace

// k is not divided in two cases. In a fallback chain, the native product must have the bits of
// select_or_multiply_unsliced(). Without a profile, no costs of clusters are known.
std::int64_t blocks_per_tile(const DeviceTile& tile) {
  const ProfileInForce* in_force = profile_in_force();
  if (in_force == nullptr || tile.condition.selection != nullptr) return 1;
  const NativeShape shape{.type = tile.c.type,
                          .m = tile.rows,
                          .n = tile.columns,
                          .k = tile.a.matrix.columns,
                          .items = tile.items};
  const Division division = fastest_division(shape, in_force->profile.costs);
  return division.time < time_of_whole_tiles(shape, in_force->profile.costs) ? division.blocks : 1;
}

double simt_time(const NativeShape& shape, const Costs& costs) {
  return std::min(time_of_whole_tiles(shape, costs), fastest_division(shape, costs).time);
}

void multiply_unsliced(const Queue& queue, const DeviceTile& tile) {
  if (const DmmaKernels* dmma = current_family().available_dmma(tile.c.type); dmma != nullptr)
    return multiply_by_dmma(queue, *dmma, tile);
  if (const std::int64_t blocks = blocks_per_tile(tile); blocks > 1)
    return multiply_with_divided_k(queue, tile, blocks);
  const ChosenTile chosen = choose_tile(tile);
  const KernelName& kernel = kernels_of_types[static_cast<std::size_t>(tile.c.type)][chosen.index];
  for_each_launch(tile.items, [&](std::int64_t first, std::int64_t items) {
    launch(kernel, {chosen.blocks, items}, simt_threads, no_shared_bytes, queue, from_item(tile, first));
  });
}

namespace {

// True if one launch for selection and product by the chosen tile takes no more time than a launch for each.
// In one launch every thread block reads the ranges of its batch item; a selector kernel reads them with one
// thread block. So one launch saves the time of another one (4.4 us of the host) but reads more bytes from
// L2. The products of few rows that it serves have the narrowest tile.
bool selects_and_multiplies(const DeviceTile& tile, const SelectionTask& task, const ChosenTile& chosen) {
  constexpr double max_bytes = 16 << 20;  // bytes of ranges that all thread blocks read
  // Number of vectors whose ranges are read. Those of an operand with a summary are not.
  const auto vectors_of = [&](int side) { return task.summaries[side] == nullptr ? task.vectors[side] : 0; };
  const bool by_ranges = !task.candidates.needs_norms() && !task.candidates.fits;
  return tile.c.type == ElementType::f32 && by_ranges && tile.items <= max_launched_items &&
         chosen.index + 1 == kernels_f32.size() &&
         static_cast<double>(tile.items * chosen.blocks) *
                 static_cast<double>(vectors_of(0) + vectors_of(1)) * sizeof(VectorRange) <=
             max_bytes;
}

}  // namespace

// The kernel that does both is launched with programmatic dependent launch and makes no grid-dependency wait.
// Therefore the preceding kernel must have waited for the kernels that write the ranges, which this kernel
// reads, and for all kernels that use the selections and the report, which this kernel writes.
void select_or_multiply_unsliced(const Queue& queue, const DeviceTile& tile,
                                 const DeviceCandidates& candidates, DeviceSelection* selection,
                                 const DeviceReporting& reporting) {
  const SelectionTask task = selection_task(tile.a, tile.b, tile.scalars, candidates, selection, reporting);
  const ChosenTile chosen = choose_tile(tile);
  if (!selects_and_multiplies(tile, task, chosen)) {
    select(queue, tile.a, tile.b, tile.scalars, candidates, selection, reporting);
    return multiply_unsliced(queue, tile);
  }
  launch(selecting_kernel, {chosen.blocks, tile.items}, simt_threads, no_shared_bytes, queue, tile, task);
}

}  // namespace kintsugi::core::cuda
