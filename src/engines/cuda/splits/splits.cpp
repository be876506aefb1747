#include "engines/cuda/splits/splits.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/cuda_driver.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/clear.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/splits/margins_task.hpp"
#include "engines/cuda/splits/ranges_task.hpp"
#include "engines/cuda/splits/scaling.hpp"
#include "engines/cuda/splits/split_task.hpp"
#include "formats/formats.hpp"

namespace kintsugi::core::cuda {

namespace {

// A grid's second extent; of more entries there are several launches.
constexpr std::int64_t most_entries = 65535;

RangesTask ranges_task(const DeviceSide& side, std::int64_t first_entry) {
  const std::int64_t vectors = side.matrix.vectors();
  return {side.matrix, side.entry + first_entry, side.ranges + first_entry * vectors,
          side.norms == nullptr ? nullptr : side.norms + first_entry * vectors,
          divide_up(vectors, ranges_vectors)};
}

MarginsTask margins_task(const DeviceMargins& of) {
  const DeviceSide& side = of.side;
  return {side.matrix,     side.entry, side.ranges,
          of.top_exponent, of.margins, divide_up(side.matrix.vectors(), ranges_vectors)};
}

// find_ranges or find_norms of sides with equally many entries.
void launch_ranges(const KernelName& kernel, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                   const Alpha& alpha) {
  for (std::int64_t first = 0; first < a.entries; first += most_entries) {
    const RangesTasks tasks{{ranges_task(a, first), ranges_task(b, first)}, alpha};
    launch(kernel, {tasks.task[0].blocks + tasks.task[1].blocks, std::min(a.entries - first, most_entries)},
           ranges_threads, 0, queue, tasks);
  }
}

const KernelName ranges_kernel{"ranges", "find_ranges", awaits_others};
const KernelName norms_kernel{"norms", "find_norms", awaits_others};

// Where ranges of one side are there already, that side is empty.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b) {
  const DeviceSide& side = a.ranges != nullptr ? a : b;
  return {scalars.device_alpha, scalars.alpha == 0.0, side.matrix.type};
}

void find_of_sides(const KernelName& kernel, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                   const DeviceScalars& scalars) {
  const Alpha alpha = alpha_of(scalars, a, b);
  if (a.entries == b.entries) return launch_ranges(kernel, queue, a, b, alpha);
  for (const DeviceSide& side : {a, b})
    launch_ranges(kernel, queue, side, {{}, 0, nullptr, side.entries}, alpha);
}

// The kernels that there are, one of each way through an operand for each kind of element.
enum class Way : std::uint8_t { tiles, rows, columns };

struct KernelOfKind {
  EntryType type;
  ElementKind kind;
  KernelName rows;
  KernelName columns;
  KernelName tiles;
};

#define KINTSUGI_KERNELS_OF_KIND(type, Source, kind)                                                    \
  {                                                                                                     \
    EntryType::type, ElementKind::kind, {"split_rows", "split_rows_" #Source "_" #kind, awaits_others}, \
        {"split_columns_sm90", "split_columns_" #Source "_" #kind, awaits_others}, {                    \
      "split_tiles", "split_tiles_" #Source "_" #kind, awaits_others                                    \
    }                                                                                                   \
  }

const std::array<KernelOfKind, 10> kernels{{
    KINTSUGI_KERNELS_OF_KIND(f32, float, fp16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, fp16_with_depth),
    KINTSUGI_KERNELS_OF_KIND(f32, float, bf16),
    KINTSUGI_KERNELS_OF_KIND(f32, float, tf32),
    KINTSUGI_KERNELS_OF_KIND(f32, float, quantised),
    KINTSUGI_KERNELS_OF_KIND(f32, float, digits),
    KINTSUGI_KERNELS_OF_KIND(f32, float, residues),
    KINTSUGI_KERNELS_OF_KIND(f64, double, digits),
    KINTSUGI_KERNELS_OF_KIND(f64, double, residues),
    KINTSUGI_KERNELS_OF_KIND(f64, double, wide_residues),
}};

// Norms are of whole vectors, before the first of them is scaled: no tiles.
const KernelOfKind norms_and_residues{
    EntryType::f64,
    ElementKind::residues_by_norms,
    {"split_rows", "split_rows_double_residues_by_norms", awaits_others},
    {"split_columns_sm90", "split_columns_double_residues_by_norms", awaits_others},
    {"", ""}};

// Small beside its products, and so by tiles alone.
const KernelOfKind fitted_kernel{EntryType::f32,
                                 ElementKind::fitted,
                                 {"", ""},
                                 {"", ""},
                                 {"split_tiles", "split_tiles_float_fitted", awaits_others}};

const KernelName any_kernel{"split_tiles", "split_tiles_double_any", awaits_others};

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
    case SplitKind::residues:
      return rule.integer_bits() <= 62   ? ElementKind::residues
             : rule.integer_bits() <= 93 ? ElementKind::wide_residues
                                         : ElementKind::any;
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

// What is the same for all splits of a call.
struct SplitCall {
  DeviceCondition condition{};
  std::int64_t served_entries = 1;  // by each split
  Alpha alpha{};                    // of splits before the choice
  NormFindings norms{};
};

// nullptr: no kernel has this kind of element.
const KernelOfKind* find_kernel(const DeviceSplit& split, const SplitCall& call) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(split.slices.data) % 16 == 0;
  ElementKind kind = kind_of(*split.rule);
  if (split.finds_depth && kind == ElementKind::fp16) kind = ElementKind::fp16_with_depth;
  if (call.norms.ruled_out != nullptr) {
    const bool fits = aligned && kind == ElementKind::residues && split.side.matrix.type == EntryType::f64;
    return fits ? &norms_and_residues : nullptr;
  }
  if (split.fit != nullptr) {
    const bool fits = aligned && kind == ElementKind::fp16 && split.side.matrix.type == EntryType::f32;
    return fits ? &fitted_kernel : nullptr;
  }
  for (const KernelOfKind& kernel : kernels) {
    if (aligned && kernel.kind == kind && kernel.type == split.side.matrix.type) return &kernel;
  }
  return nullptr;
}

bool has_clusters() {
  const Device device = current_device();
  return device_attribute(compute_capability_major, device) == 9 &&
         device_attribute(compute_capability_minor, device) == 0;
}

std::int64_t element_bytes(const KernelOfKind& kernel) { return kernel.type == EntryType::f32 ? 4 : 8; }

// Rows: 16 to 32 elements a thread where there are enough; with twice or half as many, it is slower (n = 4096: 40.5 and
// 39.7 us instead of 38.3).
std::int64_t threads_of_vector(std::int64_t stride) {
  const auto wanted = static_cast<std::uint64_t>(divide_up(stride, 32));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_ceil(wanted)), 32, rows_threads);
}

