#include "engines/cuda/split/traversal.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core::cuda {

namespace {

const KernelName f32_fp16_rows{"split_rows", "split_f32_fp16_rows", waits_for_grid_dependency};
const KernelName f32_fp16_with_depth_rows{"split_rows", "split_f32_fp16_with_depth_rows",
                                          waits_for_grid_dependency};
const KernelName f32_bf16_rows{"split_rows", "split_f32_bf16_rows", waits_for_grid_dependency};
const KernelName f32_residues_rows{"split_rows", "split_f32_residues_rows", waits_for_grid_dependency};
const KernelName f64_residues_rows{"split_rows", "split_f64_residues_rows", waits_for_grid_dependency};
const KernelName f64_residues_by_norms_rows{"split_rows", "split_f64_residues_by_norms_rows",
                                            waits_for_grid_dependency};
const KernelName f32_fp16_columns{"split_columns_clusters", "split_f32_fp16_columns",
                                  waits_for_grid_dependency};
const KernelName f32_fp16_with_depth_columns{"split_columns_clusters", "split_f32_fp16_with_depth_columns",
                                             waits_for_grid_dependency};
const KernelName f32_bf16_columns{"split_columns_clusters", "split_f32_bf16_columns",
                                  waits_for_grid_dependency};
const KernelName f32_residues_columns{"split_columns_clusters", "split_f32_residues_columns",
                                      waits_for_grid_dependency};
const KernelName f32_other_columns{"split_columns_clusters", "split_f32_other_columns",
                                   waits_for_grid_dependency};
const KernelName f64_digits_columns{"split_columns_clusters", "split_f64_digits_columns",
                                    waits_for_grid_dependency};
const KernelName f64_residues_columns{"split_columns_clusters", "split_f64_residues_columns",
                                      waits_for_grid_dependency};
const KernelName f64_residues_by_norms_columns{
    "split_columns_clusters", "split_f64_residues_by_norms_columns", waits_for_grid_dependency};
const KernelName f32_fp16_short{"split_short", "split_f32_fp16_short", waits_for_grid_dependency};
const KernelName f32_fp16_with_depth_short{"split_short", "split_f32_fp16_with_depth_short",
                                           waits_for_grid_dependency};
const KernelName f32_bf16_short{"split_short", "split_f32_bf16_short", waits_for_grid_dependency};
const KernelName f32_parts{"split_parts", "split_f32_parts", waits_for_grid_dependency};
const KernelName f64_parts{"split_parts", "split_f64_parts", waits_for_grid_dependency};
const KernelName f64_streaming{"split_streaming", "split_f64_wide_residues_streaming",
                               waits_for_grid_dependency};
const KernelName f32_tiles{"split_tiles", "split_f32_tiles", waits_for_grid_dependency};
const KernelName f64_tiles{"split_tiles", "split_f64_tiles", waits_for_grid_dependency};

using enum ElementKind;
constexpr ElementType f32 = ElementType::f32;
constexpr ElementType f64 = ElementType::f64;

// Kinds that are rare, or whose splits take little time beside their products (`fitted`), share kernels or
// have none but that for tiles. Kernels for columns also split rows.
const KernelsOfKind kernels[] = {
    // type, kind, rows, columns, short vectors, parts, streaming, tiles
    {f32, fp16, &f32_fp16_rows, &f32_fp16_columns, &f32_fp16_short, &f32_parts, nullptr, &f32_tiles},
    {f32, fp16_with_depth, &f32_fp16_with_depth_rows, &f32_fp16_with_depth_columns,
     &f32_fp16_with_depth_short, &f32_parts, nullptr, &f32_tiles},
    {f32, fitted, nullptr, nullptr, nullptr, nullptr, nullptr, &f32_tiles},
    {f32, bf16, &f32_bf16_rows, &f32_bf16_columns, &f32_bf16_short, &f32_parts, nullptr, &f32_tiles},
    {f32, tf32, &f32_other_columns, &f32_other_columns, nullptr, nullptr, nullptr, &f32_tiles},
    {f32, quantised, &f32_other_columns, &f32_other_columns, nullptr, nullptr, nullptr, &f32_tiles},
    {f32, digits, &f32_other_columns, &f32_other_columns, nullptr, nullptr, nullptr, &f32_tiles},
    {f32, residues, &f32_residues_rows, &f32_residues_columns, nullptr, &f32_parts, nullptr, &f32_tiles},
    {f64, digits, &f64_digits_columns, &f64_digits_columns, nullptr, nullptr, nullptr, &f64_tiles},
    {f64, residues, &f64_residues_rows, &f64_residues_columns, nullptr, &f64_parts, nullptr, &f64_tiles},
    {f64, residues_by_norms, &f64_residues_by_norms_rows, &f64_residues_by_norms_columns, nullptr, &f64_parts,
     nullptr, &f64_tiles},
    {f64, wide_residues, nullptr, nullptr, nullptr, nullptr, &f64_streaming, &f64_tiles}};

// The kernel for tiles of FP64 elements reads elements of any type if they are split by the rule.
const KernelsOfKind by_rule_kernel{f64, by_rule, nullptr, nullptr, nullptr, nullptr, nullptr, &f64_tiles};

// Kind of a split into int8 whose kernel cannot overflow under the rule; `by_rule` if there is no such kind.
ElementKind integer_kind(const SplitRule& rule) {
  if (!rule.scale_vectors) return ElementKind::by_rule;
  switch (rule.kind) {
    case SplitKind::rounded_residuals: {
      const bool nearest =
          rule.first_rounding == Rounding::nearest_even && rule.residual_rounding == Rounding::nearest_even;
      const bool fits = rule.top_exponent <= int8.max_exponent && rule.residual_exponent >= 0 &&
                        rule.residual_exponent <= int8.significand_bits && rule.slices <= 8;
      return nearest && fits ? ElementKind::quantised : ElementKind::by_rule;
    }
    case SplitKind::grid_digits:
      return rule.top_exponent == int8.max_exponent && rule.residual_exponent == 8 && rule.slices <= 8
                 ? ElementKind::digits
                 : ElementKind::by_rule;
    case SplitKind::residues:
      // Eight digits of a byte hold integers of 62 bits, twelve digits hold integers of 93 bits.
      return rule.integer_bits() <= 62   ? ElementKind::residues
             : rule.integer_bits() <= 93 ? ElementKind::wide_residues
                                         : ElementKind::by_rule;
    default: return ElementKind::by_rule;
  }
}

}  // namespace

