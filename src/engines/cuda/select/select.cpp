#include "engines/cuda/select/select.hpp"

#include <algorithm>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

// Number of real vectors of a row or column of the operand.
std::int64_t real_vectors_of(const DeviceMatrix& matrix) { return matrix.complex() && matrix.right ? 2 : 1; }

}  // namespace

// alpha has the type of either side. A side whose ranges are known may be empty; then it has no type.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b) {
  const DeviceSide& side = a.ranges != nullptr ? a : b;
  return {scalars.device_alpha, scalars.alpha == 0.0, side.matrix.type};
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
          .reporting = reporting,
          .norm_step = {real_vectors_of(a.matrix), real_vectors_of(b.matrix)}};
}

namespace {

// Number of thread blocks that select the candidate of a batch item by norms; more than one are a cluster.
// Each 512 vectors cost one block 0.3 to 0.7 us. A cluster costs 2 us, and pays off above 1024 vectors.
std::int64_t blocks_of_selection(const KernelName& kernel, const SelectionTask& task) {
  constexpr std::int64_t few_vectors = 1024;
  constexpr std::int64_t max_blocks = 8;
  const std::int64_t vectors =
      std::max(task.vectors[0] / task.norm_step[0], task.vectors[1] / task.norm_step[1]);
  // Code for compute capability 8.0 has no clusters.
  if (vectors <= few_vectors || !kernel.may_overlap()) return 1;
  return std::min(divide_up(vectors, selection_threads / 2), max_blocks);
}

// Launches the kernel that selects by norms, among the candidates of `chain`.
void launch_by_norms(const Queue& queue, const SelectionTask& task, std::int64_t items,
                     const NormCandidates& chain) {
  static const KernelName kernel{"selector", "select_candidate_by_norms", waits_for_grid_dependency};
  const std::int64_t blocks = blocks_of_selection(kernel, task);
  launch(kernel, {items * blocks, 1, 1, blocks > 1 ? blocks : 0}, selection_threads, no_shared_bytes, queue,
         task, chain);
}

}  // namespace

void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
            const DeviceCandidates& candidates, DeviceSelection* selection,
            const DeviceReporting& reporting) {
  static const KernelName by_ranges{"selector", "select_candidate", waits_for_grid_dependency};
  const SelectionTask task = selection_task(a, b, scalars, candidates, selection, reporting);
  const std::int64_t items = std::max(a.items, b.items);
  if (!candidates.needs_norms())
    return launch(by_ranges, {items}, selection_threads, no_shared_bytes, queue, task);
  NormCandidates chain{.count = candidates.count, .coefficient = candidates.coefficient};
  std::ranges::copy(candidates.acceptances, chain.acceptances);
  launch_by_norms(queue, task, items, chain);
}

void select_by_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                     const DeviceScalars& scalars, const NormCandidates& candidates,
                     DeviceSelection* selection, const DeviceReporting& reporting) {
  launch_by_norms(queue, selection_task(a, b, scalars, DeviceCandidates{}, selection, reporting),
                  std::max(a.items, b.items), candidates);
}

}  // namespace kintsugi::core::cuda
