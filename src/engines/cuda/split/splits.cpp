#include <algorithm>
#include <array>

#include "arith/residue/rounding_errors.hpp"
#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/recombine/recombine.hpp"
#include "engines/cuda/select/select.hpp"
#include "engines/cuda/split/pack_tiles.hpp"
#include "engines/cuda/split/scaling.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "engines/cuda/split/traversal.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

// Parameters that all splits of a call share.
struct SplitCall {
  DeviceCondition condition{};
  std::int64_t served_items = 1;  // batch items that each split serves
  Alpha alpha{};                  // splits before the selection exit early if alpha is 0
  NormFindings norms{};           // the proof that the splits' norms may rule out
  StreamRules rules{};            // if it has a selection, replaces `condition` and the splits' rules

  bool finds_norms() const { return norms.ruled_out != nullptr; }
};

// Parameters of a split whose traversal needs `blocks` thread blocks.
SplitTask task_of(const SplitTraversal& traversal, std::int64_t blocks, const SplitCall& call) {
  const DeviceSplit& split = *traversal.split;
  const Slices& slices = split.slices;
  return {.matrix = split.side.matrix,
          .item = split.side.item,
          .ranges = split.side.ranges + split.first,
          .item_ranges = split.side.matrix.vectors(),
          .norms = split.side.norms == nullptr ? nullptr : split.side.norms + split.first,
          .magnitudes = split.side.magnitudes == nullptr ? nullptr : split.side.magnitudes + split.first,
          .first = split.first,
          .vectors = split.slices.vectors,
          .padded_vectors = traversal.written_vectors(),
          .length = slices.k,
          .vector_stride = traversal.stride(),
          .slice_stride = slices.slice_stride(),
          .slices = slices.data,
          .item_bytes = static_cast<std::int64_t>(slices.bytes()),
          .rule = *split.rule,
          .format = *split.rule->format,
          .largest_bound = largest_fitting_bound(*split.rule, *split.rule->format),
          .found_norms = call.norms,
          .ranges_known = split.ranges_known,
          .kind = traversal.kind(),
          .fit = split.fit,
          .vector_threads = static_cast<std::int32_t>(traversal.vector_threads()),
          .part_length = traversal.part_length(),
          .blocks = blocks};
}

// Launches a kernel for grid.y batch items. More items than the grid's second extent can hold take several
// launches. `others` are the kernel's parameters after the tasks.
template <class... Others>
void launch_items(const Queue& queue, const KernelName& kernel, const Extent& grid, std::int64_t threads,
                  std::int64_t shared_bytes, SplitTasks tasks, const Others&... others) {
  for (std::int64_t first = 0; first < grid.y; first += max_launched_items) {
    const std::int64_t items = std::min(grid.y - first, max_launched_items);
    launch(kernel, {grid.x, items, 1, grid.cluster}, threads, shared_bytes, queue, tasks, others...);
    for (SplitTask& task : tasks.task) {
      task.item += max_launched_items;
      task.ranges += max_launched_items * task.item_ranges;
      if (task.norms != nullptr) task.norms += max_launched_items * task.item_ranges;
      if (task.magnitudes != nullptr) task.magnitudes += max_launched_items * task.item_ranges;
      task.slices += max_launched_items * task.item_bytes;
    }
    tasks.condition.selection += tasks.condition.selection == nullptr ? 0 : max_launched_items;
  }
}