ElementKind kind_of(const SplitRule& rule) {
  const bool fp32_scales_residuals = rule.residual_exponent >= 0 && rule.residual_exponent <= 100;
  const bool splits_in_fp32 = rule.kind == SplitKind::rounded_residuals && fp32_scales_residuals;
  if (rule.format->floating && !splits_in_fp32) return ElementKind::by_rule;
  switch (rule.format->id) {
    case FormatId::fp16: return ElementKind::fp16;
    case FormatId::bf16: return ElementKind::bf16;
    case FormatId::tf32: return ElementKind::tf32;
    case FormatId::int8: return integer_kind(rule);
    default: return ElementKind::by_rule;
  }
}

const KernelsOfKind& kernel_by_rule() { return by_rule_kernel; }

const KernelsOfKind& find_kernels(const DeviceSplit& split, bool by_norms) {
  ElementKind kind = kind_of(*split.rule);
  if (split.fit != nullptr) {
    kind = kind == fp16 ? fitted : by_rule;
  } else if (split.finds_depth && kind == fp16) {
    kind = fp16_with_depth;
  } else if (by_norms) {
    kind = kind == residues ? residues_by_norms : by_rule;
  }
  const bool aligned = reinterpret_cast<std::uintptr_t>(split.slices.data) % 16 == 0;
  const auto* found = std::ranges::find_if(kernels, [&](const KernelsOfKind& kernel) {
    return aligned && kernel.kind == kind && kernel.type == split.side.matrix.type;
  });
  return found == std::end(kernels) ? by_rule_kernel : *found;
}

