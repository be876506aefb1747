#include "engines/cuda/gemm/weighted_tile_gemm.hpp"

#include <algorithm>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/weighted_tile_params.hpp"

namespace kintsugi::core::cuda {

namespace {

// Kernel that computes the schedule, or nullptr.
const WeightedTileKernel* find_kernel(const Schedule& schedule) {
  const Family& family = current_family();
  if (!family.has_gemm_kernels()) return nullptr;
  const auto found = std::ranges::find_if(family.weighted_tiles, [&](const WeightedTileKernel& kernel) {
    return kernel.tile.slices_a == schedule.slices_a && kernel.tile.slices_b == schedule.slices_b &&
           kernel.takes(schedule.tiles.depth);
  });
  return found == family.weighted_tiles.end() ? nullptr : &*found;
}

// Tensor map of the weights of all tiles of `items` batch items. A box of the map has the weights of `panels`
// panels, each with `tiles` tiles along k.
TensorMap weight_map(const Slices& slices, std::int64_t items, int panels, int tiles) {
  TensorMap map;
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t lengths[3]{extent(slices.padded_vectors() / slices.tile_vectors),
                                 extent(slices.tiles_of_vector()), extent(items)};
  const std::uint64_t strides[2]{extent(slices.tile_panels()) * sizeof(float),
                                 extent(slices.tile_panels() * slices.tiles_of_vector()) * sizeof(float)};
  const std::uint32_t box[3]{static_cast<std::uint32_t>(panels), static_cast<std::uint32_t>(tiles), 1};
  const std::uint32_t steps[3]{1, 1, 1};
  check(driver().tensor_map_encode(&map, tensor_map_words, 3, slices.tile_weights, lengths, strides, box,
                                   steps, 0, tensor_map_no_swizzle, tensor_map_promotion_256, 0),
        "cuTensorMapEncodeTiled");
  return map;
}

// Order of a kernel's tiles of C. `k` includes padding.
TileSchedule tile_schedule(const WeightedTileKernel& kernel, std::int64_t rows, std::int64_t columns,
                           std::int64_t k, std::int64_t items) {
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  return make_whole_tile_schedule(count(rows, gemm_cluster_size * WeightedTile::rows),
                                  count(columns, kernel.tile.columns), static_cast<std::int32_t>(items),
                                  count(k, WeightedTile::block), clusters_of_device());
}

// Number of thread blocks that look for failing tiles in one batch item.
std::int64_t failing_blocks_of(std::int64_t rows, std::int64_t columns) {
  return divide_up(rows, failing_rows) * divide_up(columns, failing_columns);
}

WeightedTileParams params_of(const DeviceFusedProduct& product, const WeightedTileKernel& kernel,
                             std::byte* scratch) {
  WeightedTileParams params;
  params.tile = product.tile;
  params.shares_a = product.shares_a;
  params.shares_b = product.shares_b;
  params.schedule = tile_schedule(kernel, product.tile.rows, product.tile.columns, product.a.vector_stride(),
                                  product.items);
  params.weights_a = product.a.tile_weights;
  params.weights_b = product.b.tile_weights;
  params.failures_a = product.a.tile_failures;
  params.failures_b = product.b.tile_failures;
  params.panels_a = product.a.tile_panels();
  params.panels_b = product.b.tile_panels();
  params.block_k_tiles = WeightedTile::block_k_tiles(product.schedule->tiles.depth);
  params.tiles_of_vector = static_cast<std::int32_t>(product.a.tiles_of_vector());
  params.failing_sums = reinterpret_cast<float*>(scratch);
  return params;
}

// One launch takes all items. The planner lets at most 256 MiB of slices be multiplied at once
// (items_at_once()), and an item's slices take at least 32 KiB.
void multiply_failing_tiles(const Queue& queue, WeightedTileParams params, std::int64_t items, int depth) {
  const std::int64_t blocks = failing_blocks_of(params.tile.rows, params.tile.columns);
  launch(*current_family().failing_tiles, {blocks, items}, failing_threads, failing_shared_bytes, queue,
         params, depth);
}

}  // namespace

bool has_weighted_tile_gemm(const Schedule& schedule, FormatId format, ElementType type) {
  return format == FormatId::int8 && type == ElementType::f32 && !schedule.tiles.pair_exponent &&
         find_kernel(schedule) != nullptr;
}

std::size_t weighted_tile_scratch_bytes(const DeviceShape& shape) {
  return array_bytes(shape.items * divide_up(shape.m, weighted_tile_rows),
                     divide_up(shape.n, weighted_tile_columns) * failing_sums_of_panels, sizeof(float));
}

void launch_weighted_tile_gemm(const Queue& queue, const DeviceFusedProduct& product, const FusedVariant&,
                               std::byte* scratch) {
  const WeightedTileKernel& kernel = *find_kernel(*product.schedule);
  const WeightedTileParams params = params_of(product, kernel, scratch);
  multiply_failing_tiles(queue, params, product.items, product.schedule->tiles.depth);
  const std::int64_t items_a = product.shares_a ? 1 : product.items;
  const std::int64_t items_b = product.shares_b ? 1 : product.items;
  launch(kernel.kernel, {gemm_cluster_size * std::int64_t{params.schedule.clusters}, 1, 1, gemm_cluster_size},
         WeightedTile::threads, kernel.tile.shared_bytes(), queue,
         tensor_map(product.a, items_a, WeightedTile::rows),
         tensor_map(product.b, items_b, kernel.tile.columns / gemm_cluster_size),
         weight_map(product.a, items_a, WeightedTile::row_panels, params.block_k_tiles),
         weight_map(product.b, items_b, kernel.tile.column_panels(), params.block_k_tiles), params);
}

// All tiles of a cluster take equally long. Levels with fewer products convert as many sums.
double expected_weighted_tile_gemm_time(const DeviceShape& shape, const WeightedTileCosts& costs) {
  const WeightedTileKernel& kernel = *find_kernel(shape.schedule);
  // A schedule counts tiles in 32 bits, so it is made for 1024 items at most.
  const std::int64_t scheduled_items = std::min<std::int64_t>(shape.items, 1024);
  const TileSchedule schedule = tile_schedule(kernel, shape.m, shape.n, shape.k, scheduled_items);
  const double more_items = static_cast<double>(shape.items) / static_cast<double>(scheduled_items);
  const auto tiles_of_cluster = static_cast<double>(
      divide_up(schedule.tiles(), static_cast<std::int64_t>(std::max(schedule.clusters, 1))));
  const double conversion = kernel.depth == 32 ? costs.conversion_32 : costs.conversion_128;
  const double k_block = static_cast<double>(shape.schedule.terms.size()) * costs.product +
                         WeightedTile::block_k_tiles(shape.schedule.tiles.depth) * conversion;
  constexpr double columns_of_costs = 128;
  const double tile_time =
      kernel.tile.columns / columns_of_costs * (schedule.k_blocks * k_block + costs.tile);
  const double failing_time =
      static_cast<double>(failing_blocks_of(shape.m, shape.n) * shape.items) / costs.failing_rate;
  return costs.launch + failing_time + more_items * tiles_of_cluster * tile_time;
}

namespace {

// Time of a kernel that reads, and perhaps writes, `bytes` bytes for each element of the operands of the
// shape that are not prepared. `rate`: bytes per microsecond.
template <class Bytes>
double time_to_read_operands(const DeviceShape& shape, const Bytes& bytes, double launch, double rate) {
  const auto time = [&](bool is_prepared, std::int64_t vectors, int slices) {
    const double elements =
        static_cast<double>(shape.items) * static_cast<double>(vectors) * static_cast<double>(shape.k);
    return is_prepared ? 0 : launch + bytes(slices) * elements / rate;
  };
  return time(shape.prepared_a, shape.m, shape.schedule.slices_a) +
         time(shape.prepared_b, shape.n, shape.schedule.slices_b);
}

}  // namespace

double expected_packing_time(const DeviceShape& shape, const Costs& costs) {
  const auto bytes = [](int slices) { return sizeof(float) + static_cast<double>(slices); };
  return time_to_read_operands(shape, bytes, costs.packing.launch, costs.packing.rate * costs.call.copy_rate);
}

// Before operands are packed, a kernel finds their ranges and mean depths, by which the other candidates of
// the chain accept.
DeviceTimes expected_weighted_tile_times(const DeviceShape& shape, const Costs& costs) {
  const bool is_prepared = shape.prepared_a || shape.prepared_b;
  const auto read_bytes = [](int) { return double{sizeof(float)}; };
  const double ranges_time =
      time_to_read_operands(shape, read_bytes, costs.packing.launch, costs.call.copy_rate);
  return {ranges_time + expected_packing_time(shape, costs) +
              expected_weighted_tile_gemm_time(shape, costs.weighted_tiles) +
              (is_prepared ? costs.call.prepared_selection : costs.call.selection),
          expected_vendor_time(shape, costs.call)};
}

}  // namespace kintsugi::core::cuda