// Launches splits of equally many batch items, with thread blocks in the order of `splits`. The traversal of
// the first split selects the kernel. So all splits must have the same traversal, with one exception: the
// first may go by columns and the second by rows, because the kernel for columns splits rows as well.
void launch_splits(const Queue& queue, std::span<SplitTraversal> splits, const SplitCall& call) {
  const std::int64_t threads = choose_threads(splits);
  SplitTasks tasks;
  tasks.condition = call.condition;
  tasks.served_items = call.served_items;
  tasks.alpha = call.alpha;
  std::int64_t blocks = 0;
  std::int64_t shared_bytes = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const SplitTraversal& traversal = splits[i];
    tasks.task[i] = task_of(traversal, traversal.blocks(threads), call);
    blocks += tasks.task[i].blocks;
    if (traversal.split->cleared.count > 0) tasks.cleared = traversal.split->cleared;
    shared_bytes = std::max(shared_bytes, traversal.shared_bytes(threads));
  }
  const SplitTraversal& first = splits.front();
  blocks = std::min(blocks, first.max_launched(call.condition.selection != nullptr));
  const Extent grid{blocks, first.split->side.items, 1, first.cluster};
  if (first.traversal == Traversal::streaming)
    return launch_items(queue, first.kernel_name(), grid, threads, shared_bytes, tasks, call.rules);
  launch_items(queue, first.kernel_name(), grid, threads, shared_bytes, tasks);
}

void split_one(const Queue& queue, const DeviceSplit& split, const SplitCall& call) {
  SplitTraversal traversal = choose_traversal(find_kernels(split, call.finds_norms()), split);
  launch_splits(queue, {&traversal, 1}, call);
}

// Number of elements whose split takes about as long as a launch: 2^18 FP32 numbers into two slices of fp16,
// 2 MiB.
constexpr std::int64_t small_elements = std::int64_t{1} << 18;
// Largest number of tiles of a small vector. The kernel for tiles reads a vector twice, for its range and for
// its slices. For longer vectors a launch of a faster kernel for each operand takes less time.
constexpr std::int64_t few_tiles = 4;

// True if the kernel for tiles splits the operand in little more time than a launch takes.
bool is_small(const DeviceSplit& split) {
  const std::int64_t stride = split.slices.vector_stride();
  return split.slices.padded_vectors() * stride <= small_elements && stride <= few_tiles * tile_length;
}

// Splits both operands in one launch and returns true, in two cases: one kernel has the traversals of both;
// or both are small, and the kernel for tiles splits them. Otherwise returns false and launches nothing.
bool split_together(const Queue& queue, std::span<const DeviceSplit> splits, const SplitCall& call) {
  if (splits[0].side.items != splits[1].side.items) return false;
  const KernelsOfKind& kernel = find_kernels(splits[0], call.finds_norms());
  const bool have_one_kind = &kernel == &find_kernels(splits[1], call.finds_norms());
  std::array both{choose_traversal(kernel, splits[0]), choose_traversal(kernel, splits[1])};
  const auto split_by = [&](const KernelsOfKind& kernel_of_both, Traversal traversal) {
    both = {SplitTraversal{&splits[0], &kernel_of_both, traversal},
            SplitTraversal{&splits[1], &kernel_of_both, traversal}};
  };
  // Vectors of both operands have the same length: if they are short for one, they are short for the other.
  if (both[0].traversal == Traversal::short_vectors || both[1].traversal == Traversal::short_vectors)
    split_by(kernel, Traversal::short_vectors);
  // The kernel that splits one operand by columns and the other by rows expects the columns first.
  if (both[1].traversal == Traversal::columns) std::swap(both[0], both[1]);
  if (both[1].traversal == Traversal::columns)
    both[0].cluster = both[1].cluster = std::max(both[0].cluster, both[1].cluster);
  const bool by_clusters = both[0].traversal == Traversal::columns && both[1].traversal == Traversal::rows;
  const bool by_one_kernel = have_one_kind && (both[0].traversal == both[1].traversal || by_clusters);
  if (!by_one_kernel) {
    if (call.finds_norms() || !is_small(splits[0]) || !is_small(splits[1])) return false;
    split_by(have_one_kind ? kernel : kernel_by_rule(), Traversal::tiles);
  }
  launch_splits(queue, both, call);
  return true;
}

bool splits_complex(const SplitRule& rule) {
  const ElementKind kind = kind_of(rule);
  return kind == ElementKind::residues || kind == ElementKind::wide_residues;
}

