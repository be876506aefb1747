#include "engines/cuda/split/traversal.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core::cuda {

namespace {

// Kernels of a kind of element. `written` names the split_parts_* kernel of this kind. It is another kind for
// fp16_with_depth: that kind differs from fp16 only in how ranges are found, and split_parts_* gets known
// ranges. A kernel of Traversal::streaming may follow.
#define KINTSUGI_KERNELS_LIKE(type, Source, kind, written, ...)                                   \
  {                                                                                               \
    ElementType::type, ElementKind::kind,                                                         \
        {"split_rows", "split_rows_" #Source "_" #kind, waits_for_grid_dependency},               \
        {"split_columns_sm90", "split_columns_" #Source "_" #kind, waits_for_grid_dependency},    \
        {"split_parts", "split_parts_" #Source "_" #written, waits_for_grid_dependency},          \
        {"split_short", "split_short_" #Source "_" #kind, waits_for_grid_dependency},             \
        {"split_tiles", "split_tiles_" #Source "_" #kind, waits_for_grid_dependency}, __VA_ARGS__ \
  }
#define KINTSUGI_KERNELS_OF_KIND(type, Source, kind) KINTSUGI_KERNELS_LIKE(type, Source, kind, kind)

const std::array<KernelOfKind, 10> kernels{{
    KINTSUGI_KERNELS_OF_KIND(f32, float, fp16),
    KINTSUGI_KERNELS_LIKE(f32, float, fp16_with_depth, fp16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, bf16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, tf32),
    KINTSUGI_KERNELS_OF_KIND(f32, float, quantised),
    KINTSUGI_KERNELS_OF_KIND(f32, float, digits),
    KINTSUGI_KERNELS_OF_KIND(f32, float, residues),
    KINTSUGI_KERNELS_OF_KIND(f64, double, digits),
    KINTSUGI_KERNELS_OF_KIND(f64, double, residues),
    KINTSUGI_KERNELS_LIKE(
        f64, double, wide_residues, wide_residues,
        {"split_streaming_sm90", "split_streaming_double_wide_residues", waits_for_grid_dependency}),
}};

// Kernels that find norms. They hold whole vectors, since an element can be scaled only when its vector's
// norm is known. So there are none for tiles and short vectors.
const KernelOfKind norms_and_residues{
    ElementType::f64,
    ElementKind::residues_by_norms,
    {"split_rows", "split_rows_double_residues_by_norms", waits_for_grid_dependency},
    {"split_columns_sm90", "split_columns_double_residues_by_norms", waits_for_grid_dependency},
    {"split_parts", "split_parts_double_residues", waits_for_grid_dependency},
    {"", ""},
    {"", ""}};

// Kernel of fitted splits. They take little time compared with their products; so there is only a kernel for
// tiles.
const KernelOfKind fitted_kernel{ElementType::f32,
                                 ElementKind::fitted,
                                 {"", ""},
                                 {"", ""},
                                 {"", ""},
                                 {"", ""},
                                 {"split_tiles", "split_tiles_float_fitted", waits_for_grid_dependency}};

// Kernel that splits elements of any type by any rule.
const KernelName any_kernel{"split_tiles", "split_tiles_double_any", waits_for_grid_dependency};

// Kind of a split into int8 whose kernel cannot overflow under the rule; `any` if there is no such kind.
ElementKind integer_kind(const SplitRule& rule) {
  if (!rule.scale_vectors) return ElementKind::any;
  switch (rule.kind) {
    case SplitKind::rounded_residuals: {
      const bool nearest =
          rule.first_rounding == Rounding::nearest_even && rule.residual_rounding == Rounding::nearest_even;
      const bool fits = rule.top_exponent <= int8.max_exponent && rule.residual_exponent >= 0 &&
                        rule.residual_exponent <= int8.significand_bits && rule.slices <= 8;
      return nearest && fits ? ElementKind::quantised : ElementKind::any;
    }
    case SplitKind::grid_digits:
      return rule.top_exponent == int8.max_exponent && rule.residual_exponent == 8 && rule.slices <= 8
                 ? ElementKind::digits
                 : ElementKind::any;
    case SplitKind::residues:
      // Eight digits of a byte hold integers of 62 bits, twelve digits hold integers of 93 bits.
      return rule.integer_bits() <= 62   ? ElementKind::residues
             : rule.integer_bits() <= 93 ? ElementKind::wide_residues
                                         : ElementKind::any;
    default: return ElementKind::any;
  }
}

}  // namespace

ElementKind kind_of(const SplitRule& rule) {
  const bool fp32_scales_residuals = rule.residual_exponent >= 0 && rule.residual_exponent <= 100;
  const bool splits_in_fp32 = rule.kind == SplitKind::rounded_residuals && fp32_scales_residuals;
  if (rule.format->floating && !splits_in_fp32) return ElementKind::any;
  switch (rule.format->id) {
    case FormatId::fp16: return ElementKind::fp16;
    case FormatId::bf16: return ElementKind::bf16;
    case FormatId::tf32: return ElementKind::tf32;
    case FormatId::int8: return integer_kind(rule);
    default: return ElementKind::any;
  }
}

const KernelOfKind* find_kernel(const DeviceSplit& split, bool by_norms) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(split.slices.data) % 16 == 0;
  ElementKind kind = kind_of(*split.rule);
  if (split.finds_depth && kind == ElementKind::fp16) kind = ElementKind::fp16_with_depth;
  if (by_norms) {
    const bool fits = aligned && kind == ElementKind::residues && split.side.matrix.type == ElementType::f64;
    return fits ? &norms_and_residues : nullptr;
  }
  if (split.fit != nullptr) {
    const bool fits = aligned && kind == ElementKind::fp16 && split.side.matrix.type == ElementType::f32;
    return fits ? &fitted_kernel : nullptr;
  }
  for (const KernelOfKind& kernel : kernels) {
    if (aligned && kernel.kind == kind && kernel.type == split.side.matrix.type) return &kernel;
  }
  return nullptr;
}

const KernelName& kernel_name(const KernelOfKind* kernel, Traversal traversal) {
  if (kernel == nullptr) return any_kernel;
  switch (traversal) {
    case Traversal::tiles: return kernel->tiles;
    case Traversal::rows: return kernel->rows;
    case Traversal::columns: return kernel->columns;
    case Traversal::parts: return kernel->parts;
    case Traversal::short_vectors: return kernel->short_vectors;
    case Traversal::streaming: break;
  }
  return kernel->streaming;
}

namespace {

std::int64_t element_bytes(const KernelOfKind& kernel) { return kernel.type == ElementType::f32 ? 4 : 8; }

// Bytes of shared memory per thread block of the kernels for columns. `cluster` is the number of thread
// blocks per cluster.
std::int64_t columns_bytes(const KernelOfKind& kernel, const DeviceSplit& split, std::int64_t cluster) {
  return strip_part_bytes(element_bytes(kernel), padded_length_of(split), cluster, kernel.kind);
}

// Number of SMs that a cluster of `blocks` thread blocks takes. The shared memory of an SM and the kernels'
// launch bounds limit the thread blocks per SM. `bytes` is the shared memory of a thread block, `max_bytes`
// that of an SM.
std::int64_t sms_of_cluster(std::int64_t blocks, std::int64_t bytes, std::int64_t max_bytes) {
  constexpr std::int64_t max_blocks_of_sm = 3;
  return divide_up(blocks, std::min(max_blocks_of_sm, max_bytes / bytes));
}

bool is_by_norms(const KernelOfKind* kernel) {
  return kernel != nullptr && kernel->kind == ElementKind::residues_by_norms;
}

// Fewest thread blocks that fill the device, in clusters of `blocks`. Exchanges of norms take longer in
// larger clusters, so fewer blocks with more threads are faster: both operands of n = 768 are split in
// 12.2 us by clusters of 2 and in 21.5 by clusters of 8.
std::int64_t enough_blocks(bool by_norms, std::int64_t blocks) { return by_norms && blocks > 1 ? 128 : 512; }

// Returns the number of thread blocks of the smallest cluster with which an SM holds three thread blocks and
// the launch fills the device. If no cluster does both, returns the largest cluster that is allowed; 0 if no
// cluster can hold a strip.
//
// Clusters take few SMs. The device places a cluster only in SMs of one GPC that are free at the same time. A
// cluster that needs more SMs than a green context, a MIG slice or other kernels leave free would never
// start.
std::int64_t choose_cluster(const KernelOfKind& kernel, const DeviceSplit& split, std::int64_t max_bytes) {
  constexpr std::int64_t max_sms = 4;
  const std::int64_t stride = padded_length_of(split);
  const std::int64_t strips =
      padded_vectors_of(split) / (strip_bytes / element_bytes(kernel)) * split.side.items;
  std::int64_t chosen = 0;
  bool has_room = false;
  for (std::int64_t blocks = 1; blocks <= largest_cluster && stride % (blocks * strip_group) == 0;
       blocks *= 2) {
    const std::int64_t bytes = columns_bytes(kernel, split, blocks);
    if (bytes > max_bytes || sms_of_cluster(blocks, bytes, max_bytes) > max_sms) continue;
    if (has_room && strips * chosen >= enough_blocks(is_by_norms(&kernel), chosen)) break;
    chosen = blocks;
    has_room = 3 * bytes <= max_bytes;
  }
  return chosen;
}

// True if the kernel that streams tiles splits the operand.
bool streams(const KernelOfKind& kernel, const DeviceSplit& split) {
  const DeviceMatrix& matrix = split.side.matrix;
  return *kernel.streaming.name() != 0 && split.ranges_known && current_family().has_clusters &&
         (matrix.column_stride == 1 || matrix.row_stride == 1) &&
         padded_length_of(split) >= least_streaming_stride && split.rule->slices <= streaming_moduli;
}

}  // namespace

std::int64_t padded_length_of(const DeviceSplit& split) { return split.slices.vector_stride(); }

std::int64_t padded_vectors_of(const DeviceSplit& split) { return split.slices.padded_vectors(); }

// A thread gets 16 to 32 elements of its vector if the vector is long enough. Half or twice as many threads
// are slower (n = 4096: 39.7 and 40.5 us instead of 38.3).
std::int64_t threads_per_vector(std::int64_t padded_length) {
  const auto wanted = static_cast<std::uint64_t>(divide_up(padded_length, 32));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_ceil(wanted)), 32, rows_threads);
}

std::int64_t threads_per_short_vector(std::int64_t padded_length) {
  const auto wanted = static_cast<std::uint64_t>(divide_up(padded_length, 8));
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::bit_ceil(wanted)), 8);
}

