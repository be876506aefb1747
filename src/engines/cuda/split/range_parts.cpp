#include "engines/cuda/split/range_parts.hpp"

#include <cstdlib>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/select/ranges_task.hpp"

namespace kintsugi::core::cuda {

namespace {

const KernelName begin_ranges{"range_parts", "begin_range_parts", waits_for_grid_dependency};
const KernelName add_ranges{"range_parts", "add_range_parts", waits_for_grid_dependency};
const KernelName end_ranges{"range_parts", "end_range_parts", waits_for_grid_dependency};
const KernelName begin_norms{"range_parts", "begin_norm_parts", waits_for_grid_dependency};
const KernelName add_norms{"range_parts", "add_norm_parts", waits_for_grid_dependency};
const KernelName end_norms{"range_parts", "end_norm_parts", waits_for_grid_dependency};

bool is_along_k(const DeviceMatrix& matrix) {
  return std::abs(matrix.column_stride) <= std::abs(matrix.row_stride);
}

// Parameters for the side's items from `first_item` on.
PartsTask task_of(const VectorsOfSide& vectors, std::int64_t first_item) {
  const DeviceSide& side = vectors.side;
  const DeviceMatrix& matrix = side.matrix;
  const bool is_fp64 = matrix.type == ElementType::f64 || matrix.type == ElementType::c64;
  const bool along_k = is_along_k(matrix);
  PartsTask task;
  task.matrix = matrix;
  task.item = side.item + first_item;
  task.item_vectors = matrix.vectors();
  task.ranges = side.ranges + vectors.first + first_item * task.item_vectors;
  if (side.norms != nullptr) task.norms = side.norms + vectors.first + first_item * task.item_vectors;
  task.first = vectors.first;
  task.vectors = vectors.count;
  task.part_length = along_k ? part_along_k : part_across;
  task.parts_per_vector = divide_up(matrix.length(), task.part_length);
  const std::int64_t blocks =
      along_k ? divide_up(vectors.count * task.parts_per_vector, parts_threads / 32)
              : divide_up(vectors.count, parts_strip_bytes / (is_fp64 ? 8 : 4)) * task.parts_per_vector;
  task.part_blocks = vectors.count == 0 ? 0 : blocks;
  task.vector_blocks = divide_up(vectors.count, parts_threads);
  // FP64 exponents are only summed for norms. Depths follow from these sums.
  task.finds_depth = is_fp64 ? side.norms != nullptr : vectors.finds_depth;
  task.sums_exponents = task.finds_depth || side.norms != nullptr;
  if (vectors.rule != nullptr) {
    task.top_exponent = vectors.rule->top_exponent;
    task.sum_bits = vectors.rule->sum_bits;
  }
  return task;
}

// Launches three kernels one after the other. `begin` clears the sums of all vectors, `add` adds the
// contributions of the parts, and `end` turns the sums into ranges or norms.
void launch_steps(const Queue& queue, std::span<const VectorsOfSide> sides, PartsTasks tasks,
                  const KernelName& begin, const KernelName& add, const KernelName& end) {
  for_each_launch(sides.front().side.items, [&](std::int64_t first, std::int64_t items) {
    for (std::size_t i = 0; i < sides.size(); ++i) tasks.task[i] = task_of(sides[i], first);
    const std::int64_t vector_blocks = tasks.task[0].vector_blocks + tasks.task[1].vector_blocks;
    const std::int64_t part_blocks = tasks.task[0].part_blocks + tasks.task[1].part_blocks;
    launch(begin, {vector_blocks, items}, parts_threads, no_shared_bytes, queue, tasks);
    launch(add, {part_blocks, items}, parts_threads, no_shared_bytes, queue, tasks);
    launch(end, {vector_blocks, items}, parts_threads, no_shared_bytes, queue, tasks);
  });
}

}  // namespace

bool reads_by_parts(const DeviceSide& a, const DeviceSide& b) {
  constexpr std::int64_t min_long = 4096;
  constexpr std::int64_t max_whole = std::int64_t{1} << 16;  // longer vectors are always read by parts
  constexpr std::int64_t enough_blocks = 1024;               // thread blocks that fill a device
  const std::int64_t length = std::max(a.matrix.length(), b.matrix.length());
  const std::int64_t blocks =
      (divide_up(a.matrix.vectors(), ranges_vectors) + divide_up(b.matrix.vectors(), ranges_vectors)) *
      a.items;
  return blocks > 0 && (length > max_whole || (length > min_long && blocks < enough_blocks));
}

void find_ranges_by_parts(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha) {
  PartsTasks tasks;
  tasks.alpha = alpha;
  launch_steps(queue, sides, tasks, begin_ranges, add_ranges, end_ranges);
}

void find_norms_by_parts(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha,
                         const NormFindings& findings) {
  PartsTasks tasks;
  tasks.alpha = alpha;
  tasks.found_norms = findings;
  launch_steps(queue, sides, tasks, begin_norms, add_norms, end_norms);
}

}  // namespace kintsugi::core::cuda