// Of a block of a cluster of so many.
std::int64_t columns_bytes(const KernelOfKind& kernel, std::int64_t stride, std::int64_t cluster) {
  return panel_part_bytes(element_bytes(kernel), stride, cluster, kernel.kind);
}

// A split on its way through the operand.
struct WaySplit {
  const DeviceSplit* split;
  Way way;
  std::int64_t cluster = 0;  // blocks of one, where they have clusters

  std::int64_t stride() const { return split->slices.vector_stride(); }
  // Of a block by itself, whatever the other operand needs.
  std::int64_t least_threads(const KernelOfKind* kernel) const {
    switch (way) {
      case Way::tiles: return tile_threads;
      case Way::rows: return std::max(threads_of_vector(stride()), least_rows_threads);
      case Way::columns:
        return columns_bytes(*kernel, stride(), cluster) > 36 * 1024 ? cluster_threads : cluster_threads / 2;
    }
    return 0;
  }
  std::int64_t shared_bytes(const KernelOfKind& kernel, std::int64_t threads) const {
    switch (way) {
      case Way::tiles: return 0;
      case Way::rows: return threads / threads_of_vector(stride()) * stride() * element_bytes(kernel);
      case Way::columns: return columns_bytes(kernel, stride(), cluster);
    }
    return 0;
  }
  std::int64_t blocks(const KernelOfKind* kernel, std::int64_t threads) const {
    const std::int64_t vectors = split->slices.padded_vectors();
    switch (way) {
      case Way::tiles: return vectors / tile_vectors;
      case Way::rows: return vectors / (threads / threads_of_vector(stride()));
      case Way::columns: return vectors / (panel_bytes / element_bytes(*kernel)) * cluster;
    }
    return 0;
  }
};

