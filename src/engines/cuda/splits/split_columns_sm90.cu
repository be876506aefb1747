// Splits of vectors that lie beside each other, element by element: the blocks of a cluster hold a panel of vectors, a
// part of k each, read it once and write it transposed. The other operand's vectors may lie the other way, in clusters
// of their own: then its blocks are those of rows.cuh.
#include "engines/cuda/common/order.cuh"
#include "engines/cuda/splits/cluster.cuh"
#include "engines/cuda/splits/rows.cuh"

namespace kintsugi::core::cuda {

namespace {

template <class Source, int blocks>
struct Panel {
  static constexpr int width = panel_bytes / sizeof(Source);  // vectors
  static constexpr int chunk = sizeof(uint4) / sizeof(Source);
  static constexpr int lanes = width / chunk;  // threads that read a line
  static constexpr int group_pitch = panel_group * width + panel_gap;

  // Elements of a block's part of k.
  __device__ static int length(const SplitTask& task) {
    return static_cast<int>(task.vector_stride) / blocks;
  }
  __device__ static int place(int v, int p) {
    return p / panel_group * group_pitch + p % panel_group * width + v;
  }
};

// What a block tells the others of a vector.
template <class Source>
struct alignas(sizeof(uint4)) Message {
  Magnitudes<Source> magnitudes;
};

template <class Source, int blocks>
struct PanelRanges {
  static constexpr int width = panel_bytes / sizeof(Source);
  Magnitudes<Source> magnitudes[width];  // of the block's part
  Message<Source> received[width][blocks];
  Mailbox mailbox;
  Scaling scalings[width];
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

// This block's part is on its way into shared memory, zeros past the operand. A thread stays with its vectors.
template <class Shape, class Source>
__device__ void start_loading(const SplitTask& task, std::int64_t first_vector, std::int64_t first_element,
                              Source* part) {
  const int v = static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
  const int length = Shape::length(task);
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const std::int64_t stride = task.matrix.column_stride;
  const Source* source =
      matrix_start<Source>(task) + task.first + first_vector + v + (first_element + first) * stride;
  const std::int64_t vectors = std::min<std::int64_t>(task.vectors - first_vector - v, Shape::chunk);
  const int bytes = vectors > 0 ? static_cast<int>(vectors * sizeof(Source)) : 0;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0 &&
                       stride % Shape::chunk == 0 && bytes % sizeof(uint4) == 0;
  const auto inside = static_cast<int>(std::min<std::int64_t>(task.length - first_element, length));
  // Steps are of whole groups, so that a thread keeps its place in them.
  const int shared_step = Shape::place(0, step);
  const std::int64_t source_step = step * stride;
  Source* target = part + Shape::place(v, first);
  if (aligned) {
    for (int p = first; p < length; p += step, source += source_step, target += shared_step)
      copy_aligned(target, source, p < inside ? bytes : 0);
  } else {
    for (int p = first; p < length; p += step, source += source_step, target += shared_step)
      copy_unaligned(target, source, p < inside ? bytes : 0);
  }
}

// Of what this thread loaded.
template <class Shape, class Source, int blocks>
__device__ void find_magnitudes(const SplitTask& task, const Source* part,
                                PanelRanges<Source, blocks>& ranges) {
  const int v = static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const int shared_step = Shape::place(0, step);
  Magnitudes<Source> magnitudes[Shape::chunk];
  const Source* place = part + Shape::place(v, first);
  for (int p = first; p < Shape::length(task); p += step) {
    Source x[Shape::chunk];
    read_chunk(place, x);
    Magnitudes<Source>::add_each(magnitudes, x);
    place += shared_step;
  }
#pragma unroll
  for (int i = 0; i < Shape::chunk; ++i) {
    add_over_lanes(magnitudes[i], 31U & ~(Shape::lanes - 1U));
    if (threadIdx.x % 32 < Shape::lanes) add_shared(ranges.magnitudes[v + i], magnitudes[i]);
  }
}

// Threads beside each other tell one block each of the same vector.
template <class Source, int blocks>
__device__ void send_magnitudes(PanelRanges<Source, blocks>& ranges) {
  const unsigned sender = block_in_cluster();
  for (int i = static_cast<int>(threadIdx.x); i < ranges.width * blocks; i += static_cast<int>(blockDim.x)) {
    const int v = i / blocks;
    ranges.mailbox.send(Message<Source>{ranges.magnitudes[v]}, ranges.received[v][sender], i % blocks);
  }
}

// Ranges of the panel's vectors from those of all parts; threads beside each other have one part each. Every block finds
// the ranges, the first one writes them.
template <ElementKind kind, int blocks, class Source>
__device__ void finish_ranges(const SplitTask& task, std::int64_t first_vector,
                              PanelRanges<Source, blocks>& ranges) {
  ranges.mailbox.wait();
  for (int i = static_cast<int>(threadIdx.x); i < ranges.width * blocks; i += static_cast<int>(blockDim.x)) {
    const int v = i / blocks;
    const std::int64_t vector = first_vector + v;
    Magnitudes<Source> magnitudes = ranges.received[v][i % blocks].magnitudes;
    add_over_lanes(magnitudes, blocks - 1);
    if (i % blocks != 0 || vector >= task.vectors) continue;
    VectorRange& known = range_of(task, vector);
    VectorRange range = task.ranges_known ? known : magnitudes.range();
    const SplitRule rule = rule_of(task);
    scale_range(task, rule, vector, range);
    if (block_in_cluster() == 0) {
      if (task.ranges_known) {
        known.scale = range.scale;
      } else {
        known = range;
      }
    }
    ranges.scalings[v] = scaling_of(kind, range, rule, task.largest_bound);
  }
}

// Four threads beside each other have four vectors, the next four the next group of elements: eight neighbouring groups of
// fp16 are a line of memory.
template <class Shape, ElementKind kind, class Source, int blocks>
__device__ void write_part(const SplitTask& task, std::int64_t first_vector, std::int64_t first_element,
                           const Source* part, const PanelRanges<Source, blocks>& ranges) {
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

template <class Source, ElementKind kind, int blocks>
__device__ void split_columns(const SplitTask& task, std::int64_t block) {
  using Shape = Panel<Source, blocks>;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ PanelRanges<Source, blocks> ranges;
  auto* part = reinterpret_cast<Source*>(memory);
  const std::int64_t first_vector = block / blocks * Shape::width;
  const std::int64_t first_element = block_in_cluster() * Shape::length(task);
  start_loading<Shape>(task, first_vector, first_element, part);
  if (threadIdx.x < Shape::width) ranges.magnitudes[threadIdx.x] = {};
  if (threadIdx.x == 0) ranges.mailbox.open();
  __syncthreads();
  arrive_at_cluster();
  if (threadIdx.x == 0) ranges.mailbox.expect(sizeof ranges.received);
  await_copies();
  find_magnitudes<Shape>(task, part, ranges);
  __syncthreads();
  await_cluster();  // the others' mailboxes are open
  send_magnitudes(ranges);
  finish_ranges<kind>(task, first_vector, ranges);
  __syncthreads();
  write_part<Shape, kind>(task, first_vector, first_element, part, ranges);
}

// All blocks of a cluster belong to one task: the blocks of each are whole clusters.
template <class Source, ElementKind kind, int blocks>
__device__ void split_either_way(const SplitTasks& tasks) {
  await_others();
  if (is_left_out(tasks)) return;
  std::int64_t block = blockIdx.x;
  const SplitTask& task = task_of_block(tasks, block);
  if (task.vector_threads != 0) {
    split_rows<Source, kind>(task, block);
  } else {
    split_columns<Source, kind, blocks>(task, block);
  }
}

}  // namespace

// A multiprocessor shall hold three blocks of all threads, or six of half as many: some wait for their elements or for each
// other, others write.
#define KINTSUGI_SPLIT_COLUMNS(Source, kind, cluster)                                              \
  extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(cluster_threads, 3) \
      split_columns_##cluster##_##Source##_##kind(const __grid_constant__ SplitTasks tasks) {      \
    split_either_way<Source, ElementKind::kind, cluster>(tasks);                                   \
  }

KINTSUGI_SPLIT_COLUMNS(float, fp16, 8)
KINTSUGI_SPLIT_COLUMNS(float, bf16, 8)
KINTSUGI_SPLIT_COLUMNS(float, tf32, 8)
KINTSUGI_SPLIT_COLUMNS(float, quantised, 8)
KINTSUGI_SPLIT_COLUMNS(float, digits, 8)
KINTSUGI_SPLIT_COLUMNS(float, residues, 8)
KINTSUGI_SPLIT_COLUMNS(double, digits, 8)
KINTSUGI_SPLIT_COLUMNS(double, residues, 8)
KINTSUGI_SPLIT_COLUMNS(double, wide_residues, 8)
KINTSUGI_SPLIT_COLUMNS(float, fp16, 16)
KINTSUGI_SPLIT_COLUMNS(float, bf16, 16)
KINTSUGI_SPLIT_COLUMNS(float, tf32, 16)
KINTSUGI_SPLIT_COLUMNS(float, quantised, 16)
KINTSUGI_SPLIT_COLUMNS(float, digits, 16)
KINTSUGI_SPLIT_COLUMNS(float, residues, 16)
KINTSUGI_SPLIT_COLUMNS(double, digits, 16)
KINTSUGI_SPLIT_COLUMNS(double, residues, 16)
KINTSUGI_SPLIT_COLUMNS(double, wide_residues, 16)

}  // namespace kintsugi::core::cuda
