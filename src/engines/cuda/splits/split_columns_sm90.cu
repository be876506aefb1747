// Splits of vectors that lie beside each other, element by element: the blocks of a cluster hold a panel of vectors, a
// part of k each, read it once and write it transposed.
#include "engines/cuda/splits/cluster.cuh"
#include "engines/cuda/splits/elements.cuh"
#include "engines/cuda/splits/operands.cuh"

namespace kintsugi::core::cuda {

namespace {

template <class Source>
struct Panel {
  static constexpr int width = panel_bytes / sizeof(Source);  // vectors
  static constexpr int chunk = sizeof(uint4) / sizeof(Source);
  static constexpr int lanes = width / chunk;  // threads that read a line
  static constexpr int group_pitch = panel_group * width + panel_gap;

  // Elements of this block's part of k. vector_stride is a multiple of 64, and so of 8 blocks of 8.
  __device__ static int length(const SplitTask& task) {
    return static_cast<int>(task.vector_stride / cluster_blocks);
  }
  __device__ static int place(int v, int p) {
    return p / panel_group * group_pitch + p % panel_group * width + v;
  }
};

// What the blocks of a cluster tell each other of their vectors.
template <class Source>
struct PanelRanges {
  Magnitudes<Source> magnitudes[Panel<Source>::width];
  Scaling scalings[Panel<Source>::width];
};

template <class Source>
__device__ void add_shared(Magnitudes<Source>& target, const Magnitudes<Source>& magnitudes) {
  if constexpr (sizeof(Source) == 4) {
    atomicMax(&target.largest, magnitudes.largest);
    atomicMin(&target.below, magnitudes.below);
  } else {
    atomicMax(reinterpret_cast<unsigned long long*>(&target.largest), magnitudes.largest);
    atomicMin(reinterpret_cast<unsigned long long*>(&target.below), magnitudes.below);
  }
  if (magnitudes.flags != 0) atomicOr(&target.flags, magnitudes.flags);
}

// This block's part into shared memory, zeros past the operand. A thread stays with its vectors.
template <class Source>
__device__ void load_part(const SplitTask& task, std::int64_t first_vector, std::int64_t first_element,
                          Source* part, PanelRanges<Source>& ranges) {
  using Shape = Panel<Source>;
  const int v = static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
  const int length = Shape::length(task);
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const std::int64_t stride = task.matrix.column_stride;
  const Source* start =
      matrix_start<Source>(task.matrix, task.entry) + task.first + first_vector + v + first_element * stride;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(start) % sizeof(uint4) == 0 && stride % Shape::chunk == 0;
  const std::int64_t vectors = task.vectors - first_vector - v;
  const std::int64_t inside = task.length - first_element;
  for (int p = first; p < length; p += step)
    copy_chunk(part + Shape::place(v, p), start + p * stride, p < inside ? vectors : 0, aligned);
  await_copies();
  Magnitudes<Source> magnitudes[Shape::chunk];
  for (int p = first; p < length; p += step) {
    Source x[Shape::chunk];
    read_chunk(part + Shape::place(v, p), x);
    Magnitudes<Source>::add_each(magnitudes, x);
  }
#pragma unroll
  for (int i = 0; i < Shape::chunk; ++i) {
    add_over_lanes(magnitudes[i], 31U & ~(Shape::lanes - 1U));
    if (threadIdx.x % 32 < Shape::lanes) add_shared(ranges.magnitudes[v + i], magnitudes[i]);
  }
}

// Ranges of the panel's vectors from those of all parts. Every block finds them, the first one writes them.
template <class Source, ElementKind kind>
__device__ void finish_ranges(const SplitTask& task, std::int64_t first_vector, PanelRanges<Source>& ranges) {
  const std::int64_t vector = first_vector + threadIdx.x;
  if (threadIdx.x < Panel<Source>::width && vector < task.vectors) {
    Magnitudes<Source> magnitudes;
    for (unsigned block = 0; block < cluster_blocks; ++block)
      magnitudes.add(*of_block(&ranges.magnitudes[threadIdx.x], block));
    VectorRange range = task.ranges_known ? task.ranges[vector] : magnitudes.range();
    const SplitRule rule = rule_of(task);
    set_scale(range, rule);
    if (block_in_cluster() == 0) {
      if (task.ranges_known) {
        task.ranges[vector].scale = range.scale;
      } else {
        task.ranges[vector] = range;
      }
    }
    ranges.scalings[threadIdx.x] = scaling_of(kind, range, rule, task.format);
  }
}

// Four threads beside each other have four vectors, the next four the next group of elements: eight neighbouring groups of
// fp16 are a line of memory.
template <class Source, ElementKind kind>
__device__ void write_part(const SplitTask& task, std::int64_t first_vector, std::int64_t first_element,
                           const Source* part, const PanelRanges<Source>& ranges) {
  using Shape = Panel<Source>;
  constexpr int beside = 4;
  constexpr int groups_of_warp = 32 / beside;
  const int groups_of_part = Shape::length(task) / panel_group;
  const int count = (groups_of_part + groups_of_warp - 1) / groups_of_warp * groups_of_warp * Shape::width;
  for (int e = static_cast<int>(threadIdx.x); e < count; e += static_cast<int>(blockDim.x)) {
    const int lane = e % 32;
    const int v = e / 32 % (Shape::width / beside) * beside + lane % beside;
    const int g = e / 32 / (Shape::width / beside) * groups_of_warp + lane / beside;
    const std::int64_t vector = first_vector + v;
    if (g >= groups_of_part) continue;
    const std::int64_t place = vector * task.vector_stride + first_element + g * panel_group;
    if (vector >= task.vectors) {
      write_zeros<panel_group>(task, place);
      continue;
    }
    write_elements<kind, panel_group>(task, ranges.scalings[v], part + Shape::place(v, g * panel_group),
                                      Shape::width, place);
  }
}

template <class Source, ElementKind kind>
__device__ void split_columns(const SplitTasks& tasks) {
  if (is_left_out(tasks.condition)) return;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ PanelRanges<Source> ranges;
  auto* part = reinterpret_cast<Source*>(memory);
  std::int64_t block = blockIdx.x;
  const SplitTask& task = task_of_block(tasks, block);
  const std::int64_t first_vector = block / cluster_blocks * Panel<Source>::width;
  const std::int64_t first_element = block_in_cluster() * Panel<Source>::length(task);
  if (threadIdx.x < Panel<Source>::width) ranges.magnitudes[threadIdx.x] = {};
  __syncthreads();
  load_part(task, first_vector, first_element, part, ranges);
  synchronize_cluster();
  finish_ranges<Source, kind>(task, first_vector, ranges);
  arrive_at_cluster();
  __syncthreads();
  write_part<Source, kind>(task, first_vector, first_element, part, ranges);
  await_cluster();  // nobody leaves while others read its magnitudes
}

}  // namespace

// Blocks of the most threads that a multiprocessor shall hold, as for rows.
#define KINTSUGI_SPLIT_COLUMNS(Source, kind, blocks)                                                       \
  extern "C" __global__ void __cluster_dims__(cluster_blocks, 1, 1) __launch_bounds__(                     \
      cluster_threads, blocks) split_columns_##Source##_##kind(const __grid_constant__ SplitTasks tasks) { \
    split_columns<Source, ElementKind::kind>(tasks);                                                       \
  }

KINTSUGI_SPLIT_COLUMNS(float, fp16, 2)
KINTSUGI_SPLIT_COLUMNS(float, bf16, 2)
KINTSUGI_SPLIT_COLUMNS(float, tf32, 2)
KINTSUGI_SPLIT_COLUMNS(float, quantised, 2)
KINTSUGI_SPLIT_COLUMNS(float, digits, 1)
KINTSUGI_SPLIT_COLUMNS(float, residues, 1)
KINTSUGI_SPLIT_COLUMNS(double, digits, 1)
KINTSUGI_SPLIT_COLUMNS(double, residues, 1)

}  // namespace kintsugi::core::cuda