// How many blocks hold a panel: as few as leave room for two others on a multiprocessor and fill the device; more than eight
// only for that room, as they take 2 us longer to begin. 0: no cluster can.
std::int64_t choose_cluster(const KernelOfKind& kernel, const DeviceSplit& split, std::int64_t most_bytes) {
  constexpr std::int64_t enough_blocks = 512;
  const std::int64_t stride = split.slices.vector_stride();
  const std::int64_t panels =
      split.slices.padded_vectors() / (panel_bytes / element_bytes(kernel)) * split.side.entries;
  std::int64_t chosen = 0;
  bool has_room = false;
  for (std::int64_t blocks = 1; blocks <= largest_cluster && stride % (blocks * panel_group) == 0;
       blocks *= 2) {
    const std::int64_t bytes = columns_bytes(kernel, stride, blocks);
    if (bytes > most_bytes) continue;
    if (has_room && (panels * chosen >= enough_blocks || blocks > portable_cluster)) break;
    chosen = blocks;
    has_room = 3 * bytes <= most_bytes;
  }
  return chosen;
}

// One read of the operand where a block or a cluster can hold a vector.
WaySplit way_of(const KernelOfKind* kernel, const DeviceSplit& split) {
  const DeviceMatrix& matrix = split.side.matrix;
  if (kernel == nullptr || kernel->kind == ElementKind::fitted) return {&split, Way::tiles};
  // By far the fewest blocks of threads, and no clusters: a thousand of those take 3 us to begin and leave.
  if (split.rarely) return {&split, Way::tiles};
  // Less than this beside it is static.
  const std::int64_t most = device_attribute(shared_bytes_of_block, current_device()) - 6 * 1024;
  const WaySplit rows{&split, Way::rows};
  if (matrix.column_stride == 1 && rows.shared_bytes(*kernel, rows.least_threads(kernel)) <= most)
    return rows;
  const std::int64_t cluster =
      matrix.row_stride == 1 && has_clusters() ? choose_cluster(*kernel, split, most) : 0;
  return cluster > 0 ? WaySplit{&split, Way::columns, cluster} : WaySplit{&split, Way::tiles};
}

SplitTask task_of(const DeviceSplit& split, Way way, std::int64_t blocks, const SplitCall& call) {
  const Slices& slices = split.slices;
  return {.matrix = split.side.matrix,
          .entry = split.side.entry,
          .ranges = split.side.ranges + split.first,
          .entry_ranges = split.side.matrix.vectors(),
          .norms = split.side.norms == nullptr ? nullptr : split.side.norms + split.first,
          .first = split.first,
          .vectors = slices.vectors,
          .padded_vectors = slices.padded_vectors(),
          .length = slices.k,
          .vector_stride = slices.vector_stride(),
          .slice_stride = slices.slice_stride(),
          .slices = slices.data,
          .entry_bytes = static_cast<std::int64_t>(slices.bytes()),
          .rule = *split.rule,
          .format = *split.rule->format,
          .largest_bound = largest_fitting_bound(*split.rule, *split.rule->format),
          .found_norms = call.norms,
          .ranges_known = split.ranges_known,
          .fit = split.fit,
          .vector_threads =
              way == Way::rows ? static_cast<std::int32_t>(threads_of_vector(slices.vector_stride())) : 0,
          .blocks = blocks};
}

const KernelName& kernel_name(const KernelOfKind* kernel, Way way) {
  if (kernel == nullptr) return any_kernel;
  switch (way) {
    case Way::tiles: return kernel->tiles;
    case Way::rows: return kernel->rows;
    case Way::columns: break;
  }
  return kernel->columns;
}

