#include "engines/cuda/select/select.hpp"

#include <algorithm>
#include <array>

#include "engines/cuda/common/clear.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/rounding_bounds_task.hpp"
#include "engines/cuda/split/parts/range_parts.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

namespace {

// Parameters for the side's items from `first_item` on.
RangesTask ranges_task(const DeviceSide& side, std::int64_t first_item) {
  const std::int64_t vectors = side.matrix.vectors();
  return {side.matrix, side.item + first_item, side.ranges + first_item * vectors,
          side.norms == nullptr ? nullptr : side.norms + first_item * vectors,
          divide_up(vectors, ranges_vectors)};
}

RoundingBoundsTask rounding_bounds_task(const DeviceRoundingBounds& operand) {
  const DeviceSide& side = operand.side;
  return {side.matrix,
          side.item,
          side.ranges,
          operand.top_exponent,
          operand.bounds,
          operand.first,
          divide_up(operand.vectors, ranges_vectors)};
}

// Launches find_ranges or find_norms for sides with equally many items.
void launch_ranges(const KernelName& kernel, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                   const Alpha& alpha) {
  for (std::int64_t first = 0; first < a.items; first += max_launched_items) {
    const RangesTasks tasks{{ranges_task(a, first), ranges_task(b, first)}, alpha};
    launch(kernel,
           {tasks.task[0].blocks + tasks.task[1].blocks, std::min(a.items - first, max_launched_items)},
           ranges_threads, no_shared_bytes, queue, tasks);
  }
}

const KernelName ranges_kernel{"ranges", "find_ranges", waits_for_grid_dependency};
const KernelName norms_kernel{"norms", "find_norms", waits_for_grid_dependency};

// Quantity of each vector that find() finds.
enum class Quantity : std::uint8_t { ranges, norms };

// Finds the quantity for sides with equally many items; by parts if reads_by_parts().
void find_together(Quantity quantity, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                   const Alpha& alpha) {
  if (!reads_by_parts(a, b))
    return launch_ranges(quantity == Quantity::ranges ? ranges_kernel : norms_kernel, queue, a, b, alpha);
  const std::array sides{VectorsOfSide{.side = a, .count = a.matrix.vectors(), .finds_depth = true},
                         VectorsOfSide{.side = b, .count = b.matrix.vectors(), .finds_depth = true}};
  if (quantity == Quantity::ranges) return find_ranges_by_parts(queue, sides, alpha);
  const NormFindings no_findings{};
  find_norms_by_parts(queue, sides, alpha, no_findings);
}

// Finds the quantity for any two sides.
void find(Quantity quantity, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
          const DeviceScalars& scalars) {
  const Alpha alpha = alpha_of(scalars, a, b);
  if (a.items == b.items) return find_together(quantity, queue, a, b, alpha);
  for (const DeviceSide& side : {a, b}) find_together(quantity, queue, side, no_side(side.items), alpha);
}

}  // namespace

// alpha has the type of either side. A side whose ranges are known may be empty; then it has no type.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b) {
  const DeviceSide& side = a.ranges != nullptr ? a : b;
  return {scalars.device_alpha, scalars.alpha == 0.0, side.matrix.type};
}

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  find(Quantity::ranges, queue, a, b, scalars);
}

void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  find(Quantity::norms, queue, a, b, scalars);
}

void find_rounding_bounds(const Queue& queue, const DeviceRoundingBounds& a, const DeviceRoundingBounds& b,
                          const DeviceCondition& condition) {
  static const KernelName kernel{"rounding_bounds", "find_rounding_bounds"};
  const RoundingBoundsTasks tasks{{rounding_bounds_task(a), rounding_bounds_task(b)}, condition};
  launch(kernel, {tasks.task[0].blocks + tasks.task[1].blocks}, ranges_threads, no_shared_bytes, queue,
         tasks);
}

void summarize(const Queue& queue, const DeviceSide& side, MergedSummary* summaries) {
  static const KernelName kernel{"selector", "summarize_ranges"};
  constexpr std::int64_t vectors_per_block = 2048;
  const std::int64_t vectors = side.matrix.vectors();
  clear(queue, summaries, static_cast<std::size_t>(side.items) * sizeof(MergedSummary));
  for (std::int64_t first = 0; first < side.items; first += max_launched_items) {
    launch(kernel, {divide_up(vectors, vectors_per_block), std::min(side.items - first, max_launched_items)},
           selection_threads, no_shared_bytes, queue,
           SummaryTask{side.ranges + first * vectors, vectors, vectors_per_block, summaries + first});
  }
}

SelectionTask selection_task(const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
                             const DeviceCandidates& candidates, DeviceSelection* selection,
                             const DeviceReporting& reporting) {
  return {.ranges = {a.ranges, b.ranges},
          .norms = {a.norms, b.norms},
          .summaries = {a.summaries, b.summaries},
          .vectors = {a.matrix.vectors(), b.matrix.vectors()},
          .length = a.matrix.length(),
          .is_shared = {a.items == 1, b.items == 1},
          .alpha = alpha_of(scalars, a, b),
          .candidates = candidates,
          .selection = selection,
          .reporting = reporting};
}

void select(const Queue& queue, const SelectionTask& task, std::int64_t items) {
  static const KernelName by_ranges{"selector", "select_candidate", waits_for_grid_dependency};
  static const KernelName by_norms{"selector", "select_candidate_by_norms", waits_for_grid_dependency};
  launch(task.candidates.needs_norms() ? by_norms : by_ranges, {items}, selection_threads, no_shared_bytes,
         queue, task);
}

}  // namespace kintsugi::core::cuda
