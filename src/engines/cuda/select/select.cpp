#include "engines/cuda/select/select.hpp"

#include <algorithm>
#include <array>

#include "arith/residue/rounding_errors.hpp"
#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/split/range_parts.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

// Parameters for the side's items from `first_item` on.
RangesTask ranges_task(const DeviceSide& side, std::int64_t first_item) {
  const std::int64_t vectors = side.matrix.vectors();
  return {side.matrix,
          side.item + first_item,
          side.ranges + first_item * vectors,
          side.norms == nullptr ? nullptr : side.norms + first_item * vectors,
          side.magnitudes == nullptr ? nullptr : side.magnitudes + first_item * vectors,
          divide_up(vectors, ranges_vectors)};
}

RoundingErrorsTask rounding_errors_task(const DeviceRoundingErrors& operand) {
  const DeviceSide& side = operand.side;
  return {side.matrix,
          side.item,
          side.ranges,
          side.magnitudes,
          operand.errors,
          operand.first,
          divide_up(operand.vectors, ranges_vectors)};
}

// Number of real vectors of a row or column of the operand.
std::int64_t real_vectors_of(const DeviceMatrix& matrix) { return matrix.complex() && matrix.right ? 2 : 1; }

// Returns all vectors of both sides, for kernels that read them by parts.
std::array<VectorsOfSide, 2> sides_of(const DeviceSide& a, const DeviceSide& b) {
  return {VectorsOfSide{.side = a, .count = a.matrix.vectors(), .finds_depth = true},
          VectorsOfSide{.side = b, .count = b.matrix.vectors(), .finds_depth = true}};
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
const KernelName norms_kernel{"ranges", "find_norms", waits_for_grid_dependency};

// Finds ranges for sides with equally many items; by parts if reads_by_parts().
void find_ranges_together(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const Alpha& alpha) {
  if (!reads_by_parts(a, b)) return launch_ranges(ranges_kernel, queue, a, b, alpha);
  find_ranges_by_parts(queue, sides_of(a, b), alpha);
}

// True if find_complex_norms reads the side in little time: a thread block reads all of a vector. Longer
// vectors are not worse if they are many.
bool is_for_complex_kernel(const DeviceSide& side) {
  constexpr std::int64_t short_vector = 8192;
  constexpr std::int64_t longest_vector = std::int64_t{1} << 18;
  constexpr std::int64_t many_vectors = 512;
  const DeviceMatrix& matrix = side.matrix;
  if (matrix.vectors() == 0) return true;
  if (!matrix.complex() || (matrix.row_stride != 1 && matrix.column_stride != 1)) return false;
  return matrix.columns <= (matrix.rows * side.items < many_vectors ? short_vector : longest_vector);
}

// Chunks of a work item of find_complex_norms for which a thread block has shared memory, beside the chunk of
// `chunk_bytes` that it copies. The other ones are read again.
std::int64_t kept_complex_chunks(const RangesTasks& tasks, std::int64_t chunk_bytes) {
  constexpr std::int64_t static_bytes = 14 * 1024;
  std::int64_t chunks = 0;
  for (const RangesTask& task : tasks.task)
    chunks = std::max(chunks, divide_up(task.matrix.columns << complex_norms_width_bits(task.matrix),
                                        std::int64_t{complex_norms_chunk}));
  const std::int64_t most_bytes = device_attribute(shared_bytes_of_block, current_device());
  return std::clamp<std::int64_t>((most_bytes - static_bytes - chunk_bytes) / complex_norms_kept_bytes, 0,
                                  chunks);
}

// Finds ranges and norms of complex operands with equally many items.
void launch_complex_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const Alpha& alpha) {
  static const KernelName kernel{"complex_norms", "find_complex_norms", waits_for_grid_dependency};
  const DeviceSide& side = a.matrix.rows > 0 ? a : b;
  const auto chunk_bytes = complex_norms_chunk * static_cast<std::int64_t>(element_bytes(side.matrix.type));
  for_each_launch(a.items, [&](std::int64_t first, std::int64_t items) {
    ComplexNormsTasks tasks{.ranges = {{ranges_task(a, first), ranges_task(b, first)}, alpha}};
    std::int64_t blocks = 0;
    for (int i = 0; i < 2; ++i) {
      RangesTask& task = tasks.ranges.task[i];
      tasks.width_bits[i] = complex_norms_width_bits(task.matrix);
      task.blocks = divide_up(task.matrix.rows, std::int64_t{1} << tasks.width_bits[i]);
      blocks += task.blocks;
    }
    const std::int64_t kept_chunks = kept_complex_chunks(tasks.ranges, chunk_bytes);
    tasks.work_items = static_cast<std::uint32_t>(blocks * items);
    tasks.kept_chunks = static_cast<std::int32_t>(kept_chunks);
    launch(kernel, {std::min<std::int64_t>(blocks * items, sm_count())}, complex_norms_threads,
           chunk_bytes + kept_chunks * complex_norms_kept_bytes, queue, tasks);
  });
}