namespace {

// Number of SMs that a cluster of `blocks` thread blocks takes. The shared memory of an SM and the kernels'
// launch bounds limit the thread blocks per SM. `bytes` is the shared memory of a thread block, `max_bytes`
// that of an SM.
std::int64_t sms_of_cluster(std::int64_t blocks, std::int64_t bytes, std::int64_t max_bytes) {
  constexpr std::int64_t max_blocks_of_sm = 3;
  return divide_up(blocks, std::min(max_blocks_of_sm, max_bytes / bytes));
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
std::int64_t choose_cluster(const KernelsOfKind& kernel, const DeviceSplit& split, std::int64_t max_bytes) {
  constexpr std::int64_t max_sms = 4;
  const std::int64_t stride = split.slices.vector_stride();
  const std::int64_t strips =
      split.slices.padded_vectors() / (strip_bytes / kernel.element_bytes()) * split.side.items;
  std::int64_t chosen = 0;
  bool has_room = false;
  for (std::int64_t blocks = 1; blocks <= largest_cluster && stride % (blocks * strip_group) == 0;
       blocks *= 2) {
    const std::int64_t bytes = strip_part_bytes(kernel.element_bytes(), stride, blocks, kernel.kind);
    if (bytes > max_bytes || sms_of_cluster(blocks, bytes, max_bytes) > max_sms) continue;
    if (has_room && strips * chosen >= enough_blocks(kernel.finds_norms(), chosen)) break;
    chosen = blocks;
    has_room = 3 * bytes <= max_bytes;
  }
  return chosen;
}

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

}  // namespace

const KernelName& SplitTraversal::kernel_name() const {
  switch (traversal) {
    case Traversal::rows: return *kernel->rows;
    case Traversal::columns: return *kernel->columns;
    case Traversal::short_vectors: return *kernel->short_vectors;
    case Traversal::parts: return *kernel->parts;
    case Traversal::streaming: return *kernel->streaming;
    case Traversal::tiles: break;
  }
  return *kernel->tiles;
}

// Kinds that differ from others only in how ranges are found do not differ once these are known.
ElementKind SplitTraversal::kind() const {
  if (traversal != Traversal::parts) return kernel->kind;
  return kernel->kind == fp16_with_depth ? fp16 : kernel->kind == residues_by_norms ? residues : kernel->kind;
}

std::int64_t SplitTraversal::vector_threads() const {
  if (traversal == Traversal::short_vectors) return threads_per_short_vector(stride());
  return traversal == Traversal::rows ? std::max(threads_per_vector(stride()), min_row_threads) : 0;
}

std::int64_t SplitTraversal::min_threads() const {
  switch (traversal) {
    case Traversal::rows: return std::max(vector_threads(), min_rows_threads);
    case Traversal::columns: {
      const bool by_norms = kernel->finds_norms() && cluster > 1;
      return by_norms || shared_bytes(0) > 36 * 1024 ? cluster_threads : cluster_threads / 2;
    }
    case Traversal::short_vectors: return short_threads;
    case Traversal::parts: return parts_split_threads;
    case Traversal::streaming: return streaming_threads;
    case Traversal::tiles: break;
  }
  return tile_threads;
}

std::int64_t SplitTraversal::shared_bytes(std::int64_t threads) const {
  const std::int64_t bytes = kernel->element_bytes();
  switch (traversal) {
    case Traversal::rows: return threads / vector_threads() * stride() * bytes;
    case Traversal::columns: return strip_part_bytes(bytes, stride(), cluster, kernel->kind);
    case Traversal::parts:
      return part_length() * (by_rows() ? bytes : strip_bytes + strip_gap * bytes / strip_group);
    case Traversal::streaming: return streaming_shared_bytes;
    case Traversal::short_vectors:
    case Traversal::tiles: break;
  }
  return 0;
}

std::int64_t SplitTraversal::blocks(std::int64_t threads) const {
  const std::int64_t vectors = written_vectors();
  const std::int64_t strips = vectors / (strip_bytes / kernel->element_bytes());
  switch (traversal) {
    case Traversal::rows: return vectors / (threads / vector_threads());
    case Traversal::columns: return strips * cluster;
    case Traversal::short_vectors: return vectors / (short_threads / vector_threads());
    case Traversal::parts: return (by_rows() ? vectors : strips) * divide_up(stride(), part_length());
    case Traversal::streaming: return streaming_tiles(by_rows(), vectors, stride());
    case Traversal::tiles: break;
  }
  return vectors / tile_vectors * std::max<std::int64_t>(divide_up(stride(), part_length()), 1);
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

bool SplitTraversal::shares_vectors() const {
  return traversal == Traversal::parts || traversal == Traversal::streaming ||
         (traversal == Traversal::tiles && stride() > long_stride);
}

std::int64_t SplitTraversal::written_vectors() const {
  const bool may_leave_padding = traversal == Traversal::parts || traversal == Traversal::streaming;
  if (split->needs_padding || !may_leave_padding) return split->slices.padded_vectors();
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
std::int64_t choose_threads(std::span<SplitTraversal> splits) {
  constexpr std::int64_t few_vectors = 2048;
  constexpr std::int64_t blocks_of_sm = 3;       // of cluster_threads threads
  constexpr std::int64_t small_part = 52 << 10;  // bytes; an SM holds four
  constexpr std::int64_t short_vector = 256;     // elements; 64 threads gain nothing
  const SplitTraversal& first = splits.front();
  const bool by_norms = first.kernel->finds_norms();
  const bool by_columns = first.traversal == Traversal::columns;
  std::int64_t threads = 0;
  for (SplitTraversal& split : splits) {
    const bool shares_rows = by_columns || split.stride() > short_vector;
    if (by_norms && shares_rows && split.written_vectors() <= few_vectors)
      split.min_row_threads = min_rows_threads / 2;
    threads = std::max(threads, split.min_threads());
  }
  if (!by_norms || !by_columns || first.cluster == 1) return threads;
  std::int64_t blocks = 0;
  for (const SplitTraversal& split : splits) blocks += split.blocks(threads);
  const std::int64_t resident = blocks_of_sm * sm_count();
  const bool nearly_fits = 5 * blocks > 6 * resident && 20 * blocks <= 37 * resident;
  const bool is_small = first.shared_bytes(min_rows_threads) <= small_part;
  const bool hold_rows = std::all_of(splits.begin(), splits.end(), [](const SplitTraversal& split) {
    return split.traversal != Traversal::rows || split.vector_threads() <= min_rows_threads;
  });
  return nearly_fits && is_small && hold_rows ? min_rows_threads : threads;
}

// The first traversal that takes the operand:
//
//   tiles          candidates that batches of small items rarely select: this kernel exits early in the least
//                  time, as it has by far the fewest thread blocks and no clusters (a thousand clusters take
//                  3 us to begin and exit)
//   short_vectors  many vectors of at most 256 elements, of which any other kernel needs a thread block or a
//                  cluster for every few kilobytes
//   streaming      integers of more than 62 bits: it takes 0.82 of the time of columns (n = 4096), and finds
//                  the rounding errors of `exact` without another read
//   rows, columns  vectors that a thread block or a cluster of few SMs holds: ranges and slices in one read
//   parts          longer vectors that are adjacent or contiguous, and adjacent ones without clusters
//   tiles          anything else
SplitTraversal choose_traversal(const KernelsOfKind& kernel, const DeviceSplit& split) {
  const auto by = [&](Traversal traversal, std::int64_t cluster = 0) {
    return SplitTraversal{&split, &kernel, traversal, cluster};
  };
  if (split.unlikely) return by(Traversal::tiles);
  const std::int64_t stride = split.slices.vector_stride();
  if (kernel.short_vectors != nullptr && stride <= short_stride && split.slices.vectors >= many_vectors)
    return by(Traversal::short_vectors);
  const DeviceMatrix& matrix = split.side.matrix;
  const bool contiguous = matrix.column_stride == 1;
  const bool adjacent = matrix.row_stride == 1;
  if (!contiguous && !adjacent) return by(Traversal::tiles);
  if (kernel.streaming != nullptr && stride >= least_streaming_stride &&
      split.rule->slices <= streaming_moduli)
    return by(Traversal::streaming);
  // Largest dynamic shared memory. The kernels' static shared memory takes less than 6 KiB.
  const std::int64_t max_bytes = max_shared_bytes_of_block() - 6 * 1024;
  const bool has_clusters = current_family().has_clusters;
  if (contiguous && kernel.rows != nullptr && (has_clusters || !kernel.rows_need_clusters())) {
    const SplitTraversal rows = by(Traversal::rows);
    if (rows.shared_bytes(rows.min_threads()) <= max_bytes) return rows;
  }
  if (!contiguous && kernel.columns != nullptr && has_clusters) {
    const std::int64_t cluster = choose_cluster(kernel, split, max_bytes);
    if (cluster > 0) return by(Traversal::columns, cluster);
  }
  const bool has_few_blocks = !contiguous && !has_clusters;  // the kernel for tiles reads whole vectors
  const bool by_parts = kernel.parts != nullptr && (stride > long_stride || has_few_blocks);
  return by(by_parts ? Traversal::parts : Traversal::tiles);
}

}  // namespace kintsugi::core::cuda