void launch_entries(const Queue& queue, const KernelName& kernel, const Extent& grid, std::int64_t threads,
                    std::int64_t shared, SplitTasks tasks) {
  for (std::int64_t first = 0; first < grid.y; first += most_entries) {
    launch(kernel, {grid.x, std::min(grid.y - first, most_entries), 1, grid.cluster}, threads, shared, queue,
           tasks);
    for (SplitTask& task : tasks.task) {
      task.entry += most_entries;
      task.ranges += most_entries * task.entry_ranges;
      if (task.norms != nullptr) task.norms += most_entries * task.entry_ranges;
      task.slices += most_entries * task.entry_bytes;
    }
    tasks.condition.choice += tasks.condition.choice == nullptr ? 0 : most_entries;
  }
}

// In the order of their blocks; of equally many entries. All go the same way, or those by clusters come first.
void launch_splits(const Queue& queue, const KernelOfKind* kernel, std::span<const WaySplit> splits,
                   const SplitCall& call) {
  std::int64_t threads = 0;
  for (const WaySplit& one : splits) threads = std::max(threads, one.least_threads(kernel));
  SplitTasks tasks;
  tasks.condition = call.condition;
  tasks.served_entries = call.served_entries;
  tasks.alpha = call.alpha;
  std::int64_t blocks = 0;
  std::int64_t shared = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const WaySplit& one = splits[i];
    tasks.task[i] = task_of(*one.split, one.way, one.blocks(kernel, threads), call);
    blocks += tasks.task[i].blocks;
    if (kernel != nullptr) shared = std::max(shared, one.shared_bytes(*kernel, threads));
  }
  const WaySplit& first = splits.front();
  launch_entries(queue, kernel_name(kernel, first.way), {blocks, first.split->side.entries, 1, first.cluster},
                 threads, shared, tasks);
}

void split_one(const Queue& queue, const DeviceSplit& split, const SplitCall& call) {
  const KernelOfKind* kernel = find_kernel(split, call);
  const WaySplit one = way_of(kernel, split);
  launch_splits(queue, kernel, {&one, 1}, call);
}

// A launch costs about as much as splitting this many elements (2^18 FP32 numbers into two slices of fp16: 2 MiB).
constexpr std::int64_t small_elements = std::int64_t{1} << 18;
// Tiles of a vector are read one after the other, twice.
constexpr std::int64_t few_tiles = 4;

bool is_small(const DeviceSplit& split) {
  const std::int64_t stride = split.slices.vector_stride();
  return split.slices.padded_vectors() * stride <= small_elements && stride <= few_tiles * tile_length;
}

// Both operands in one launch: where one kernel does both, and else, if they are small, by tiles, as any operand can.
bool split_together(const Queue& queue, std::span<const DeviceSplit> splits, const SplitCall& call) {
  if (splits[0].side.entries != splits[1].side.entries) return false;
  const KernelOfKind* kernel = find_kernel(splits[0], call);
  if (kernel != find_kernel(splits[1], call)) kernel = nullptr;
  std::array both{way_of(kernel, splits[0]), way_of(kernel, splits[1])};
  if (both[1].way == Way::columns) std::swap(both[0], both[1]);
  if (both[1].way == Way::columns)
    both[0].cluster = both[1].cluster = std::max(both[0].cluster, both[1].cluster);
  const bool by_clusters = both[0].way == Way::columns && both[1].way == Way::rows;
  const bool by_one_kernel = kernel != nullptr && (both[0].way == both[1].way || by_clusters);
  if (!by_one_kernel) {
    if (call.norms.ruled_out != nullptr || !is_small(splits[0]) || !is_small(splits[1])) return false;
    both = {WaySplit{&splits[0], Way::tiles}, WaySplit{&splits[1], Way::tiles}};
  }
  launch_splits(queue, kernel, both, call);
  return true;
}