// Finds ranges and norms for sides with equally many items.
void find_norms_together(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const Alpha& alpha) {
  if (is_for_complex_kernel(a) && is_for_complex_kernel(b)) return launch_complex_norms(queue, a, b, alpha);
  find_ranges_together(queue, a, b, alpha);
  if (!reads_by_parts(a, b)) return launch_ranges(norms_kernel, queue, a, b, alpha);
  const NormFindings no_findings{};
  find_norms_by_parts(queue, sides_of(a, b), alpha, no_findings);
}

// Finds ranges and norms that give scales alone, for sides with equally many items; and magnitudes, unless
// the operands are read by other kernels.
void find_scaling_norms_together(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                                 const Alpha& alpha) {
  static const KernelName kernel{"ranges", "find_scaling_norms", waits_for_grid_dependency};
  const DeviceMatrix& matrix = (a.matrix.vectors() > 0 ? a : b).matrix;
  if (matrix.type != ElementType::f64 || reads_by_parts(a, b)) {
    for (const DeviceSide& side : {a, b}) {
      if (side.magnitudes == nullptr) continue;
      const auto vectors = static_cast<std::size_t>(side.items * side.matrix.vectors());
      clear(queue, side.magnitudes, vectors * sizeof(VectorMagnitudes));
    }
    return find_norms_together(queue, a, b, alpha);
  }
  launch_ranges(kernel, queue, a, b, alpha);
}

// Calls find(a, b, alpha) with sides that have equally many items.
template <class Find>
void with_equal_items(const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
                      const Find& find) {
  const Alpha alpha = alpha_of(scalars, a, b);
  if (a.items == b.items) return find(a, b, alpha);
  for (const DeviceSide& side : {a, b}) find(side, no_side(side.items), alpha);
}

}  // namespace

// alpha has the type of either side. A side whose ranges are known may be empty; then it has no type.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b) {
  const DeviceSide& side = a.ranges != nullptr ? a : b;
  return {scalars.device_alpha, scalars.alpha == 0.0, side.matrix.type};
}

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  with_equal_items(a, b, scalars, [&](const DeviceSide& x, const DeviceSide& y, const Alpha& alpha) {
    find_ranges_together(queue, x, y, alpha);
  });
}

void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  with_equal_items(a, b, scalars, [&](const DeviceSide& x, const DeviceSide& y, const Alpha& alpha) {
    find_norms_together(queue, x, y, alpha);
  });
}

void find_scaling_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                        const DeviceScalars& scalars) {
  with_equal_items(a, b, scalars, [&](const DeviceSide& x, const DeviceSide& y, const Alpha& alpha) {
    find_scaling_norms_together(queue, x, y, alpha);
  });
}

void find_rounding_errors(const Queue& queue, const DeviceRoundingErrors& a, const DeviceRoundingErrors& b,
                          const DeviceCondition& condition) {
  static const KernelName kernel{"rounding_errors", "find_rounding_errors"};
  const RoundingErrorsTasks tasks{{rounding_errors_task(a), rounding_errors_task(b)}, condition};
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

// Launches a kernel that selects by norms. `others` are its parameters after the task.
template <class... Others>
void launch_selection(const Queue& queue, const KernelName& kernel, const SelectionTask& task,
                      std::int64_t items, const Others&... others) {
  const std::int64_t blocks = blocks_of_selection(kernel, task);
  launch(kernel, {items * blocks, 1, 1, blocks > 1 ? blocks : 0}, selection_threads, no_shared_bytes, queue,
         task, others...);
}

}  // namespace

void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
            const DeviceCandidates& candidates, DeviceSelection* selection,
            const DeviceReporting& reporting) {
  static const KernelName by_ranges{"selector", "select_candidate", waits_for_grid_dependency};
  static const KernelName by_norms{"selector", "select_candidate_by_norms", waits_for_grid_dependency};
  const SelectionTask task = selection_task(a, b, scalars, candidates, selection, reporting);
  const std::int64_t items = std::max(a.items, b.items);
  if (!candidates.needs_norms())
    return launch(by_ranges, {items}, selection_threads, no_shared_bytes, queue, task);
  launch_selection(queue, by_norms, task, items);
}

void select_by_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                     const DeviceScalars& scalars, const NormCandidates& candidates,
                     DeviceSelection* selection, const DeviceReporting& reporting) {
  static const KernelName kernel{"selector", "select_moduli_by_norms", waits_for_grid_dependency};
  launch_selection(queue, kernel, selection_task(a, b, scalars, DeviceCandidates{}, selection, reporting),
                   std::max(a.items, b.items), candidates);
}

}  // namespace kintsugi::core::cuda
