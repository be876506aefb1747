#include "engines/cuda/gemm/direct_gemm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/direct_launch.hpp"
#include "engines/cuda/gemm/direct_params.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/times.hpp"

namespace kintsugi::core::cuda {

namespace {

static_assert(sizeof(DirectVariant) <= sizeof(FusedVariant) && std::is_trivially_copyable_v<DirectVariant>);

std::int64_t leaves_of(std::int64_t k) { return divide_up(k, direct_leaf); }

std::int64_t tiles_of(const DirectVariant& variant, const DeviceShape& shape) {
  const std::int64_t rows = variant.swapped ? shape.n : shape.m;
  const std::int64_t columns = variant.swapped ? shape.m : shape.n;
  return shape.items * divide_up(rows, variant.shape().rows) * divide_up(columns, variant.shape().columns);
}

std::int32_t groups_of(std::int64_t k) { return static_cast<std::int32_t>(divide_up(k, direct_group)); }

bool shares_in_memory(const DirectVariant& variant) { return variant.splits > 1 && !variant.is_cluster; }

// A thread block that has all of k keeps running sums up to the level that has one sum.
DirectTree tree_of(const DirectVariant& variant, const DeviceShape& shape) {
  DirectTree tree{.groups = groups_of(shape.k)};
  if (variant.is_cluster) return tree;
  if (variant.splits == 1) {
    tree.level = level_of_all(tree.groups);
    return tree;
  }
  tree.block_bits = std::countr_zero(static_cast<std::uint32_t>(variant.leaves / group_leaves));
  tree.level = std::min(tree.block_bits / level_bits, last_level - 1);
  return tree;
}

// Places of sums of a tile in memory (DirectParams::places).
std::int64_t places_of(const DirectVariant& variant, const DeviceShape& shape) {
  const DirectTree tree = tree_of(variant, shape);
  const int running = tree.level - first_level_in_memory(variant.shape().is_wide());
  if (shares_in_memory(variant)) return tree.pieces() + std::int64_t{std::max(running, 0)} * variant.splits;
  return std::max(running + 1, 0);
}

std::int64_t sum_bytes(const DirectVariant& variant, const DeviceShape& shape) {
  return tiles_of(variant, shape) * places_of(variant, shape) * variant.shape().rows *
         variant.shape().columns * std::int64_t{sizeof(float)};
}

// Bytes of DirectParams::largest and DirectParams::counters.
std::int64_t bytes_of_largest(const DirectVariant& variant, const DeviceShape& shape) {
  if (!shares_in_memory(variant)) return 0;
  return tiles_of(variant, shape) * (variant.shape().rows + variant.shape().columns) *
         std::int64_t{sizeof(std::uint32_t)};
}
std::int64_t bytes_of_counters(const DirectVariant& variant, const DeviceShape& shape) {
  if (!shares_in_memory(variant)) return 0;
  return tiles_of(variant, shape) * tree_of(variant, shape).counters() * std::int64_t{sizeof(std::uint32_t)};
}

// Most bytes of partial sums of thread blocks that divide k. With more, k is not divided.
constexpr std::int64_t max_sum_bytes = std::int64_t{48} << 20;

// Bytes of scratch of the variant for the shape, and for every shape within it.
std::size_t scratch_of(const DirectVariant& variant, const DeviceShape& shape) {
  const std::int64_t sums = sum_bytes(variant, shape);
  return aligned_size(static_cast<std::size_t>(variant.splits > 1 ? std::min(sums, max_sum_bytes) : sums)) +
         aligned_size(
             static_cast<std::size_t>(bytes_of_largest(variant, shape) + bytes_of_counters(variant, shape)));
}

// Sums that one thread block after the other adds up in the end, of a tile's pieces.
std::int64_t pieces_in_turn(const DirectTree& tree) {
  std::int64_t count = 0;
  for (int level = tree.level; sums_of_level(tree.groups, level) > 1; ++level) {
    const int sums = sums_of_level(tree.groups, level);
    count += level + 1 == last_level ? sums : std::min(sums, 1 << level_bits);
  }
  return count;
}

// Pieces whose addition the cost `meeting` has, and the rate in bytes per microsecond of more of them.
constexpr std::int64_t few_pieces = 8;
constexpr double piece_rate = 5e4;

// Expected time of a variant: the thread blocks that an SM computes one after the other, each with its
// k-blocks.
double time_of(const DirectVariant& variant, const DeviceShape& shape, const Costs& costs) {
  const DirectCosts& direct = costs.direct;
  const std::int64_t thread_blocks = tiles_of(variant, shape) * variant.splits;
  // Clusters of four fill only some of the SMs, and three divide no number of them.
  const std::int64_t sms = sm_count();
  const std::int64_t of_clusters = !variant.is_cluster || variant.splits == 2 ? sms : sms / 12 * 12 * 10 / 11;
  const std::int64_t places = variant.shape().blocks_of_sm * of_clusters;
  const auto rounds = static_cast<double>(divide_up(thread_blocks, places));
  const double factor = shape.is_aligned ? 1 : direct.unaligned;
  const std::int64_t blocks =
      std::min(divide_up(shape.k, direct_block), std::int64_t{variant.leaves} * leaf_blocks);
  double sums = 0;
  if (shares_in_memory(variant)) {
    const std::int64_t late_pieces = pieces_in_turn(tree_of(variant, shape)) - few_pieces;
    sums = direct.meeting + 2 * static_cast<double>(sum_bytes(variant, shape)) / costs.call.copy_rate +
           static_cast<double>(std::max<std::int64_t>(late_pieces, 0) * variant.shape().rows *
                               variant.shape().columns * std::int64_t{sizeof(float)}) /
               piece_rate;
  }
  const TileTimes& times = direct.tiles[static_cast<std::size_t>(variant.tile)];
  return direct.launch + sums + rounds * (times.tile + factor * times.block * static_cast<double>(blocks));
}

// Calls visit(variant) for each variant.
template <class Visit>
void for_each_variant(const DeviceShape& shape, const Visit& visit) {
  const auto leaves = static_cast<std::int32_t>(leaves_of(shape.k));
  const std::int32_t groups = groups_of(shape.k);
  const bool has_wide = !current_family().direct->wide.empty();
  for (std::int32_t tile = 0; tile < static_cast<std::int32_t>(direct_tiles.size()); ++tile) {
    const DirectTileShape& of_tile = direct_tiles[static_cast<std::size_t>(tile)];
    if (of_tile.is_wide() && !has_wide) continue;
    for (const bool swapped : {false, true}) {
      // Only tiles of different sides need the other choice.
      if (swapped && (of_tile.rows == of_tile.columns)) continue;
      DirectVariant variant{.tile = tile, .swapped = swapped, .leaves = leaves};
      visit(variant);
      if (of_tile.is_wide()) {
        // Clusters: the leaves of one group, or a group for each thread block.
        variant.is_cluster = true;
        for (variant.splits = 2; variant.splits <= max_direct_cluster; ++variant.splits) {
          variant.leaves = static_cast<std::int32_t>(divide_up(leaves, variant.splits));
          if (divide_up(leaves, variant.leaves) == variant.splits &&
              (leaves <= group_leaves || variant.leaves == group_leaves))
            visit(variant);
        }
        variant.is_cluster = false;
      }
      // For products that leave SMs idle.
      for (std::int32_t of_each = 1; of_each < groups; of_each *= 2) {
        variant.splits = static_cast<std::int32_t>(divide_up(groups, of_each));
        variant.leaves = of_each * group_leaves;
        visit(variant);
      }
    }
  }
}

// Returns the variant of the least expected time; for devices without costs that of the least work.
DirectVariant fastest(const DeviceShape& shape, const Costs* costs) {
  std::optional<DirectVariant> best;
  for_each_variant(shape, [&](DirectVariant variant) {
    if (shares_in_memory(variant) &&
        (sum_bytes(variant, shape) > max_sum_bytes ||
         tiles_of(variant, shape) > variant.shape().blocks_of_sm * std::int64_t{sm_count()}))
      return;
    variant.microseconds =
        costs != nullptr
            ? time_of(variant, shape, *costs)
            : static_cast<double>(tiles_of(variant, shape) * variant.shape().rows * variant.shape().columns) +
                  variant.splits;
    if (!best || variant.microseconds < best->microseconds) best = variant;
  });
  return *best;
}

bool has_times(const Costs& costs) { return costs.direct.launch > 0; }

const Costs* known_costs() {
  return profile_in_force() != nullptr && has_times(current_costs()) ? &current_costs() : nullptr;
}

// Tensor map of an operand's FP32 elements, with boxes of `vectors` vectors along k, or of 64 inner indices;
// an empty one for tiles that are not wide. Nothing if copies of 16 bytes cannot load the operand.
std::optional<TensorMap> operand_map(const DeviceSide& side, std::int64_t items, std::int64_t vectors,
                                     bool is_wide) {
  const DeviceMatrix& matrix = side.matrix;
  const bool along_k = matrix.column_stride == 1;
  const std::int64_t line = along_k ? matrix.row_stride : matrix.column_stride;
  constexpr std::int64_t multiple = 16 / sizeof(float);
  const bool is_strided = matrix.batch_stride != 0;
  if (matrix.data == nullptr || matrix.pointers || (!along_k && matrix.row_stride != 1) ||
      reinterpret_cast<std::uintptr_t>(matrix.data) % 16 != 0 || line % multiple != 0 || line == 0 ||
      matrix.batch_stride % multiple != 0)
    return std::nullopt;
  const auto size = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::int64_t lines = along_k ? matrix.rows : matrix.columns;
  const std::uint64_t lengths[3]{size(along_k ? matrix.columns : matrix.rows), size(lines),
                                 size(is_strided ? side.item + items : 1)};
  const std::uint64_t strides[2]{size(line) * sizeof(float),
                                 size(is_strided ? matrix.batch_stride : line * lines) * sizeof(float)};
  constexpr std::uint64_t max_stride = std::uint64_t{1} << 40;
  constexpr std::uint64_t max_length = std::uint64_t{1} << 32;
  if (lengths[0] > max_length || lengths[1] > max_length || strides[0] >= max_stride ||
      strides[1] >= max_stride)
    return std::nullopt;
  if (!is_wide) return TensorMap{};
  const std::uint32_t box[3]{32, static_cast<std::uint32_t>(along_k ? vectors : direct_block), 1};
  const std::uint32_t steps[3]{1, 1, 1};
  TensorMap map;
  check(driver().tensor_map_encode(&map, tensor_map_fp32, 3, const_cast<void*>(matrix.data), lengths, strides,
                                   box, steps, 0, tensor_map_swizzle_128, tensor_map_promotion_256, 0),
        "cuTensorMapEncodeTiled");
  return map;
}

const KernelName& kernel_of(const DirectVariant& variant, std::size_t layout) {
  const DirectKernels& kernels = *current_family().direct;
  const DirectTileShape& tile = variant.shape();
  if (!tile.is_wide()) return (tile.rows == large_mma_edge ? kernels.large : kernels.small)[layout];
  return kernels.wide[variant.swapped ? 1 : 0][layout];
}

}  // namespace

DirectLaunch direct_launch(const DeviceTile& tile, const DirectVariant& variant, const DeviceShape& shape) {
  DirectLaunch launch;
  DirectParams& params = launch.params;
  params.tile = tile;
  params.swapped = variant.swapped ? 1 : 0;
  params.blocks = static_cast<std::int32_t>(divide_up(shape.k, direct_block));
  const DeviceSide& rows = variant.swapped ? tile.b : tile.a;
  const DeviceSide& columns = variant.swapped ? tile.a : tile.b;
  params.row_tiles =
      static_cast<std::int32_t>(divide_up(variant.swapped ? shape.n : shape.m, variant.shape().rows));
  params.column_tiles =
      static_cast<std::int32_t>(divide_up(variant.swapped ? shape.m : shape.n, variant.shape().columns));
  params.tile_columns = variant.shape().columns;
  params.splits = variant.splits;
  params.by_row_tiles = Divisor(static_cast<std::uint32_t>(params.row_tiles));
  params.by_splits = Divisor(static_cast<std::uint32_t>(params.splits));
  params.leaves = variant.leaves;
  const bool is_wide = variant.shape().is_wide();
  launch.row_map = operand_map(rows, shape.items, wide_rows / 2, is_wide);
  launch.column_map = operand_map(columns, shape.items, variant.shape().columns, is_wide);
  const auto side_of = [](const DeviceSide& side, bool is_aligned, std::int64_t begin) {
    const bool is_strided = side.matrix.batch_stride != 0;
    return DirectSide{.is_aligned = is_aligned ? 1 : 0,
                      .begin = static_cast<std::int32_t>(begin),
                      .item = is_strided ? static_cast<std::int32_t>(side.item) : 0,
                      .item_step = is_strided ? 1 : 0};
  };
  params.sides[0] =
      side_of(rows, launch.row_map.has_value(), variant.swapped ? tile.first_column : tile.first_row);
  params.sides[1] =
      side_of(columns, launch.column_map.has_value(), variant.swapped ? tile.first_row : tile.first_column);
  params.tree = tree_of(variant, shape);
  params.places = static_cast<std::int32_t>(places_of(variant, shape));
  const DeviceMatrix& c = tile.c;
  const std::int64_t offset = tile.first_row * c.row_stride + tile.first_column * c.column_stride;
  params.c = {.by_pointer = c.pointers ? 1 : 0,
              .offset = offset,
              .item_stride = c.batch_stride,
              .rows = variant.swapped ? tile.columns : tile.rows,
              .columns = variant.swapped ? tile.rows : tile.columns,
              .row_stride = variant.swapped ? c.column_stride : c.row_stride,
              .column_stride = variant.swapped ? c.row_stride : c.column_stride};
  if (c.pointers)
    params.c.data = static_cast<float**>(const_cast<void*>(c.data)) + tile.item;
  else
    params.c.data = static_cast<float*>(const_cast<void*>(c.data)) + tile.item * c.batch_stride + offset;
  launch.layout = (rows.matrix.column_stride == 1 ? 0 : 2) + (columns.matrix.column_stride == 1 ? 0 : 1);
  return launch;
}

namespace {

// One launch, for at most max_launched_items batch items.
void launch_items(const Queue& queue, const DeviceFusedProduct& product, const DirectVariant& variant,
                  std::int64_t first, const DeviceShape& shape, std::byte* scratch) {
  DirectLaunch made = direct_launch(from_item(product.tile, first), variant, shape);
  DirectParams& params = made.params;
  params.report = product.report;
  params.partial_sums = reinterpret_cast<float*>(scratch);
  std::byte* const cleared = scratch + aligned_size(static_cast<std::size_t>(sum_bytes(variant, shape)));
  const std::int64_t bytes_of_all_largest = bytes_of_largest(variant, shape);
  params.largest = reinterpret_cast<std::uint32_t*>(cleared);
  params.counters = reinterpret_cast<std::uint32_t*>(cleared + bytes_of_all_largest);
  if (shares_in_memory(variant))
    clear(queue, cleared, static_cast<std::size_t>(bytes_of_all_largest + bytes_of_counters(variant, shape)));
  const Extent grid{.x = std::int64_t{params.row_tiles} * params.column_tiles * variant.splits,
                    .y = shape.items,
                    .cluster = variant.is_cluster ? variant.splits : 0};
  const KernelName& kernel = kernel_of(variant, made.layout);
  const bool is_wide = variant.shape().is_wide();
  if (is_wide)
    launch(kernel, grid, wide_threads, wide_shared_bytes, queue, made.row_map.value_or(TensorMap{}),
           made.column_map.value_or(TensorMap{}), params);
  else
    launch(kernel, grid, direct_mma_threads, direct_mma_shared_bytes(variant.shape().rows), queue, params);
}

}  // namespace

bool has_direct_gemm(const Schedule& schedule, FormatId format, ElementType type) {
  return schedule.is_direct && format == FormatId::bf16 && type == ElementType::f32 &&
         current_family().direct != nullptr && current_family().has_gemm_kernels();
}

FusedVariant choose_direct_gemm(const DeviceShape& shape) {
  const DirectVariant chosen = fastest(shape, known_costs());
  FusedVariant variant;
  std::memcpy(variant.data.data(), &chosen, sizeof chosen);
  return variant;
}

// Blocks of C within the shape may have another variant than the shape itself.
std::size_t direct_scratch_bytes(const DeviceShape& shape) {
  std::size_t most = 0;
  for_each_variant(shape,
                   [&](const DirectVariant& variant) { most = std::max(most, scratch_of(variant, shape)); });
  return most;
}

void launch_direct_gemm(const Queue& queue, const DeviceFusedProduct& product, const FusedVariant& variant,
                        std::byte* scratch) {
  DirectVariant chosen;
  std::memcpy(&chosen, variant.data.data(), sizeof chosen);
  for_each_launch(product.items, [&](std::int64_t first, std::int64_t items) {
    const DeviceShape shape{.schedule = *product.schedule,
                            .format = FormatId::bf16,
                            .type = ElementType::f32,
                            .m = product.tile.rows,
                            .n = product.tile.columns,
                            .k = product.tile.a.matrix.columns,
                            .items = items,
                            .prepared_a = false,
                            .prepared_b = false};
    launch_items(queue, product, chosen, first, shape, scratch);
  });
}

DeviceTimes expected_direct_times(const DeviceShape& shape, const Costs& costs) {
  const double emulated =
      has_times(costs) ? fastest(shape, &costs).microseconds : std::numeric_limits<double>::infinity();
  return {emulated, expected_vendor_time(shape, costs.call)};
}

}  // namespace kintsugi::core::cuda
