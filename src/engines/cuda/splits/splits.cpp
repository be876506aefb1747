#include "engines/cuda/splits/splits.hpp"

#include <algorithm>
#include <array>

#include "base/cuda_driver.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/splits/ranges_task.hpp"
#include "engines/cuda/splits/split_task.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core::cuda {

namespace {

RangesTask ranges_task(const DeviceSide& side) {
  RangesTask task{side.matrix, side.entry, side.ranges, side.matrix.vectors(), side.matrix.length()};
  task.blocks = divide_up(task.vectors, ranges_vectors);
  return task;
}

// Where ranges of one side are there already, that side is empty.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b) {
  const DeviceSide& side = a.ranges != nullptr ? a : b;
  return {scalars.device_alpha, scalars.alpha == 0.0, side.matrix.type};
}

// The kernels that there are, one of each way through an operand for each kind of element.
enum class Way : std::uint8_t { tiles, rows, columns, columns_of_large_clusters };

struct KernelOfKind {
  EntryType type;
  ElementKind kind;
  KernelName rows;
  KernelName columns;
  KernelName columns_of_large_clusters;
  KernelName tiles;
};

#define KINTSUGI_KERNELS_OF_KIND(type, Source, kind)                                     \
  {                                                                                      \
    EntryType::type, ElementKind::kind, {"split_rows", "split_rows_" #Source "_" #kind}, \
        {"split_columns_sm90", "split_columns_8_" #Source "_" #kind},                    \
        {"split_columns_sm90", "split_columns_16_" #Source "_" #kind}, {                 \
      "split_tiles", "split_tiles_" #Source "_" #kind                                    \
    }                                                                                    \
  }

const std::array<KernelOfKind, 8> kernels{{
    KINTSUGI_KERNELS_OF_KIND(f32, float, fp16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, bf16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, tf32),
    KINTSUGI_KERNELS_OF_KIND(f32, float, quantised),
    KINTSUGI_KERNELS_OF_KIND(f32, float, digits),
    KINTSUGI_KERNELS_OF_KIND(f32, float, residues),
    KINTSUGI_KERNELS_OF_KIND(f64, double, digits),
    KINTSUGI_KERNELS_OF_KIND(f64, double, residues),
}};

const KernelName any_kernel{"split_tiles", "split_tiles_double_any"};

// Integers that no element of a scaled vector can overflow.
ElementKind integer_kind(const SplitRule& rule) {
  if (!rule.scale_vectors) return ElementKind::any;
  switch (rule.kind) {
    case SplitKind::hi_lo: {
      const bool nearest =
          rule.first_rounding == Rounding::nearest_even && rule.residual_rounding == Rounding::nearest_even;
      const bool fits = rule.top_exponent <= int8.max_exponent && rule.residual_exponent >= 0 &&
                        rule.residual_exponent <= int8.significand_bits && rule.slices <= 8;
      return nearest && fits ? ElementKind::quantised : ElementKind::any;
    }
    case SplitKind::fixed:
      return rule.top_exponent == int8.max_exponent && rule.residual_exponent == 8 && rule.slices <= 8
                 ? ElementKind::digits
                 : ElementKind::any;
    case SplitKind::residues: return rule.top_exponent + 1 <= 61 ? ElementKind::residues : ElementKind::any;
    default: return ElementKind::any;
  }
}

ElementKind kind_of(const SplitRule& rule) {
  const bool rests_grow = rule.residual_exponent >= 0 && rule.residual_exponent <= 100;
  const ElementKind floating =
      rule.kind == SplitKind::hi_lo && rests_grow ? ElementKind::fp16 : ElementKind::any;
  if (floating == ElementKind::any && rule.format->floating) return ElementKind::any;
  switch (rule.format->id) {
    case FormatId::fp16: return ElementKind::fp16;
    case FormatId::bf16: return ElementKind::bf16;
    case FormatId::tf32: return ElementKind::tf32;
    case FormatId::int8: return integer_kind(rule);
    default: return ElementKind::any;
  }
}

// nullptr: no kernel has this kind of element.
const KernelOfKind* find_kernel(const DeviceSplit& split) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(split.slices.data) % 16 == 0;
  const ElementKind kind = kind_of(*split.rule);
  for (const KernelOfKind& kernel : kernels) {
    if (aligned && kernel.kind == kind && kernel.type == split.side.matrix.type) return &kernel;
  }
  return nullptr;
}

int device_attribute(int attribute) {
  Device device = 0;
  int value = 0;
  check(driver().context_device(&device), "cuCtxGetDevice");
  check(driver().device_attribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

bool has_clusters() {
  return device_attribute(compute_capability_major) == 9 && device_attribute(compute_capability_minor) == 0;
}

std::int64_t element_bytes(const KernelOfKind& kernel) { return kernel.type == EntryType::f32 ? 4 : 8; }

std::int64_t blocks_of_cluster(Way way) {
  return way == Way::columns ? cluster_blocks : large_cluster_blocks;
}

std::int64_t shared_bytes(Way way, const KernelOfKind& kernel, const DeviceSplit& split) {
  const std::int64_t stride = split.slices.vector_stride();
  switch (way) {
    case Way::tiles: return 0;
    case Way::rows: return stride * element_bytes(kernel);
    case Way::columns:
    case Way::columns_of_large_clusters:
      return element_bytes(kernel) == 4 ? panel_part_bytes<float>(stride, blocks_of_cluster(way))
                                        : panel_part_bytes<double>(stride, blocks_of_cluster(way));
  }
  return 0;
}

// One read of the operand where a block or a cluster can hold a vector.
Way way_of(const KernelOfKind& kernel, const DeviceSplit& split) {
  const DeviceMatrix& matrix = split.side.matrix;
  // Less than this beside it is static.
  const std::int64_t most = device_attribute(shared_bytes_of_block) - 2048;
  const auto fits = [&](Way way) { return shared_bytes(way, kernel, split) <= most; };
  if (matrix.column_stride == 1 && fits(Way::rows)) return Way::rows;
  if (matrix.row_stride != 1 || !has_clusters()) return Way::tiles;
  // Clusters of sixteen are slower (n = 8192: 201 us instead of 179), but not than multiprocessors that hold less than
  // three parts.
  const bool divides = split.slices.vector_stride() % (large_cluster_blocks * panel_group) == 0;
  const bool three_fit = 3 * shared_bytes(Way::columns, kernel, split) <= most;
  if (divides && !three_fit && fits(Way::columns_of_large_clusters)) return Way::columns_of_large_clusters;
  return fits(Way::columns) ? Way::columns : Way::tiles;
}

std::int64_t blocks_of(Way way, const KernelOfKind* kernel, const Slices& slices) {
  const std::int64_t vectors = slices.padded_vectors();
  switch (way) {
    case Way::tiles: return vectors / tile_vectors;
    case Way::rows: return vectors;
    case Way::columns:
    case Way::columns_of_large_clusters:
      return vectors / (panel_bytes / element_bytes(*kernel)) * blocks_of_cluster(way);
  }
  return 0;
}

// Rows: with twice or half as many elements, a thread is slower (n = 4096: 40.5 and 39.7 us instead of 38.3).
std::int64_t threads_of(Way way, const Slices& slices, std::int64_t shared) {
  switch (way) {
    case Way::tiles: return tile_threads;
    case Way::rows:
      return std::clamp<std::int64_t>(round_up(slices.vector_stride() / 32, 32), 64, rows_threads);
    case Way::columns:
    case Way::columns_of_large_clusters: return shared > 36 * 1024 ? cluster_threads : cluster_threads / 2;
  }
  return 0;
}

SplitTask task_of(const DeviceSplit& split, std::int64_t blocks) {
  const Slices& slices = split.slices;
  return {.matrix = split.side.matrix,
          .entry = split.side.entry,
          .ranges = split.side.ranges + split.first,
          .first = split.first,
          .vectors = slices.vectors,
          .padded_vectors = slices.padded_vectors(),
          .length = slices.k,
          .vector_stride = slices.vector_stride(),
          .slice_stride = slices.slice_stride(),
          .slices = slices.data,
          .rule = *split.rule,
          .format = *split.rule->format,
          .ranges_known = split.ranges_known,
          .blocks = blocks};
}

const KernelName& kernel_name(const KernelOfKind* kernel, Way way) {
  if (kernel == nullptr) return any_kernel;
  switch (way) {
    case Way::tiles: return kernel->tiles;
    case Way::rows: return kernel->rows;
    case Way::columns: return kernel->columns;
    case Way::columns_of_large_clusters: break;
  }
  kernel->columns_of_large_clusters.allow_large_clusters();
  return kernel->columns_of_large_clusters;
}

void launch_splits(const Queue& queue, const KernelOfKind* kernel, Way way,
                   std::span<const DeviceSplit> splits, const DeviceCondition& condition) {
  SplitTasks tasks;
  tasks.condition = condition;
  std::int64_t blocks = 0;
  std::int64_t threads = 0;
  std::int64_t shared = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const Slices& slices = splits[i].slices;
    tasks.task[i] = task_of(splits[i], blocks_of(way, kernel, slices));
    blocks += tasks.task[i].blocks;
    shared = std::max(shared, kernel == nullptr ? 0 : shared_bytes(way, *kernel, splits[i]));
    threads = std::max(threads, threads_of(way, slices, shared));
  }
  launch(kernel_name(kernel, way), {blocks}, threads, shared, queue, tasks);
}

void split_one(const Queue& queue, const DeviceSplit& split, const DeviceCondition& condition) {
  const KernelOfKind* kernel = find_kernel(split);
  launch_splits(queue, kernel, kernel == nullptr ? Way::tiles : way_of(*kernel, split), {&split, 1},
                condition);
}

// A launch costs about as much as splitting this many elements (2^18 FP32 numbers into two slices of fp16: 2 MiB).
constexpr std::int64_t small_elements = std::int64_t{1} << 18;
// Tiles of a vector are read one after the other, twice.
constexpr std::int64_t few_tiles = 4;

// Both operands in one launch: where one kernel does both, and else, if they are small, by tiles, as any operand can.
bool split_together(const Queue& queue, std::span<const DeviceSplit> splits,
                    const DeviceCondition& condition) {
  bool small = true;
  for (const DeviceSplit& split : splits) {
    const std::int64_t stride = split.slices.vector_stride();
    small = small && split.slices.padded_vectors() * stride <= small_elements &&
            stride <= few_tiles * tile_length;
  }
  const KernelOfKind* kernel = find_kernel(splits[0]);
  if (kernel != find_kernel(splits[1])) kernel = nullptr;
  const Way way = kernel == nullptr ? Way::tiles : way_of(*kernel, splits[0]);
  const bool same = kernel != nullptr && way == way_of(*kernel, splits[1]);
  if (!same && !small) return false;
  launch_splits(queue, kernel, same ? way : Way::tiles, splits, condition);
  return true;
}

}  // namespace

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  static const KernelName kernel{"ranges", "find_ranges"};
  const RangesTasks tasks{{ranges_task(a), ranges_task(b)}, alpha_of(scalars, a, b)};
  launch(kernel, {tasks.task[0].blocks + tasks.task[1].blocks}, ranges_threads, 0, queue, tasks);
}

void choose(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
            const DeviceRungs& rungs, DeviceChoice* choice, DeviceReport* report) {
  static const KernelName kernel{"choose", "choose_rung"};
  const ChoiceTask task{{a.ranges, b.ranges},
                        {a.matrix.vectors(), b.matrix.vectors()},
                        alpha_of(scalars, a, b),
                        rungs,
                        choice,
                        report};
  launch(kernel, {}, choice_threads, 0, queue, task);
}

void split(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition) {
  if (splits.size() == 2 && split_together(queue, splits, condition)) return;
  for (const DeviceSplit& one : splits) split_one(queue, one, condition);
}

}  // namespace kintsugi::core::cuda