// Splits complex elements into residues. Elements have the ranges of the real vectors to which they belong.
// These ranges are found first if they are not known. As many thread blocks as the device holds go through
// the tiles.
void split_complex(const Queue& queue, DeviceSplit split, const DeviceCondition& condition) {
  static const KernelName c32_tiles{"split_complex", "split_c32_tiles", waits_for_grid_dependency};
  static const KernelName c64_tiles{"split_complex", "split_c64_tiles", waits_for_grid_dependency};
  const DeviceSide& side = split.side;
  if (!splits_complex(*split.rule))
    fail(Status::internal, "engine cuda got complex elements to split into integers of {} bits",
         split.rule->top_exponent + 1);
  if (!split.ranges_known) find_ranges(queue, side, no_side(side.items), {});
  split.ranges_known = true;
  SplitTasks tasks;
  tasks.condition = condition;
  const SplitTraversal traversal{&split, &kernel_by_rule(), Traversal::tiles};
  const std::int64_t first_vector = (side.matrix.right ? 2 : 1) * split.first;
  const std::int64_t tiles = traversal.written_vectors() / complex_tile_vectors *
                             divide_up(split.slices.vector_stride(), complex_tile_length);
  if (side.items == 0) return;
  const std::int64_t max_blocks = divide_up(complex_tiles_blocks * sm_count(), side.items);
  tasks.task[0] = task_of(traversal, tiles, {condition});
  tasks.task[0].kind = kind_of(*split.rule);
  tasks.task[0].ranges = side.ranges + first_vector;
  tasks.task[0].norms = side.norms == nullptr ? nullptr : side.norms + first_vector;
  const auto shared_bytes = complex_tiles_bytes(static_cast<std::int64_t>(element_bytes(side.matrix.type)));
  launch_items(queue, side.matrix.type == ElementType::c32 ? c32_tiles : c64_tiles,
               {std::min(tiles, max_blocks), side.items}, tile_threads, shared_bytes, tasks);
}

// Splits operands, in one launch if possible. An operand with a single item serves all items of the other
// operand.
void split_all(const Queue& queue, std::span<const DeviceSplit> splits, const SplitCall& call) {
  if (splits.size() == 2 && split_together(queue, splits, call)) return;
  std::int64_t items = 1;
  for (const DeviceSplit& split : splits) items = std::max(items, split.side.items);
  for (const DeviceSplit& split : splits) {
    SplitCall split_call = call;
    split_call.served_items = split.side.items == 1 ? items : 1;
    split_one(queue, split, split_call);
  }
}

// Vectors of the splits, for the kernels that find ranges and norms.
OfSides<VectorsOfSide> sides_of(std::span<const DeviceSplit> splits) {
  OfSides<VectorsOfSide> sides;
  for (const DeviceSplit& split : splits) {
    const bool finds_depth = split.finds_depth && split.side.matrix.type == ElementType::f32;
    sides.push_back({split.side, split.first, split.slices.vectors, finds_depth, split.rule});
  }
  return sides;
}

// Finds the unknown ranges of operands whose vectors are shared by several thread blocks, and marks them as
// known.
void find_shared_ranges(const Queue& queue, std::span<DeviceSplit> splits) {
  OfSides<DeviceSplit> found;
  for (DeviceSplit& split : splits) {
    const KernelsOfKind& kernel = find_kernels(split, /*by_norms=*/false);
    if (split.ranges_known || !choose_traversal(kernel, split).shares_vectors()) continue;
    found.push_back(split);
    found.back().side.norms = nullptr;  // no depths are needed
    split.ranges_known = true;
  }
  OfSides<VectorsOfSide> sides = sides_of(found);
  if (sides.size() == 2 && sides.begin()->side.items == sides.back().side.items)
    return find_ranges(queue, sides, {});
  for (const VectorsOfSide& side : sides) find_ranges(queue, {&side, 1}, {});
}

