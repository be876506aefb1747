#include "engines/cuda/gemm/weighted_tiles/weighted_tile_gemm.hpp"

#include <algorithm>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/weighted_tiles/failing_tile.hpp"

namespace kintsugi::core::cuda {

namespace {

// Kernel that computes the schedule, or nullptr.
const WeightedTileKernel* find_kernel(const Schedule& schedule) {
  const Architecture& architecture = current_architecture();
  if (!architecture.has_gemm_kernels()) return nullptr;
  const auto found = std::ranges::find_if(architecture.weighted_tiles, [&](const WeightedTileKernel& kernel) {
    return kernel.tile.slices_a == schedule.slices_a && kernel.tile.slices_b == schedule.slices_b &&
           kernel.depth == schedule.tiles.depth;
  });
  return found == architecture.weighted_tiles.end() ? nullptr : &*found;
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

WeightedTileParams params_of(const DeviceFusedProduct& product, const WeightedTileKernel& kernel,
                             std::byte* scratch) {
  WeightedTileParams params;
  params.tile = product.tile;
  params.shares_a = product.shares_a;
  params.shares_b = product.shares_b;
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  const std::int32_t k_blocks = count(product.a.vector_stride(), WeightedTile::block);
  params.schedule =
      make_whole_tile_schedule(count(product.tile.rows, gemm_cluster_size * WeightedTile::rows),
                               count(product.tile.columns, kernel.tile.columns),
                               static_cast<std::int32_t>(product.items), k_blocks, clusters_of_device());
  params.weights_a = product.a.tile_weights;
  params.weights_b = product.b.tile_weights;
  params.failures_a = product.a.tile_failures;
  params.failures_b = product.b.tile_failures;
  params.panels_a = product.a.tile_panels();
  params.panels_b = product.b.tile_panels();
  params.tiles_of_vector = static_cast<std::int32_t>(product.a.tiles_of_vector());
  params.failing_sums = reinterpret_cast<float*>(scratch);
  return params;
}

// One launch takes all items. The planner lets at most 256 MiB of slices be multiplied at once
// (items_at_once()), and an item's slices take at least 32 KiB.
void multiply_failing_tiles(const Queue& queue, WeightedTileParams params, std::int64_t items, int depth) {
  static const KernelName kernel{"failing_tiles_sm90a", "multiply_failing_tiles", waits_for_grid_dependency};
  const std::int64_t blocks =
      divide_up(params.tile.rows, failing_rows) * divide_up(params.tile.columns, failing_columns);
  launch(kernel, {blocks, items}, failing_threads, failing_shared_bytes, queue, params, depth);
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

void weighted_tile_gemm(const Queue& queue, const DeviceFusedProduct& product, std::byte* scratch) {
  const WeightedTileKernel& kernel = *find_kernel(*product.schedule);
  const WeightedTileParams params = params_of(product, kernel, scratch);
  multiply_failing_tiles(queue, params, product.items, kernel.depth);
  const int block_k_tiles = WeightedTile::block_k_tiles(kernel.depth);
  const std::int64_t items_a = product.shares_a ? 1 : product.items;
  const std::int64_t items_b = product.shares_b ? 1 : product.items;
  launch(kernel.kernel, {gemm_cluster_size * std::int64_t{params.schedule.clusters}, 1, 1, gemm_cluster_size},
         WeightedTile::threads, kernel.tile.shared_bytes(), queue,
         tensor_map(product.a, items_a, WeightedTile::rows),
         tensor_map(product.b, items_b, kernel.tile.columns / gemm_cluster_size),
         weight_map(product.a, items_a, WeightedTile::row_panels, block_k_tiles),
         weight_map(product.b, items_b, kernel.tile.column_panels(), block_k_tiles), params);
}

}  // namespace kintsugi::core::cuda
