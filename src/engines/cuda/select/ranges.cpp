
#include <algorithm>
#include <array>
#include <cstdlib>

#include "arith/residue/rounding_errors.hpp"
#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/select/select.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

const KernelName begin_parts{"ranges", "begin_parts", waits_for_grid_dependency};
const KernelName end_parts{"ranges", "end_parts", waits_for_grid_dependency};
const KernelName ranges_kernel{"ranges", "find_ranges", waits_for_grid_dependency};
const KernelName norms_kernel{"ranges", "find_norms", waits_for_grid_dependency};

bool is_fp64(const DeviceMatrix& matrix) {
  return matrix.type == ElementType::f64 || matrix.type == ElementType::c64;
}

// Parameters for the side's items from `first_item` on.
VectorsTask task_of(const VectorsOfSide& vectors, std::int64_t first_item, bool divides) {
  const DeviceSide& side = vectors.side;
  const DeviceMatrix& matrix = side.matrix;
  const bool along_k = std::abs(matrix.column_stride) <= std::abs(matrix.row_stride);
  const std::int64_t length = std::max<std::int64_t>(matrix.length(), 1);
  VectorsTask task;
  task.matrix = matrix;
  task.item = side.item + first_item;
  task.item_vectors = matrix.vectors();
  const std::int64_t first = vectors.first + first_item * task.item_vectors;
  task.ranges = side.ranges + first;
  if (side.norms != nullptr) task.norms = side.norms + first;
  if (side.magnitudes != nullptr) task.magnitudes = side.magnitudes + first;
  task.first = vectors.first;
  task.vectors = vectors.count;
  task.part_length = !divides ? length : along_k ? part_along_k : part_across;
  task.parts_per_vector = divide_up(length, task.part_length);
  task.is_divided = divides;
  task.blocks = along_k ? divide_up(vectors.count * task.parts_per_vector, vectors_threads / 32)
                        : divide_up(vectors.count, vectors_strip_bytes / (is_fp64(matrix) ? 8 : 4)) *
                              task.parts_per_vector;
  task.vector_blocks = divide_up(vectors.count, vectors_threads);
  // FP64 exponents are only summed for norms. Depths follow from these sums.
  task.finds_depth = is_fp64(matrix) ? side.norms != nullptr : vectors.finds_depth;
  if (vectors.rule != nullptr) {
    task.top_exponent = vectors.rule->top_exponent;
    task.sum_bits = vectors.rule->sum_bits;
  }
  return task;
}

// True if vectors are divided: if they have more than 2^16 elements, or more than 4096 and are so few that
// thread blocks with whole vectors would not fill the device.
bool are_divided(std::span<const VectorsOfSide> sides) {
  constexpr std::int64_t min_long = 4096;
  constexpr std::int64_t max_whole = std::int64_t{1} << 16;
  constexpr std::int64_t enough_vectors = 16 * 1024;
  std::int64_t length = 0;
  std::int64_t vectors = 0;
  for (const VectorsOfSide& side : sides) {
    length = std::max(length, side.side.matrix.length());
    vectors += side.count * side.side.items;
  }
  return length > max_whole || (length > min_long && vectors < enough_vectors);
}

// Launches a kernel for sides of equally many batch items; for vectors that are divided, between the kernels
// that clear sums and complete them.
void launch_vectors(const Queue& queue, const KernelName& kernel, std::span<const VectorsOfSide> sides,
                    VectorsTasks tasks, bool divides) {
  for_each_launch(sides.front().side.items, [&](std::int64_t first, std::int64_t items) {
    for (std::size_t i = 0; i < sides.size(); ++i) tasks.task[i] = task_of(sides[i], first, divides);
    const std::int64_t vector_blocks = tasks.task[0].vector_blocks + tasks.task[1].vector_blocks;
    const std::int64_t blocks = tasks.task[0].blocks + tasks.task[1].blocks;
    if (divides) launch(begin_parts, {vector_blocks, items}, vectors_threads, no_shared_bytes, queue, tasks);
    launch(kernel, {blocks, items}, vectors_threads, no_shared_bytes, queue, tasks);
    if (divides) launch(end_parts, {vector_blocks, items}, vectors_threads, no_shared_bytes, queue, tasks);
  });
}