std::int64_t SplitTraversal::min_threads(const KernelOfKind* kernel) const {
  switch (traversal) {
    case Traversal::tiles: return tile_threads;
    case Traversal::parts: return parts_split_threads;
    case Traversal::short_vectors: return short_threads;
    case Traversal::streaming: return streaming_threads;
    case Traversal::rows: return std::max(row_threads(), min_rows_threads);
    case Traversal::columns:
      if (is_by_norms(kernel) && cluster > 1) return cluster_threads;
      return columns_bytes(*kernel, *split, cluster) > 36 * 1024 ? cluster_threads : cluster_threads / 2;
  }
  return 0;
}

std::int64_t SplitTraversal::shared_bytes(const KernelOfKind& kernel, std::int64_t threads) const {
  switch (traversal) {
    case Traversal::tiles:
    case Traversal::short_vectors: return 0;
    case Traversal::streaming: return streaming_shared_bytes;
    case Traversal::parts: {
      const std::int64_t line_bytes = strip_bytes + strip_gap * element_bytes(kernel) / strip_group;
      return by_rows() ? 0 : part_length() * line_bytes;
    }
    case Traversal::rows: return threads / row_threads() * stride() * element_bytes(kernel);
    case Traversal::columns: return columns_bytes(kernel, *split, cluster);
  }
  return 0;
}

