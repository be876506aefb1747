#include "engines/cuda/gemm/multi_term_gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/status.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/multi_term_tiles.hpp"
#include "engines/cuda/gemm/times.hpp"

namespace kintsugi::core::cuda {

namespace {

// Scratch memory of a product has three areas. The first has the partial sums of tiles that are split along
// k. The second has counters: for each of these tiles the number of parts of k that have been added
// (k_part_counters), then the number of clusters that have begun. The third has sums of earlier segments of
// k, for the tile of every cluster and for as many split tiles.
constexpr std::size_t partial_bytes =
    std::size_t{max_clusters} * term_tile_rows * max_tile_columns * sizeof(float);
constexpr std::size_t k_part_counters = std::size_t{max_clusters} * counters_of_tile;
constexpr std::size_t counter_bytes = (k_part_counters + 1) * sizeof(std::uint32_t);
// If segments are computed in parallel, the third area has the number of stored segments of each tile, then
// the sums of all segments.
constexpr std::size_t segment_counter_bytes = max_segmented_tiles * sizeof(std::uint32_t);
constexpr std::size_t segment_offset = aligned_size(partial_bytes) + aligned_size(counter_bytes);

// Kernels that compute the schedule's terms, or nullptr.
const MultiTermKernels* find_kernels(const Schedule& schedule, FormatId format) {
  if (schedule.k_segment == 0 || schedule.k_step != 0 || schedule.joint) return nullptr;
  for (const MultiTermKernels& kernels : current_family().multi_term) {
    const bool has_k_block = schedule.k_block == term_block || schedule.k_block == term_block / 2 ||
                             (schedule.k_block == term_block / 4 && kernels.takes_four_sub_blocks());
    if (has_k_block && kernels.format == format && std::ranges::equal(kernels.terms, schedule.terms))
      return &kernels;
  }
  return nullptr;
}

// Number of the schedule's k-blocks in a k-block of the kernels.
std::int32_t sub_blocks(const Schedule& schedule) {
  return static_cast<std::int32_t>(term_block / schedule.k_block);
}

// True if k is divided into several segments.
bool divides_k(const Schedule& schedule, std::int64_t k) { return schedule.segment_length(k) < k; }

// True if thread blocks may compute segments of k in parallel. A product with a small C divides k into
// several segments from 4096 on (Schedule::shortened). For a shorter k, adding the segments' sums would take
// at least as long as the product.
bool may_have_parallel_segments(const Schedule& schedule, std::int64_t k) {
  constexpr std::int64_t min_k = 4096;
  return k >= min_k && divides_k(schedule, k);
}

// Number of segments of k that are computed in parallel. 1 means that each thread block computes all segments
// of its tile.
std::int32_t parallel_segments(const Schedule& schedule, const ProductSize& size) {
  if (!may_have_parallel_segments(schedule, size.k)) return 1;
  const std::int64_t segments = divide_up(size.k, schedule.segment_length(size.k));
  const bool fits = segment_sum_bytes(size.m, size.n, size.items, segments).has_value();
  return fits ? static_cast<std::int32_t>(segments) : 1;
}

// Number of small tiles of a product.
std::int64_t tiles_of(const SmallTileVariant& variant, std::int64_t items) {
  return items * variant.row_pairs * gemm_cluster_size * variant.columns;
}

SharedBytes shared_bytes_of_device() {
  const std::int64_t of_block = max_shared_bytes_of_block();
  return {of_block, of_block + reserved_bytes_of_block};
}

// True if the tile has kernels for the schedule's k-blocks.
bool takes(const MmaTile& tile, const Schedule& schedule) {
  return sub_blocks(schedule) < 4 || tile.is_small();
}

// Calls visit(variant) for each variant by mma tiles.
template <class Visit>
void for_each_mma_tile(const MultiTermKernels& kernels, const ProductSize& size, const Schedule& schedule,
                       const MultiTermCosts& costs, const Visit& visit) {
  const SharedBytes shared = shared_bytes_of_device();
  const auto& tile_times =
      costs.tiles[static_cast<std::size_t>(&kernels - current_family().multi_term.data())];
  for (std::size_t tile = 0; tile < kernels.mma_tiles.size(); ++tile) {
    if (!takes(kernels.mma_tiles[tile], schedule)) continue;
    const MmaTileVariant variant =
        choose_mma_tile(kernels.mma_tiles[tile], tile, tile_times[tile], size, schedule.slices_a,
                        sub_blocks(schedule), sm_count(), shared, costs);
    if (variant.stages > 0) visit(MultiTermVariant(variant));
  }
}

// Calls visit(variant) for each variant that computes a product of this size, always in the same order.
template <class Visit>
void for_each_variant(const MultiTermKernels& kernels, const ProductSize& size, const Schedule& schedule,
                      const MultiTermCosts& costs, const Visit& visit) {
  if (!kernels.mma_tiles.empty()) return for_each_mma_tile(kernels, size, schedule, costs, visit);
  const std::int32_t sms = sm_count();
  const std::int32_t clusters = clusters_of(sms);
  // Only small tiles have kernels for four sub-blocks in a k-block.
  const std::size_t cluster_tiles = sub_blocks(schedule) < 4 ? kernels.tiles.size() : 0;
  const auto& tile_times =
      costs.tiles[static_cast<std::size_t>(&kernels - current_family().multi_term.data())];
  for (std::size_t tile = 0; tile < cluster_tiles; ++tile) {
    visit(MultiTermVariant(choose_tile_schedule(kernels.tiles[tile], tile, tile_times[tile], size,
                                                sub_blocks(schedule), clusters, costs)));
  }
  const std::int32_t segments = parallel_segments(schedule, size);
  for (const bool swapped : {false, true}) {
    for (std::size_t tile = 0; tile < kernels.small_tiles.size(); ++tile) {
      const auto choose = [&](std::int32_t segments_in_parallel) {
        return choose_small_tile(kernels.small_tiles[tile], tile, swapped, size, schedule.slices_a,
                                 sub_blocks(schedule), sms, costs, segments_in_parallel);
      };
      // One thread block adds all segments, for which the tile may have no registers.
      if (!divides_k(schedule, size.k) || kernels.small_tiles[tile].adds_segments())
        visit(MultiTermVariant(choose(/*segments_in_parallel=*/1)));
      // Each segment has a thread block of its own.
      if (segments == 1 || tile >= kernels.segmented_kernels.size()) continue;
      const SmallTileVariant variant = choose(segments);
      if (tiles_of(variant, size.items) <= max_segmented_tiles) visit(MultiTermVariant(variant));
    }
  }
}

double microseconds(const MultiTermVariant& variant) {
  return std::visit([](const auto& given) { return given.microseconds; }, variant);
}

// Costs by which mma tiles are compared on a device without a profile: every sum takes the same time, but for
// the tiles' rates. The times are no microseconds.
MultiTermCosts costs_without_profile(const MultiTermKernels& kernels) {
  MultiTermCosts costs{};
  costs.two_sums_factor = costs.four_sums_factor = 1;
  auto& times = costs.tiles[static_cast<std::size_t>(&kernels - current_family().multi_term.data())];
  for (std::size_t i = 0; i < kernels.mma_tiles.size(); ++i)
    times[i].block = kernels.mma_tiles[i].sums() / kernels.mma_tiles[i].rate;
  return costs;
}

MultiTermVariant fastest(const MultiTermKernels& kernels, const ProductSize& size, const Schedule& schedule,
                         const MultiTermCosts& costs) {
  MultiTermVariant best;
  bool is_first = true;
  for_each_variant(kernels, size, schedule, costs, [&](const MultiTermVariant& variant) {
    if (is_first || microseconds(variant) < microseconds(best)) best = variant;
    is_first = false;
  });
  return best;
}

const MultiTermKernels& kernels_of(const DeviceFusedProduct& product) {
  return *find_kernels(*product.schedule, product.a.format->id);
}

float rescale_of(const DeviceFusedProduct& product) {
  return std::ldexp(1.0F, product.schedule->rescale_exponent);
}

std::int32_t segment_blocks_of(const Schedule& schedule, std::int64_t k) {
  return static_cast<std::int32_t>(schedule.segment_length(k) / term_block);
}

void launch_variant(const MultiTermKernels& kernels, const ClusterTileVariant& variant,
                    const DeviceFusedProduct& product, const Queue& queue, std::byte* scratch) {
  const MultiTermTile& tile = kernels.tiles[variant.tile];
  MultiTermParams params;
  params.tile = product.tile;
  params.schedule = variant.schedule;
  params.shares_a = product.shares_a;
  params.shares_b = product.shares_b;
  params.segment_blocks = segment_blocks_of(*product.schedule, product.a.vector_stride());
  params.sub_blocks = sub_blocks(*product.schedule);
  params.partial_sums = reinterpret_cast<float*>(scratch);
  params.k_parts_added = reinterpret_cast<std::uint32_t*>(scratch + aligned_size(partial_bytes));
  params.clusters_begun = params.k_parts_added + k_part_counters;  // behind that many counters
  params.segment_sums = reinterpret_cast<float*>(scratch + segment_offset);
  params.rescale = rescale_of(product);
  // The counter clusters_begun lies directly behind those of k_parts_added, so one call clears both.
  if (params.schedule.k_parts > 1 && !product.has_cleared_counters)
    clear(queue, params.k_parts_added, counter_bytes);
  launch(kernels.kernels[variant.tile],
         {gemm_cluster_size * std::int64_t{params.schedule.clusters}, 1, 1, gemm_cluster_size}, term_threads,
         tile.shared_bytes(), queue,
         tensor_map(product.a, product.shares_a ? 1 : product.items, term_tile_rows / gemm_cluster_size),
         tensor_map(product.b, product.shares_b ? 1 : product.items, tile.columns / gemm_cluster_size),
         params);
}

// The product that computes C transposed: B transposed times A transposed.
DeviceFusedProduct transposed(DeviceFusedProduct product) {
  std::swap(product.a, product.b);
  std::swap(product.shares_a, product.shares_b);
  DeviceTile& tile = product.tile;
  std::swap(tile.a, tile.b);
  std::swap(tile.first_row, tile.first_column);
  std::swap(tile.rows, tile.columns);
  std::swap(tile.c.rows, tile.c.columns);
  std::swap(tile.c.row_stride, tile.c.column_stride);
  return product;
}

void launch_variant(const MultiTermKernels& kernels, const SmallTileVariant& variant,
                    const DeviceFusedProduct& product_as_called, const Queue& queue, std::byte* scratch) {
  const DeviceFusedProduct product = variant.swapped ? transposed(product_as_called) : product_as_called;
  const SmallTile& tile = kernels.small_tiles[variant.tile];
  if (variant.stages < tile.min_stages())
    fail(Status::internal, "a tile of {} columns was given {} stages, which is less than {}", tile.columns,
         variant.stages, tile.min_stages());
  SmallTileParams params;
  params.tile = product.tile;
  params.row_pairs = variant.row_pairs;
  params.columns = variant.columns;
  // The stride of vectors is k, padded to whole k-blocks.
  params.k_blocks = static_cast<std::int32_t>(product.a.vector_stride() / term_block);
  params.segment_blocks = segment_blocks_of(*product.schedule, product.a.vector_stride());
  params.segments = variant.segments;
  params.sub_blocks = sub_blocks(*product.schedule);
  params.stages = variant.stages;
  params.shares_a = product.shares_a;
  params.shares_b = product.shares_b;
  params.swapped = variant.swapped;
  params.rescale = rescale_of(product);
  if (variant.segments > 1) {
    params.segments_done = reinterpret_cast<std::uint32_t*>(scratch + segment_offset);
    params.segment_sums = reinterpret_cast<float*>(scratch + segment_offset + segment_counter_bytes);
    const auto tiles = static_cast<std::size_t>(tiles_of(variant, product.items));
    if (!product.has_cleared_counters) clear(queue, params.segments_done, tiles * sizeof(std::uint32_t));
  }
  const std::int64_t clusters = product.items * variant.row_pairs * variant.columns * variant.segments;
  const std::span<const KernelName> small_kernels =
      variant.segments > 1 ? kernels.segmented_kernels : kernels.small_kernels;
  launch(small_kernels[variant.tile], {clusters * gemm_cluster_size, 1, 1, gemm_cluster_size},
         small_tile_threads, tile.shared_bytes(product.a.count, variant.stages), queue,
         tensor_map(product.a, product.shares_a ? 1 : product.items, small_tile_rows),
         tensor_map(product.b, product.shares_b ? 1 : product.items, tile.columns / gemm_cluster_size),
         params);
}

MmaOperand mma_operand(const Slices& slices, bool is_shared) {
  const auto bytes = static_cast<std::int64_t>(slices.element_bytes());
  const std::int64_t slice_bytes = slices.slice_stride() * bytes;
  return {slices.data, slices.vector_stride() * bytes, slice_bytes,
          is_shared ? 0 : slices.count * slice_bytes};
}

void launch_variant(const MultiTermKernels& kernels, const MmaTileVariant& variant,
                    const DeviceFusedProduct& product, const Queue& queue, std::byte* scratch) {
  const MmaTile& tile = kernels.mma_tiles[variant.tile];
  MmaParams params;
  params.tile = product.tile;
  params.schedule = variant.schedule;
  params.a = mma_operand(product.a, product.shares_a);
  params.b = mma_operand(product.b, product.shares_b);
  params.segment_blocks = segment_blocks_of(*product.schedule, product.a.vector_stride());
  params.sub_blocks = sub_blocks(*product.schedule);
  params.stages = variant.stages;
  params.rescale = rescale_of(product);
  params.segment_sums = reinterpret_cast<float*>(scratch);
  launch(kernels.mma_kernels[variant.tile], {variant.schedule.clusters}, tile.threads(),
         std::int64_t{variant.stages} * tile.stage_bytes(), queue, params);
}

// Bytes of the sums of earlier segments of all thread blocks: the tiles that an SM has at a time are at most
// as large as the largest.
std::size_t mma_scratch_bytes(const MultiTermKernels& kernels, const Schedule& schedule, std::int64_t k) {
  if (!divides_k(schedule, k)) return 0;
  int most_sums = 0;
  for (const MmaTile& tile : kernels.mma_tiles)
    most_sums = std::max(most_sums, tile.sums() * tile.blocks_of_sm());
  return static_cast<std::size_t>(sm_count()) * static_cast<std::size_t>(most_sums) * sizeof(float);
}

}  // namespace

bool has_multi_term_gemm(const Schedule& schedule, FormatId format, ElementType type) {
  return type == ElementType::f32 && find_kernels(schedule, format) != nullptr;
}

namespace {

// Inner indices of the kernels' k-blocks: those of the shape, padded as in slices (choose_multi_term_gemm()).
std::int64_t padded_k(const DeviceShape& shape) { return round_up(shape.k, Slices::k_multiple); }

// Bytes of scratch memory for the counters and sums of parallel segments. They suffice for the shape and for
// every smaller one.
std::size_t segment_bytes_of(const DeviceShape& shape) {
  const std::int64_t k = padded_k(shape);
  if (!may_have_parallel_segments(shape.schedule, k)) return 0;
  if (find_kernels(shape.schedule, shape.format)->small_tiles.empty()) return 0;
  const std::int64_t segments = divide_up(k, shape.schedule.segment_length(k));
  const std::int64_t bytes =
      segment_sum_bytes(shape.m, shape.n, shape.items, segments).value_or(max_segment_bytes);
  return segment_counter_bytes + static_cast<std::size_t>(bytes);
}

}  // namespace

// A schedule has at most as many clusters as tiles. So the sums of earlier segments belong to at most as many
// tiles as C has.
std::size_t multi_term_scratch_bytes(const DeviceShape& shape) {
  const MultiTermKernels& kernels = *find_kernels(shape.schedule, shape.format);
  if (!kernels.mma_tiles.empty()) return mma_scratch_bytes(kernels, shape.schedule, padded_k(shape));
  if (!divides_k(shape.schedule, padded_k(shape))) return segment_offset;
  const std::size_t parallel_bytes = segment_bytes_of(shape);
  if (sub_blocks(shape.schedule) == 4) return segment_offset + parallel_bytes;
  const double rows = static_cast<double>(round_up(shape.m, term_tile_rows));
  const double columns = static_cast<double>(shape.n + max_tile_columns);
  const double tile_bytes = static_cast<double>(shape.items) * rows * columns * sizeof(float);
  const auto sum_bytes = static_cast<std::size_t>(std::min(static_cast<double>(partial_bytes), tile_bytes));
  return segment_offset + std::max(aligned_size(2 * sum_bytes), parallel_bytes);
}

// The counters of parallel segments lie directly behind those of tiles that are split along k.
DeviceCounters multi_term_counters(const DeviceShape& shape, std::byte* scratch) {
  static_assert(segment_offset == aligned_size(partial_bytes) + aligned_size(counter_bytes));
  if (!find_kernels(shape.schedule, shape.format)->mma_tiles.empty()) return {};  // these have no counters
  const std::size_t bytes =
      aligned_size(counter_bytes) + (segment_bytes_of(shape) > 0 ? segment_counter_bytes : 0);
  return {reinterpret_cast<std::uint32_t*>(scratch + aligned_size(partial_bytes)),
          static_cast<std::int64_t>(bytes / sizeof(std::uint32_t))};
}

std::vector<MultiTermVariant> multi_term_variants(const DeviceFusedProduct& product,
                                                  const MultiTermCosts& costs) {
  std::vector<MultiTermVariant> variants;
  for_each_variant(kernels_of(product),
                   {product.tile.rows, product.tile.columns, product.a.vector_stride(), product.items},
                   *product.schedule, costs,
                   [&](const MultiTermVariant& variant) { variants.push_back(variant); });
  return variants;
}

void multi_term_gemm(const Queue& queue, const DeviceFusedProduct& product, const MultiTermVariant& variant,
                     std::byte* scratch) {
  std::visit([&](const auto& given) { launch_variant(kernels_of(product), given, product, queue, scratch); },
             variant);
}

namespace {

// Content of a FusedVariant.
struct ChosenVariant {
  const MultiTermKernels* kernels;
  MultiTermVariant variant;
};
static_assert(sizeof(ChosenVariant) <= sizeof(FusedVariant) && std::is_trivially_copyable_v<ChosenVariant>);

}  // namespace

FusedVariant choose_multi_term_gemm(const DeviceShape& shape) {
  const MultiTermKernels& kernels = *find_kernels(shape.schedule, shape.format);
  const ProductSize size{shape.m, shape.n, padded_k(shape), shape.items};
  const ProfileInForce* in_force = profile_in_force();
  const MultiTermCosts costs = in_force == nullptr && !kernels.mma_tiles.empty()
                                   ? costs_without_profile(kernels)
                                   : current_costs().multi_term;
  const ChosenVariant chosen{&kernels, fastest(kernels, size, shape.schedule, costs)};
  FusedVariant variant;
  std::memcpy(variant.data.data(), &chosen, sizeof chosen);
  return variant;
}

void launch_multi_term_gemm(const Queue& queue, const DeviceFusedProduct& product,
                            const FusedVariant& variant, std::byte* scratch) {
  ChosenVariant chosen{};
  std::memcpy(&chosen, variant.data.data(), sizeof chosen);
  std::visit([&](const auto& given) { launch_variant(*chosen.kernels, given, product, queue, scratch); },
             chosen.variant);
}

double expected_split_time(const DeviceShape& shape, const CallCosts& costs) {
  if (shape.prepared_a && shape.prepared_b) return 0;
  const double elements = (shape.prepared_a ? 0 : product_of(shape.m, shape.k)) +
                          (shape.prepared_b ? 0 : product_of(shape.k, shape.n));
  const double bytes = static_cast<double>(shape.items) * elements * (4.0 + 2.0 * shape.schedule.slices_a);
  constexpr std::int64_t long_vector = 13700;  // longer vectors may be divided and read twice
  if (shape.k > long_vector)
    return costs.split_launch_long + bytes / (costs.split_rate_long * costs.copy_rate);
  const bool splits_one_operand = shape.prepared_a || shape.prepared_b;
  return (splits_one_operand ? costs.split_launch_alone : costs.split_launch) +
         bytes / (costs.split_rate * costs.copy_rate);
}

// cuBLAS's kernels for a C with a short side read far more slowly than memory bandwidth allows.
double expected_vendor_time(const DeviceShape& shape, const CallCosts& costs) {
  const std::int64_t side = std::min(shape.m, shape.n);
  const bool is_short = 16 <= side && side <= 128;
  const bool is_shorter = 2 <= side && side < 16;
  const double multiply_rate = is_short ? costs.native_rate_short : costs.native_rate;
  double read_rate = costs.copy_rate;
  if (is_short) read_rate = costs.native_read_short;
  if (is_shorter) read_rate = costs.native_read_shortest;
  const double elements_of_c = product_of(shape.m, shape.n);
  const double elements = product_of(shape.m, shape.k) + product_of(shape.k, shape.n) + elements_of_c;
  const auto items = static_cast<double>(shape.items);
  const double operations = items * 2 * elements_of_c * static_cast<double>(shape.k);
  // native_launch was measured for a kernel that exits early. Here it stands for the launch of cuBLAS's
  // kernel.
  return std::max(costs.native_ends + operations / multiply_rate,
                  costs.native_launch + items * 4 * elements / read_rate);
}

// The expected times of 70 shapes were compared with measured ones: single products, products of prepared
// operands, and batches. For 65 shapes the expected time is 0.94 to 1.2 times the measured one, for the
// others up to 1.4 times (lab/results/log).
DeviceTimes expected_multi_term_times(const DeviceShape& shape, const Costs& device_costs) {
  const CallCosts& costs = device_costs.call;
  const MultiTermKernels& kernels = *find_kernels(shape.schedule, shape.format);
  const auto items = static_cast<double>(shape.items);
  // Schedules count tiles in 32 bits, so a schedule is made for 1024 items at most. The time of more items
  // grows in proportion to their number.
  const std::int64_t scheduled_items = std::min<std::int64_t>(shape.items, 1024);
  const double product_time = items / static_cast<double>(scheduled_items) *
                              microseconds(fastest(kernels, {shape.m, shape.n, shape.k, scheduled_items},
                                                   shape.schedule, device_costs.multi_term));
  // The costs of tiles were measured in single products, which leave the chip below its power limit. Long
  // products that follow each other in calls reach that limit and run more slowly.
  const double slowdown = 1 + costs.throttling * std::min(1.0, product_time / costs.throttled_product);
  const double selection = shape.prepared_a || shape.prepared_b ? costs.prepared_selection : costs.selection;
  const double result_time = costs.result_time * items * 4 * product_of(shape.m, shape.n) / costs.copy_rate;
  return {expected_split_time(shape, costs) + slowdown * product_time + selection + result_time,
          expected_vendor_time(shape, costs)};
}

}  // namespace kintsugi::core::cuda