// Rules of candidates that share the kernel for streams.
StreamRules stream_rules(std::span<const SplitRule> rules, const SelectedModuli& selected) {
  StreamRules result{.selected = selected};
  for (std::size_t i = 0; i < rules.size(); ++i) {
    result.sum_bits[i] = static_cast<std::int16_t>(rules[i].sum_bits);
    result.top_exponent[i] = static_cast<std::int16_t>(rules[i].top_exponent);
  }
  return result;
}

}  // namespace

bool finds_norms(const DeviceSplit& split) {
  const KernelsOfKind& kernel = find_kernels(split, /*by_norms=*/true);
  return kernel.finds_norms() && split.side.items == 1 && split.rule->complex_basis.empty() &&
         choose_traversal(kernel, split).traversal != Traversal::tiles;
}

void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceScalars& scalars,
                    double coefficient, DeviceSelection* selection) {
  const SplitCall call{.alpha = alpha_of(scalars, splits.front().side, splits.front().side),
                       .norms = {coefficient, &selection->ruled_out}};
  clear(queue, &selection->ruled_out, sizeof(selection->ruled_out));
  OfSides<DeviceSplit> whole_splits;  // kernels that hold whole vectors find the norms themselves
  OfSides<DeviceSplit> long_splits;   // several thread blocks share a vector
  for (DeviceSplit split : splits) {
    split.ranges_known = false;  // these splits find them, whatever later steps will know
    const KernelsOfKind& kernel = find_kernels(split, /*by_norms=*/true);
    (choose_traversal(kernel, split).shares_vectors() ? long_splits : whole_splits).push_back(split);
  }
  split_all(queue, whole_splits, call);
  if (long_splits.empty()) return;
  OfSides<VectorsOfSide> sides = sides_of(long_splits);
  find_ranges(queue, sides, call.alpha);
  find_norms(queue, sides, call.alpha, call.norms);
  for (DeviceSplit& split : long_splits) split.ranges_known = true;
  split_all(queue, long_splits, call);
}

void split(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition) {
  if (!splits.empty() && !splits.front().rule->complex_basis.empty()) {
    for (const DeviceSplit& operand : splits) split_complex(queue, operand, condition);
    return;
  }
  if (!splits.empty() && splits.front().rule->kind == SplitKind::tiles)
    return pack_tiles(queue, splits, condition);
  OfSides<DeviceSplit> with_ranges(splits);
  find_shared_ranges(queue, with_ranges);
  split_all(queue, with_ranges, {condition});
}

bool takes_complex_elements(const SplitRule& rule) {
  return splits_complex(rule) && recombines(rule.complex_basis);
}

bool shares_kernels(ElementType type, const SplitRule& least, const SplitRule& most) {
  const Family& family = current_family();
  return family.int8 != nullptr && family.has_gemm_kernels() && family.has_clusters &&
         type == ElementType::f64 && least.complex_basis.empty() && least.scales == ScaleRule::norm &&
         most.scales == ScaleRule::norm && kind_of(most) == ElementKind::wide_residues &&
         most.slices - least.slices < StreamRules::max_rules && most.slices <= max_wide_digit_residues;
}

bool splits_selected_at_once(std::int64_t length) {
  return round_up(length, Slices::k_multiple) > least_streaming_stride;
}

void split_selected(const Queue& queue, std::span<const DeviceSplit> splits, std::span<const SplitRule> rules,
                    const SelectedModuli& selected) {
  const auto streams = [](const DeviceSplit& split) {
    const KernelsOfKind& kernel = find_kernels(split, /*by_norms=*/false);
    return split.ranges_known && choose_traversal(kernel, split).traversal == Traversal::streaming;
  };
  if (std::all_of(splits.begin(), splits.end(), streams))
    return split_all(queue, splits, {.rules = stream_rules(rules, selected)});
  for (const SplitRule& rule : rules) {
    OfSides<DeviceSplit> splits_of_candidate(splits);
    for (DeviceSplit& split : splits_of_candidate) {
      split.rule = &rule;
      split.slices.count = rule.slices;
    }
    split(queue, splits_of_candidate, selected.condition_of(rule.slices));
  }
}

}  // namespace kintsugi::core::cuda