std::int64_t SplitTraversal::blocks(const KernelOfKind* kernel, std::int64_t threads) const {
  const std::int64_t vectors = written_vectors();
  switch (traversal) {
    case Traversal::tiles:
      return vectors / tile_vectors * std::max<std::int64_t>(divide_up(stride(), part_length()), 1);
    case Traversal::parts: {
      const std::int64_t vectors_per_block = by_rows() ? 1 : strip_bytes / element_bytes(*kernel);
      return vectors / vectors_per_block * divide_up(stride(), part_length());
    }
    case Traversal::streaming: return streaming_tiles(by_rows(), vectors, stride());
    case Traversal::short_vectors: return vectors / (short_threads / threads_per_short_vector(stride()));
    case Traversal::rows: return vectors / (threads / row_threads());
    case Traversal::columns: return vectors / (strip_bytes / element_bytes(*kernel)) * cluster;
  }
  return 0;
}

// Thread blocks that exit early take time to begin. Splits with a condition belong to candidates after the
// first, which few calls select. So they get no more thread blocks than the device holds at once.
std::int64_t SplitTraversal::max_launched(bool conditional) const {
  constexpr std::int64_t tiles_blocks = 2;  // thread blocks per SM that the kernels' registers allow
  constexpr std::int64_t parts_blocks = 3;
  if (traversal == Traversal::short_vectors) return short_blocks * sm_count();
  if (traversal == Traversal::streaming)
    return divide_up(streaming_blocks * sm_count(), std::max(split->side.items, std::int64_t{1}));
  const bool loops = traversal == Traversal::tiles || traversal == Traversal::parts;
  if (!conditional || !loops) return std::numeric_limits<std::int64_t>::max();
  return (traversal == Traversal::tiles ? tiles_blocks : parts_blocks) * sm_count();
}

std::int64_t SplitTraversal::row_threads() const {
  return std::max(threads_per_vector(stride()), min_row_threads);
}

bool SplitTraversal::by_rows() const { return split->side.matrix.column_stride == 1; }