// Complex entries, whose ranges are those of their vectors: parts of them in the real operand's order.
void split_entries(const Queue& queue, DeviceSplit split, const DeviceCondition& condition) {
  static const std::array<KernelName, 4> of_entries{
      KernelName{"split_entries", "split_entries_float_residues", awaits_others},
      KernelName{"split_entries", "split_entries_float_wide_residues", awaits_others},
      KernelName{"split_entries", "split_entries_double_residues", awaits_others},
      KernelName{"split_entries", "split_entries_double_wide_residues", awaits_others}};
  const DeviceSide& side = split.side;
  if (!splits_entries(*split.rule))
    fail(Status::internal, "engine cuda was handed complex entries to split into integers of {} bits",
         split.rule->top_exponent + 1);
  const std::size_t number = (side.matrix.type == EntryType::c32 ? 0U : 2U) +
                             (kind_of(*split.rule) == ElementKind::wide_residues ? 1U : 0U);
  if (!split.ranges_known)
    launch_ranges(ranges_kernel, queue, side, {{}, 0, nullptr, side.entries},
                  {nullptr, false, side.matrix.type});
  split.ranges_known = true;
  SplitTasks tasks;
  tasks.condition = condition;
  const WaySplit way{&split, Way::tiles};
  const std::int64_t first_vector = (side.matrix.right ? 2 : 1) * split.first;
  tasks.task[0] = task_of(split, Way::tiles, way.blocks(nullptr, tile_threads), {condition});
  tasks.task[0].ranges = side.ranges + first_vector;
  tasks.task[0].norms = side.norms == nullptr ? nullptr : side.norms + first_vector;
  launch_entries(queue, of_entries[number], {tasks.task[0].blocks, side.entries}, tile_threads, 0, tasks);
}

}  // namespace

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  find_of_sides(ranges_kernel, queue, a, b, scalars);
}

void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  find_of_sides(norms_kernel, queue, a, b, scalars);
}

void find_margins(const Queue& queue, const DeviceMargins& a, const DeviceMargins& b,
                  const DeviceCondition& condition) {
  static const KernelName kernel{"margins", "find_margins"};
  const MarginsTasks tasks{{margins_task(a), margins_task(b)}, condition};
  launch(kernel, {tasks.task[0].blocks + tasks.task[1].blocks}, ranges_threads, 0, queue, tasks);
}

void choose(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
            const DeviceRungs& rungs, DeviceChoice* choice, const DeviceReporting& reporting) {
  static const KernelName by_ranges{"choose", "choose_rung", awaits_others};
  static const KernelName by_norms{"choose", "choose_rung_by_norms", awaits_others};
  const auto entry_ranges = [](const DeviceSide& side) {
    return side.entries == 1 ? 0 : side.matrix.vectors();
  };
  const ChoiceTask task{{a.ranges, b.ranges},
                        {a.norms, b.norms},
                        {a.matrix.vectors(), b.matrix.vectors()},
                        a.matrix.length(),
                        {entry_ranges(a), entry_ranges(b)},
                        alpha_of(scalars, a, b),
                        rungs,
                        choice,
                        reporting};
  launch(rungs.asks_for_norms() ? by_norms : by_ranges, {std::max(a.entries, b.entries)}, choice_threads, 0,
         queue, task);
}

bool finds_norms(const DeviceSplit& split) {
  std::uint32_t ruled_out = 0;
  const SplitCall call{.norms = {0, &ruled_out}};
  const KernelOfKind* kernel = find_kernel(split, call);
  return kernel != nullptr && split.side.entries == 1 && split.rule->complex_basis.empty() &&
         way_of(kernel, split).way != Way::tiles;
}

void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceScalars& scalars,
                    double coefficient, DeviceChoice* choice) {
  const SplitCall call{.alpha = alpha_of(scalars, splits.front().side, splits.front().side),
                       .norms = {coefficient, &choice->ruled_out}};
  clear(queue, &choice->ruled_out, sizeof(choice->ruled_out));
  if (splits.size() == 2 && split_together(queue, splits, call)) return;
  for (const DeviceSplit& one : splits) split_one(queue, one, call);
}

bool splits_entries(const SplitRule& rule) {
  const ElementKind kind = kind_of(rule);
  return kind == ElementKind::residues || kind == ElementKind::wide_residues;
}

void split(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition) {
  if (!splits.empty() && !splits.front().rule->complex_basis.empty()) {
    for (const DeviceSplit& one : splits) split_entries(queue, one, condition);
    return;
  }
  if (splits.size() == 2 && split_together(queue, splits, {condition})) return;
  std::int64_t entries = 1;
  for (const DeviceSplit& one : splits) entries = std::max(entries, one.side.entries);
  for (const DeviceSplit& one : splits)
    split_one(queue, one, {condition, one.side.entries == 1 ? entries : 1});
}

}  // namespace kintsugi::core::cuda
