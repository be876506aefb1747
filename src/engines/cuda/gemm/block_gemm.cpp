#include "engines/cuda/gemm/block_gemm.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <type_traits>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/block_params.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/times.hpp"

namespace kintsugi::core::cuda {

namespace {

// Tiles and division of k of a product. All variants give the same bits.
struct BlockVariant {
  std::int32_t columns = narrow_columns;  // of a tile; narrow_columns: narrow tiles
  bool swapped = false;                   // rows of tiles are columns of C
  bool is_cluster = false;                // the thread blocks of a tile form a cluster
  std::int32_t splits = 1;                // thread blocks of a tile
  std::int32_t leaves = 0;                // of each of them
  double microseconds = 0;

  bool is_narrow() const { return columns == narrow_columns; }
  std::int64_t rows() const { return is_narrow() ? narrow_rows : wide_rows; }
};
static_assert(sizeof(BlockVariant) <= sizeof(FusedVariant) && std::is_trivially_copyable_v<BlockVariant>);

std::int64_t leaves_of(std::int64_t k) { return divide_up(k, block_leaf); }

std::int64_t tiles_of(const BlockVariant& variant, const DeviceShape& shape) {
  const std::int64_t rows = variant.swapped ? shape.n : shape.m;
  const std::int64_t columns = variant.swapped ? shape.m : shape.n;
  return shape.items * divide_up(rows, variant.rows()) * divide_up(columns, variant.columns);
}

// Bytes of partial sums of a variant. If one thread block has all of a long k, it keeps the sums of its
// segment and of the segments before it.
std::int64_t sum_bytes(const BlockVariant& variant, const DeviceShape& shape) {
  const std::int64_t groups = divide_up(shape.k, block_group);
  const std::int64_t tile_bytes = variant.rows() * variant.columns * std::int64_t{sizeof(float)};
  if (variant.is_narrow() || variant.is_cluster || groups == 1) return 0;
  return tiles_of(variant, shape) * (variant.splits > 1 ? groups : 2) * tile_bytes;
}

std::int64_t statistics_bytes(const BlockVariant& variant, const DeviceShape& shape) {
  if (variant.splits == 1 || variant.is_cluster) return 0;
  return tiles_of(variant, shape) * variant.splits * (wide_rows + variant.columns) *
         std::int64_t{sizeof(VectorStatistics)};
}

std::int64_t bytes_of_counters(const BlockVariant& variant, const DeviceShape& shape) {
  if (variant.splits == 1 || variant.is_cluster) return 0;
  return tiles_of(variant, shape) * std::int64_t{sizeof(std::uint32_t)};
}

// Most bytes of partial sums of thread blocks that divide k. With more, k is not divided.
constexpr std::int64_t max_sum_bytes = std::int64_t{64} << 20;

// Bytes of scratch of the variant for the shape, and for every shape within it.
std::size_t scratch_of(const BlockVariant& variant, const DeviceShape& shape) {
  const std::int64_t sums = sum_bytes(variant, shape);
  return aligned_size(static_cast<std::size_t>(variant.splits > 1 ? std::min(sums, max_sum_bytes) : sums)) +
         aligned_size(static_cast<std::size_t>(statistics_bytes(variant, shape))) +
         aligned_size(static_cast<std::size_t>(bytes_of_counters(variant, shape)));
}

// Expected time of a variant: the thread blocks that an SM computes one after the other, each with its
// k-blocks.
double time_of(const BlockVariant& variant, const DeviceShape& shape, const Costs& costs) {
  const BlockCosts& block = costs.block;
  const std::int64_t thread_blocks = tiles_of(variant, shape) * variant.splits;
  // Clusters of four fill only some of the SMs, and three divide no number of them.
  const std::int64_t sms = sm_count();
  const std::int64_t places = !variant.is_cluster || variant.splits == 2 ? sms : sms / 12 * 12 * 10 / 11;
  const auto rounds = static_cast<double>(divide_up(thread_blocks, places));
  const bool columns_are_along_k = variant.swapped ? shape.is_along_k_a : shape.is_along_k_b;
  const double factor = (shape.is_aligned ? 1 : block.unaligned) *
                        (columns_are_along_k || variant.is_narrow() ? 1 : block.columns_across);
  const std::int64_t blocks = divide_up(shape.k, block_depth);
  if (variant.is_narrow()) {
    const int warps = current_family().block->narrow_warps;
    const std::int64_t of_warp = blocks <= warps ? 1 : leaf_blocks * divide_up(leaves_of(shape.k), warps);
    return block.launch +
           rounds * (block.narrow_tile + factor * block.narrow_block * static_cast<double>(of_warp));
  }
  const std::size_t wide = variant.columns == max_wide_columns ? 1 : 0;
  const auto of_block = static_cast<double>(std::min(blocks, std::int64_t{variant.leaves} * leaf_blocks));
  const double sums = 2 * static_cast<double>(sum_bytes(variant, shape)) / costs.call.copy_rate +
                      (variant.splits > 1 && !variant.is_cluster ? block.meeting : 0);
  return block.launch + sums + rounds * (block.wide[wide].tile + factor * block.wide[wide].block * of_block);
}

// Calls visit(variant) for each variant. Those that divide k without a cluster are for products that leave
// SMs idle.
template <class Visit>
void for_each_variant(const DeviceShape& shape, const Visit& visit) {
  const auto leaves = static_cast<std::int32_t>(leaves_of(shape.k));
  for (const bool swapped : {false, true}) {
    visit(BlockVariant{.swapped = swapped, .leaves = leaves});
    if (!current_family().block->has_tma()) continue;
    for (const std::int32_t columns : {max_wide_columns / 2, max_wide_columns}) {
      visit(BlockVariant{.columns = columns, .swapped = swapped, .leaves = leaves});
      // Clusters: the leaves of one group, or a group for each thread block.
      for (std::int32_t splits = 2; splits <= max_block_cluster; ++splits) {
        const auto of_each = static_cast<std::int32_t>(divide_up(leaves, splits));
        if (divide_up(leaves, of_each) == splits && (leaves <= group_leaves || of_each == group_leaves))
          visit(BlockVariant{.columns = columns,
                             .swapped = swapped,
                             .is_cluster = true,
                             .splits = splits,
                             .leaves = of_each});
      }
      const auto groups = static_cast<std::int32_t>(divide_up(leaves, group_leaves));
      for (std::int32_t of_each = 1; of_each < groups && of_each <= segment_groups; of_each *= 2) {
        const BlockVariant variant{.columns = columns,
                                   .swapped = swapped,
                                   .splits = static_cast<std::int32_t>(divide_up(groups, of_each)),
                                   .leaves = of_each * group_leaves};
        visit(variant);
      }
    }
  }
}

BlockVariant fastest(const DeviceShape& shape, const Costs& costs) {
  std::optional<BlockVariant> best;
  for_each_variant(shape, [&](BlockVariant variant) {
    const bool fits = variant.splits == 1 || variant.is_cluster ||
                      (sum_bytes(variant, shape) <= max_sum_bytes && tiles_of(variant, shape) <= sm_count());
    if (!fits) return;
    variant.microseconds = time_of(variant, shape, costs);
    if (!best || variant.microseconds < best->microseconds) best = variant;
  });
  return *best;
}

// For devices without costs: narrow tiles.
BlockVariant with_fewest_tiles(const DeviceShape& shape) {
  BlockVariant best{.leaves = static_cast<std::int32_t>(leaves_of(shape.k))};
  BlockVariant other = best;
  other.swapped = true;
  return tiles_of(other, shape) < tiles_of(best, shape) ? other : best;
}

// Tensor map of an operand's FP32 elements, with boxes of `vectors` vectors along k, or of 64 inner indices;
// an empty one for families without TMA. Nothing if TMA cannot load the operand.
std::optional<TensorMap> operand_map(const DeviceSide& side, std::int64_t items, std::int64_t vectors) {
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
  if (!current_family().block->has_tma()) return TensorMap{};
  const std::uint32_t box[3]{32, static_cast<std::uint32_t>(along_k ? vectors : block_depth), 1};
  const std::uint32_t steps[3]{1, 1, 1};
  TensorMap map;
  check(driver().tensor_map_encode(&map, tensor_map_fp32, 3, const_cast<void*>(matrix.data), lengths, strides,
                                   box, steps, 0, tensor_map_swizzle_128, tensor_map_promotion_256, 0),
        "cuTensorMapEncodeTiled");
  return map;
}

const KernelName& kernel_of(const BlockVariant& variant, bool rows_along_k, bool columns_along_k) {
  const BlockKernels& kernels = *current_family().block;
  const std::size_t layout = (rows_along_k ? 0 : 2) + (columns_along_k ? 0 : 1);
  if (variant.is_narrow()) return kernels.narrow[layout];
  return kernels.wide[variant.columns == max_wide_columns ? 1 : 0][layout];
}

// One launch, for at most max_launched_items batch items.
void launch_items(const Queue& queue, const DeviceFusedProduct& product, const BlockVariant& variant,
                  std::int64_t first, std::int64_t items, const DeviceShape& shape, std::byte* scratch) {
  BlockParams params;
  params.tile = from_item(product.tile, first);
  params.report = product.report;
  const Accumulator accumulator = current_family().fp16_bf16_accumulators.front();
  params.unit = {accumulator_block(accumulator, FormatId::fp16), accumulator_extra_bits(accumulator)};
  params.swapped = variant.swapped ? 1 : 0;
  params.blocks = static_cast<std::int32_t>(divide_up(shape.k, block_depth));
  const DeviceSide& rows = variant.swapped ? params.tile.b : params.tile.a;
  const DeviceSide& columns = variant.swapped ? params.tile.a : params.tile.b;
  params.row_tiles =
      static_cast<std::int32_t>(divide_up(variant.swapped ? shape.n : shape.m, variant.rows()));
  params.column_tiles =
      static_cast<std::int32_t>(divide_up(variant.swapped ? shape.m : shape.n, variant.columns));
  params.splits = variant.splits;
  params.by_row_tiles = Divisor(static_cast<std::uint32_t>(params.row_tiles));
  params.by_splits = Divisor(static_cast<std::uint32_t>(params.splits));
  params.leaves = variant.leaves;
  const std::optional<TensorMap> row_map =
      operand_map(rows, items, variant.is_narrow() ? narrow_rows : wide_rows / 2);
  const std::optional<TensorMap> column_map = operand_map(columns, items, variant.columns);
  const auto side_of = [](const DeviceSide& side, bool is_aligned, std::int64_t begin) {
    const bool is_strided = side.matrix.batch_stride != 0;
    return BlockSide{.is_aligned = is_aligned ? 1 : 0,
                     .begin = static_cast<std::int32_t>(begin),
                     .item = is_strided ? static_cast<std::int32_t>(side.item) : 0,
                     .item_step = is_strided ? 1 : 0};
  };
  const DeviceTile& tile = params.tile;
  params.sides[0] = side_of(rows, row_map.has_value(), variant.swapped ? tile.first_column : tile.first_row);
  params.sides[1] =
      side_of(columns, column_map.has_value(), variant.swapped ? tile.first_row : tile.first_column);
  params.partial_sums = reinterpret_cast<float*>(scratch);
  std::byte* next = scratch + aligned_size(static_cast<std::size_t>(sum_bytes(variant, shape)));
  params.statistics = reinterpret_cast<VectorStatistics*>(next);
  next += aligned_size(static_cast<std::size_t>(statistics_bytes(variant, shape)));
  params.counters = reinterpret_cast<std::uint32_t*>(next);
  if (const std::int64_t bytes = bytes_of_counters(variant, shape); bytes > 0)
    clear(queue, params.counters, static_cast<std::size_t>(bytes));
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
  const bool rows_along_k = rows.matrix.column_stride == 1;
  const bool columns_along_k = columns.matrix.column_stride == 1;
  const Extent grid{.x = std::int64_t{params.row_tiles} * params.column_tiles * variant.splits,
                    .y = items,
                    .cluster = variant.is_cluster ? variant.splits : 0};
  const int warps = current_family().block->narrow_warps;
  launch(
      kernel_of(variant, rows_along_k, columns_along_k), grid,
      variant.is_narrow() ? 32 * warps : wide_threads,
      variant.is_narrow() ? narrow_shared_bytes(warps, columns_along_k) : wide_shared_bytes(variant.columns),
      queue, row_map.value_or(TensorMap{}), column_map.value_or(TensorMap{}), params);
}

}  // namespace

bool has_block_gemm(const Schedule& schedule, FormatId format, ElementType type) {
  return schedule.exponents_per_block && format == FormatId::fp16 && type == ElementType::f32 &&
         current_family().block != nullptr && current_family().has_gemm_kernels();
}

FusedVariant choose_block_gemm(const DeviceShape& shape) {
  const BlockVariant chosen =
      profile_in_force() != nullptr ? fastest(shape, current_costs()) : with_fewest_tiles(shape);
  FusedVariant variant;
  std::memcpy(variant.data.data(), &chosen, sizeof chosen);
  return variant;
}

// Blocks of C within the shape may have another variant than the shape itself.
std::size_t block_scratch_bytes(const DeviceShape& shape) {
  std::size_t most = 0;
  for_each_variant(shape,
                   [&](const BlockVariant& variant) { most = std::max(most, scratch_of(variant, shape)); });
  return most;
}

void launch_block_gemm(const Queue& queue, const DeviceFusedProduct& product, const FusedVariant& variant,
                       std::byte* scratch) {
  BlockVariant chosen;
  std::memcpy(&chosen, variant.data.data(), sizeof chosen);
  for_each_launch(product.items, [&](std::int64_t first, std::int64_t items) {
    const DeviceShape shape{.schedule = *product.schedule,
                            .format = FormatId::fp16,
                            .type = ElementType::f32,
                            .m = product.tile.rows,
                            .n = product.tile.columns,
                            .k = product.tile.a.matrix.columns,
                            .items = items,
                            .prepared_a = false,
                            .prepared_b = false};
    launch_items(queue, product, chosen, first, items, shape, scratch);
  });
}

DeviceTimes expected_block_times(const DeviceShape& shape, const Costs& costs) {
  return {fastest(shape, costs).microseconds, expected_vendor_time(shape, costs.call)};
}

}  // namespace kintsugi::core::cuda