bool SplitTraversal::shares_vectors() const {
  return traversal == Traversal::parts || (traversal == Traversal::tiles && stride() > long_stride);
}

std::int64_t SplitTraversal::written_vectors() const {
  const bool may_leave_padding = traversal == Traversal::parts || traversal == Traversal::streaming;
  if (split->needs_padding || !may_leave_padding) return padded_vectors_of(*split);
  if (traversal == Traversal::streaming) return round_up(split->slices.vectors, streaming_vector_multiple);
  constexpr std::int64_t vectors_of_strip = strip_bytes / 4;  // of FP32, and a multiple of those of FP64
  return round_up(split->slices.vectors, vectors_of_strip);
}

std::int64_t SplitTraversal::part_length() const {
  if (traversal == Traversal::parts) return by_rows() ? row_part_length : strip_part_length;
  const bool takes_whole_vectors = !shares_vectors() || !split->ranges_known;
  return takes_whole_vectors ? std::max<std::int64_t>(stride(), 1) : tiles_part_length;
}

// If norms are found, few contiguous vectors get 64 threads each, and thread blocks 128 threads if all of
// them then run at once or nearly so: both operands of n = 1024 are split in 21.3 us instead of 24.0 by
// 256 threads, and those of n = 1536 in 41.2 instead of 40.6.
std::int64_t choose_threads(const KernelOfKind* kernel, std::span<SplitTraversal> splits) {
  constexpr std::int64_t few_vectors = 2048;
  constexpr std::int64_t blocks_of_sm = 3;       // of cluster_threads threads
  constexpr std::int64_t small_part = 52 << 10;  // bytes; an SM holds four
  constexpr std::int64_t short_vector = 256;     // elements; 64 threads gain nothing
  const SplitTraversal& first = splits.front();
  const bool by_norms = is_by_norms(kernel);
  const bool by_columns = first.traversal == Traversal::columns;
  std::int64_t threads = 0;
  for (SplitTraversal& split : splits) {
    const bool shares_rows = by_columns || split.stride() > short_vector;
    if (by_norms && shares_rows && split.written_vectors() <= few_vectors)
      split.min_row_threads = min_rows_threads / 2;
    threads = std::max(threads, split.min_threads(kernel));
  }
  if (!by_norms || !by_columns || first.cluster == 1) return threads;
  std::int64_t blocks = 0;
  for (const SplitTraversal& split : splits) blocks += split.blocks(kernel, threads);
  const std::int64_t resident = blocks_of_sm * sm_count();
  const bool nearly_fits = 5 * blocks > 6 * resident && 20 * blocks <= 37 * resident;
  const bool is_small = first.shared_bytes(*kernel, min_rows_threads) <= small_part;
  const bool hold_rows = std::all_of(splits.begin(), splits.end(), [](const SplitTraversal& split) {
    return split.traversal != Traversal::rows || split.row_threads() <= min_rows_threads;
  });
  return nearly_fits && is_small && hold_rows ? min_rows_threads : threads;
}

SplitTraversal choose_traversal(const KernelOfKind* kernel, const DeviceSplit& split) {
  // Largest dynamic shared memory. The kernels' static shared memory takes less than 6 KiB.
  const std::int64_t max_bytes = device_attribute(shared_bytes_of_block, current_device()) - 6 * 1024;
  const DeviceMatrix& matrix = split.side.matrix;
  if (kernel == nullptr || kernel->kind == ElementKind::fitted) return {&split, Traversal::tiles};
  // The kernel for tiles exits early in the least time: it has by far the fewest thread blocks and no
  // clusters. A thousand clusters take 3 us to begin and exit.
  if (split.unlikely) return {&split, Traversal::tiles};
  const bool by_norms = kernel->kind == ElementKind::residues_by_norms;
  if (!by_norms && split.slices.vector_stride() <= short_stride && split.slices.vectors >= many_vectors)
    return {&split, Traversal::short_vectors};
  if (streams(*kernel, split)) return {&split, Traversal::streaming};
  const SplitTraversal rows{&split, Traversal::rows};
  const bool is_long = rows.stride() > long_stride;
  if (matrix.column_stride == 1) {
    if (rows.shared_bytes(*kernel, rows.min_threads(kernel)) <= max_bytes) return rows;
    return {&split, is_long ? Traversal::parts : Traversal::tiles};
  }
  if (matrix.row_stride != 1) return {&split, Traversal::tiles};
  const std::int64_t cluster = current_family().has_clusters ? choose_cluster(*kernel, split, max_bytes) : 0;
  if (cluster > 0) return {&split, Traversal::columns, cluster};
  return {&split, is_long ? Traversal::parts : Traversal::tiles};
}

}  // namespace kintsugi::core::cuda