// All vectors of both sides.
std::array<VectorsOfSide, 2> sides_of(const DeviceSide& a, const DeviceSide& b) {
  return {VectorsOfSide{.side = a, .count = a.matrix.vectors(), .finds_depth = true},
          VectorsOfSide{.side = b, .count = b.matrix.vectors(), .finds_depth = true}};
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
std::int64_t kept_complex_chunks(const VectorsTask (&tasks)[2], std::int64_t chunk_bytes) {
  constexpr std::int64_t static_bytes = 14 * 1024;
  std::int64_t chunks = 0;
  for (const VectorsTask& task : tasks)
    chunks = std::max(chunks, divide_up(task.matrix.columns << complex_norms_width_bits(task.matrix),
                                        std::int64_t{complex_norms_chunk}));
  const std::int64_t most_bytes = max_shared_bytes_of_block();
  return std::clamp<std::int64_t>((most_bytes - static_bytes - chunk_bytes) / complex_norms_kept_bytes, 0,
                                  chunks);
}

// Finds ranges and norms of complex operands with equally many items.
void launch_complex_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const Alpha& alpha) {
  static const KernelName kernel{"complex_norms", "find_complex_norms", waits_for_grid_dependency};
  const DeviceSide& side = a.matrix.rows > 0 ? a : b;
  const auto chunk_bytes = complex_norms_chunk * static_cast<std::int64_t>(element_bytes(side.matrix.type));
  for_each_launch(a.items, [&](std::int64_t first, std::int64_t items) {
    ComplexNormsTasks tasks;
    tasks.vectors.alpha = alpha;
    const std::array sides = sides_of(a, b);
    std::int64_t blocks = 0;
    for (int i = 0; i < 2; ++i) {
      VectorsTask& task = tasks.vectors.task[i];
      task = task_of(sides[static_cast<std::size_t>(i)], first, /*divides=*/false);
      tasks.width_bits[i] = complex_norms_width_bits(task.matrix);
      task.blocks = divide_up(task.matrix.rows, std::int64_t{1} << tasks.width_bits[i]);
      blocks += task.blocks;
    }
    const std::int64_t kept_chunks = kept_complex_chunks(tasks.vectors.task, chunk_bytes);
    tasks.work_items = static_cast<std::uint32_t>(blocks * items);
    tasks.kept_chunks = static_cast<std::int32_t>(kept_chunks);
    launch(kernel, {std::min<std::int64_t>(blocks * items, sm_count())}, complex_norms_threads,
           chunk_bytes + kept_chunks * complex_norms_kept_bytes, queue, tasks);
  });
}

// Finds ranges and norms for sides with equally many items.
void find_norms_together(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const Alpha& alpha) {
  if (is_for_complex_kernel(a) && is_for_complex_kernel(b)) return launch_complex_norms(queue, a, b, alpha);
  const NormFindings no_findings{};
  find_ranges(queue, sides_of(a, b), alpha);
  find_norms(queue, sides_of(a, b), alpha, no_findings);
}

// Finds ranges and norms that give scales alone, for sides with equally many items; and magnitudes, unless
// the operands are read by other kernels.
void find_scaling_norms_together(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                                 const Alpha& alpha) {
  static const KernelName kernel{"ranges", "find_scaling_norms", waits_for_grid_dependency};
  const std::array sides = sides_of(a, b);
  const DeviceMatrix& matrix = (a.matrix.vectors() > 0 ? a : b).matrix;
  if (matrix.type != ElementType::f64 || are_divided(sides)) {
    for (const DeviceSide& side : {a, b}) {
      if (side.magnitudes == nullptr) continue;
      const auto vectors = static_cast<std::size_t>(side.items * side.matrix.vectors());
      clear(queue, side.magnitudes, vectors * sizeof(VectorMagnitudes));
    }
    return find_norms_together(queue, a, b, alpha);
  }
  VectorsTasks tasks;
  tasks.alpha = alpha;
  launch_vectors(queue, kernel, sides, tasks, /*divides=*/false);
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

void find_ranges(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha) {
  VectorsTasks tasks;
  tasks.alpha = alpha;
  launch_vectors(queue, ranges_kernel, sides, tasks, are_divided(sides));
}

void find_norms(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha,
                const NormFindings& findings) {
  VectorsTasks tasks;
  tasks.alpha = alpha;
  tasks.found_norms = findings;
  tasks.of_norms = true;
  launch_vectors(queue, norms_kernel, sides, tasks, are_divided(sides));
}

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars) {
  with_equal_items(a, b, scalars, [&](const DeviceSide& x, const DeviceSide& y, const Alpha& alpha) {
    find_ranges(queue, sides_of(x, y), alpha);
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
  VectorsTasks tasks;
  tasks.condition = condition;
  const std::array operands{&a, &b};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DeviceRoundingErrors& operand = *operands[i];
    VectorsTask& task = tasks.task[i];
    task = task_of({.side = operand.side, .first = operand.first, .count = operand.vectors}, /*first_item=*/0,
                   /*divides=*/false);
    task.errors = operand.errors == nullptr ? nullptr : operand.errors + operand.first;
  }
  launch(kernel, {tasks.task[0].blocks + tasks.task[1].blocks}, vectors_threads, no_shared_bytes, queue,
         tasks);
}

}  // namespace kintsugi::core::cuda
