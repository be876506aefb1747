// Splits of vectors that lie beside each other, element by element: the blocks of a cluster, of any power of two up to
// sixteen, hold a panel of vectors, a part of k each, read it once and write it transposed. The other operand's vectors may
// lie the other way, in clusters of their own: then its blocks are those of rows.cuh.
#include "engines/cuda/common/order.cuh"
#include "engines/cuda/splits/cluster.cuh"
#include "engines/cuda/splits/rows.cuh"

namespace kintsugi::core::cuda {

namespace {

template <class Source>
struct Panel {
  static constexpr int width = panel_bytes / sizeof(Source);  // vectors
  static constexpr int chunk = sizeof(uint4) / sizeof(Source);
  static constexpr int lanes = width / chunk;  // threads that read a line
  static constexpr int group_pitch = panel_group * width + panel_gap;

  __device__ static int place(int v, int p) {
    return p / panel_group * group_pitch + p % panel_group * width + v;
  }
};

// What a block has of a panel: elements of k.
struct PanelPart {
  int first_vector;
  int first_element;
  int length;
};

// What a block tells the others of a vector.
template <class Source>
struct alignas(sizeof(uint4)) Message {
  Magnitudes<Source> magnitudes;
};
static_assert(sizeof(Message<float>) == panel_message_bytes<float> &&
              sizeof(Message<double>) == panel_message_bytes<double>);

template <class Source>
struct PanelRanges {
  static constexpr int width = panel_bytes / sizeof(Source);
  Magnitudes<Source> magnitudes[width];  // of the block's part
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
__device__ void start_loading(const SplitTask& task, const PanelPart& of, Source* part) {
  const int v = static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const std::int64_t stride = task.matrix.column_stride;
  const Source* source =
      matrix_start<Source>(task) + task.first + of.first_vector + v + (of.first_element + first) * stride;
  const std::int64_t vectors = std::min<std::int64_t>(task.vectors - of.first_vector - v, Shape::chunk);
  const int bytes = vectors > 0 ? static_cast<int>(vectors * sizeof(Source)) : 0;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0 &&
                       stride % Shape::chunk == 0 && bytes % sizeof(uint4) == 0;
  const auto inside = static_cast<int>(std::min<std::int64_t>(task.length - of.first_element, of.length));
  // Steps are of whole groups, so that a thread keeps its place in them.
  const int shared_step = Shape::place(0, step);
  const std::int64_t source_step = step * stride;
  Source* target = part + Shape::place(v, first);
  if (aligned) {
    for (int p = first; p < of.length; p += step, source += source_step, target += shared_step)
      copy_aligned(target, source, p < inside ? bytes : 0);
  } else {
    for (int p = first; p < of.length; p += step, source += source_step, target += shared_step)
      copy_unaligned(target, source, p < inside ? bytes : 0);
  }
}

// Of what this thread loaded.
template <class Shape, class Source>
__device__ void find_magnitudes(int length, const Source* part, PanelRanges<Source>& ranges) {
  const int v = static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const int shared_step = Shape::place(0, step);
  Magnitudes<Source> magnitudes[Shape::chunk];
  const Source* place = part + Shape::place(v, first);
  for (int p = first; p < length; p += step) {
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

// Threads beside each other tell one block each of the same vector; what is received is one message of every vector by each
// block.
template <class Source>
__device__ void send_magnitudes(const PanelRanges<Source>& ranges, const Message<Source>* received) {
  const int blocks = blocks_in_cluster();
  const int sender = block_in_cluster();
  for (int i = static_cast<int>(threadIdx.x); i < ranges.width * blocks; i += static_cast<int>(blockDim.x)) {
    const int v = i / blocks;
    ranges.mailbox.send(Message<Source>{ranges.magnitudes[v]}, received[v * blocks + sender], i % blocks);
  }
}

// Ranges of the panel's vectors from those of all parts; threads beside each other have one part each. Every block finds
// the ranges, the first one writes them.
template <ElementKind kind, class Source>
__device__ void finish_ranges(const SplitTask& task, int first_vector, PanelRanges<Source>& ranges,
                              const Message<Source>* received) {
  const int blocks = blocks_in_cluster();
  const int parts = ranges.width * blocks;
  // Whole warps.
  for (int i = static_cast<int>(threadIdx.x); i < max(parts, 32); i += static_cast<int>(blockDim.x)) {
    const int v = i / blocks;
    const int vector = first_vector + v;
    Magnitudes<Source> magnitudes;
    if (i < parts) magnitudes = received[i].magnitudes;
    add_over_lanes(magnitudes, blocks - 1U);
    if (i >= parts || i % blocks != 0 || vector >= task.vectors) continue;
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
template <class Shape, ElementKind kind, class Source>
__device__ void write_part(const SplitTask& task, const PanelPart& of, const Source* part,
                           const PanelRanges<Source>& ranges) {
  constexpr int beside = 4;
  constexpr int warps_across = Shape::width / beside;  // all threads together are a multiple of these
  constexpr int groups_of_warp = 32 / beside;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int v = warp % warps_across * beside + lane % beside;
  const int first = warp / warps_across * groups_of_warp + lane / beside;
  const int step = static_cast<int>(blockDim.x) / 32 / warps_across * groups_of_warp;
  const int groups = of.length / panel_group;
  const int vector = of.first_vector + v;
  const VectorWriter<kind> writer(task, ranges.scalings[v], vector);
  for (int g = first; g < groups; g += step) {
    const int element = of.first_element + g * panel_group;
    if (vector < task.vectors) {
      writer.template write<panel_group, Shape::width>(part + v + g * Shape::group_pitch, element);
    } else {
      write_zeros<panel_group>(task, std::int64_t{vector} * task.vector_stride + element);
    }
  }
}

template <class Source, ElementKind kind>
__device__ void split_columns(const SplitTask& task, std::int64_t block) {
  using Shape = Panel<Source>;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ PanelRanges<Source> ranges;
  const int blocks = blocks_in_cluster();
  const int length = static_cast<int>(task.vector_stride) / blocks;
  const PanelPart of{static_cast<int>(block) / blocks * Shape::width, block_in_cluster() * length, length};
  auto* part = reinterpret_cast<Source*>(memory);
  auto* received = reinterpret_cast<Message<Source>*>(part + Shape::place(0, length));
  start_loading<Shape>(task, of, part);
  if (threadIdx.x < Shape::width) ranges.magnitudes[threadIdx.x] = {};
  if (threadIdx.x == 0) ranges.mailbox.open();
  __syncthreads();
  arrive_at_cluster();
  if (threadIdx.x == 0) ranges.mailbox.expect(Shape::width * blocks * sizeof(Message<Source>));
  await_copies();
  find_magnitudes<Shape>(length, part, ranges);
  __syncthreads();
  await_cluster();  // the others' mailboxes are open
  send_magnitudes(ranges, received);
  ranges.mailbox.wait();
  finish_ranges<kind>(task, of.first_vector, ranges, received);
  __syncthreads();
  write_part<Shape, kind>(task, of, part, ranges);
}

// All blocks of a cluster belong to one task: the blocks of each are whole clusters.
template <class Source, ElementKind kind>
__device__ void split_either_way(const SplitTasks& tasks) {
  await_others();
  if (is_left_out(tasks)) return;
  std::int64_t block = blockIdx.x;
  const SplitTask& task = task_of_block(tasks, block);
  if (task.vector_threads != 0) {
    split_rows<Source, kind>(task, block);
  } else {
    split_columns<Source, kind>(task, block);
  }
}

}  // namespace

// A multiprocessor shall hold three blocks of all threads, or six of half as many: some wait for their elements or for each
// other, others write.
#define KINTSUGI_SPLIT_COLUMNS(Source, kind)                                      \
  extern "C" __global__ void __launch_bounds__(cluster_threads, 3)                \
      split_columns_##Source##_##kind(const __grid_constant__ SplitTasks tasks) { \
    split_either_way<Source, ElementKind::kind>(tasks);                           \
  }

KINTSUGI_SPLIT_COLUMNS(float, fp16)
KINTSUGI_SPLIT_COLUMNS(float, bf16)
KINTSUGI_SPLIT_COLUMNS(float, tf32)
KINTSUGI_SPLIT_COLUMNS(float, quantised)
KINTSUGI_SPLIT_COLUMNS(float, digits)
KINTSUGI_SPLIT_COLUMNS(float, residues)
KINTSUGI_SPLIT_COLUMNS(double, digits)
KINTSUGI_SPLIT_COLUMNS(double, residues)
KINTSUGI_SPLIT_COLUMNS(double, wide_residues)

}  // namespace kintsugi::core::cuda
