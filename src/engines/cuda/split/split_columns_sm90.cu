// Splits of operands whose vectors are adjacent in memory. A cluster of 1, 2, 4 or 8 thread blocks holds a
// strip of vectors; each of its thread blocks holds a part of k. The cluster reads the strip once and writes
// its slices transposed. If the other operand's vectors are contiguous along k, the same launch has thread
// blocks for it, which work as in rows.cuh.
#include "engines/cuda/split/rows.cuh"
#include "engines/cuda/split/strip_scalings.cuh"

namespace kintsugi::core::cuda {

namespace {

// Splits the thread block's part of a strip. `block` is its index among the task's thread blocks.
template <class Source, ElementKind kind>
__device__ void split_columns(const SplitTask& task, std::int64_t block) {
  using Shape = Strip<Source>;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[Shape::width];
  const int blocks = cluster_size();
  const int length = static_cast<int>(task.vector_stride) / blocks;
  const StripPart part{.first_vector = static_cast<int>(block) / blocks * Shape::width,
                       .first_element = block_rank_in_cluster() * length,
                       .length = length};
  auto* shared = reinterpret_cast<Source*>(memory);
  auto* messages = reinterpret_cast<std::byte*>(shared + Shape::shared_offset(0, length));  // after the part
  start_loading<Shape>(task, part, shared);
  if constexpr (kind == ElementKind::residues_by_norms) {
    find_scalings_by_norms<Shape>(task, part, shared, messages, scalings);
  } else {
    find_scalings<Shape, kind>(task, part, shared, messages, scalings);
  }
  __syncthreads();
  write_part<Shape, kind>(task, part, shared, scalings);
}

// Splits the thread block's share of an operand. All thread blocks of a cluster work on the same task,
// because the number of thread blocks of the first task is a multiple of the cluster's size.
template <class Source, ElementKind kind>
__device__ void split_rows_or_columns(const SplitTasks& tasks) {
  if (!begin_split(tasks)) return;
  std::int64_t block = blockIdx.x;
  const SplitTask& task = enter_task(tasks, block);
  if (task.vector_threads != 0) {
    split_rows<Source, kind>(task, block);
  } else {
    split_columns<Source, kind>(task, block);
  }
}

}  // namespace

// An SM holds three thread blocks of cluster_threads threads, or six of half as many. So some can write while
// others wait for elements or messages.
#define KINTSUGI_SPLIT_COLUMNS(Source, kind)                                      \
  extern "C" __global__ void __launch_bounds__(cluster_threads, 3)                \
      split_columns_##Source##_##kind(const __grid_constant__ SplitTasks tasks) { \
    split_rows_or_columns<Source, ElementKind::kind>(tasks);                      \
  }

KINTSUGI_SPLIT_COLUMNS(float, fp16)
KINTSUGI_SPLIT_COLUMNS(float, fp16_with_depth)
KINTSUGI_SPLIT_COLUMNS(float, bf16)
KINTSUGI_SPLIT_COLUMNS(float, tf32)
KINTSUGI_SPLIT_COLUMNS(float, quantised)
KINTSUGI_SPLIT_COLUMNS(float, digits)
KINTSUGI_SPLIT_COLUMNS(float, residues)
KINTSUGI_SPLIT_COLUMNS(double, digits)
KINTSUGI_SPLIT_COLUMNS(double, residues)
KINTSUGI_SPLIT_COLUMNS(double, residues_by_norms)
KINTSUGI_SPLIT_COLUMNS(double, wide_residues)

}  // namespace kintsugi::core::cuda
