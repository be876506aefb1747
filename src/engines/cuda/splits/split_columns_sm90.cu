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

  // Elements of a block's part of k.
  __device__ static int length(const SplitTask& task) {
    return static_cast<int>(task.vector_stride / blocks_of_cluster());
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
  const Source* source = matrix_start<Source>(task.matrix, task.entry) + task.first + first_vector + v +
                         (first_element + first) * stride;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0 && stride % Shape::chunk == 0;
  const std::int64_t vectors = task.vectors - first_vector - v;
  const std::int64_t inside = task.length - first_element;
  // Steps are of whole groups, so that a thread keeps its place in them.
  const int shared_step = Shape::place(0, step);
  Source* target = part + Shape::place(v, first);
  for (int p = first; p < length; p += step) {
    copy_chunk(target, source, p < inside ? vectors : 0, aligned);
    source += step * stride;
    target += shared_step;
  }
  await_copies();
  Magnitudes<Source> magnitudes[Shape::chunk];
  target = part + Shape::place(v, first);
  for (int p = first; p < length; p += step) {
    Source x[Shape::chunk];
    read_chunk(target, x);
    Magnitudes<Source>::add_each(magnitudes, x);
    target += shared_step;
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
    for (unsigned block = 0; block < blocks_of_cluster(); ++block)
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
  constexpr int warps_across = Shape::width / beside;  // all threads together are a multiple of these
  constexpr int groups_of_warp = 32 / beside;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int v = warp % warps_across * beside + lane % beside;
  const int first = warp / warps_across * groups_of_warp + lane / beside;
  const int step = static_cast<int>(blockDim.x) / 32 / warps_across * groups_of_warp;
  const int groups = Shape::length(task) / panel_group;
  const std::int64_t vector = first_vector + v;
  const VectorWriter<kind> writer(task, ranges.scalings[v], vector);
  for (int g = first; g < groups; g += step) {
    const std::int64_t element = first_element + g * panel_group;
    if (vector < task.vectors) {
      writer.template write<panel_group, Shape::width>(part + v + g * Shape::group_pitch, element);
    } else {
      write_zeros<panel_group>(task, vector * task.vector_stride + element);
    }
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
  const std::int64_t first_vector = block / blocks_of_cluster() * Panel<Source>::width;
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
#define KINTSUGI_SPLIT_COLUMNS(Source, kind, cluster, blocks)                                           \
  extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(cluster_threads, blocks) \
      split_columns_##cluster##_##Source##_##kind(const __grid_constant__ SplitTasks tasks) {           \
    split_columns<Source, ElementKind::kind>(tasks);                                                    \
  }

KINTSUGI_SPLIT_COLUMNS(float, fp16, 8, 2)
KINTSUGI_SPLIT_COLUMNS(float, bf16, 8, 2)
KINTSUGI_SPLIT_COLUMNS(float, tf32, 8, 2)
KINTSUGI_SPLIT_COLUMNS(float, quantised, 8, 1)
KINTSUGI_SPLIT_COLUMNS(float, digits, 8, 1)
KINTSUGI_SPLIT_COLUMNS(float, residues, 8, 1)
KINTSUGI_SPLIT_COLUMNS(double, digits, 8, 1)
KINTSUGI_SPLIT_COLUMNS(double, residues, 8, 1)
KINTSUGI_SPLIT_COLUMNS(float, fp16, 16, 2)
KINTSUGI_SPLIT_COLUMNS(float, bf16, 16, 2)
KINTSUGI_SPLIT_COLUMNS(float, tf32, 16, 2)
KINTSUGI_SPLIT_COLUMNS(float, quantised, 16, 1)
KINTSUGI_SPLIT_COLUMNS(float, digits, 16, 1)
KINTSUGI_SPLIT_COLUMNS(float, residues, 16, 1)
KINTSUGI_SPLIT_COLUMNS(double, digits, 16, 1)
KINTSUGI_SPLIT_COLUMNS(double, residues, 16, 1)

}  // namespace kintsugi::core::cuda
