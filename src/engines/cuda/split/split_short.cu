// Splits of many short vectors. A thread has eight elements of one vector. The 8, 16 or 32 threads of a
// vector belong to one warp and find the vector's range by shuffles. A launch has as many thread blocks as
// the device holds. Each loops over groups of vectors, and reads its next group while it writes slices.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/sums.cuh"
#include "engines/cuda/split/elements.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int threads = short_threads;

// Vectors of a task that a thread block splits at once. The number of vectors, the threads per vector and the
// length are powers of two.
struct VectorGroup {
  const SplitTask& task;
  std::int64_t first_vector;
  int log2_lanes;  // log2 of the threads per vector

  // `group` is the index among all groups of the launch, which are counted like thread blocks.
  __device__ VectorGroup(const SplitTasks& tasks, std::int64_t group)
      : task(enter_task(tasks, group)), log2_lanes(31 - __clz(task.vector_threads)) {
    first_vector = group * vectors();  // enter_task() has made `group` the index within the task
  }
  __device__ int lanes() const { return 1 << log2_lanes; }
  __device__ int vectors() const { return threads >> log2_lanes; }
  __device__ int length() const { return elements_at_once << log2_lanes; }
  // The thread's vector, as an index in the group and in the task; then the thread's first element.
  __device__ int own_vector() const { return static_cast<int>(threadIdx.x) >> log2_lanes; }
  __device__ std::int64_t vector() const { return first_vector + own_vector(); }
  __device__ int element() const {
    return (static_cast<int>(threadIdx.x) & (lanes() - 1)) * elements_at_once;
  }
};

// True if every thread reads the elements that it splits. Otherwise threads exchange the elements that they
// read, through shared memory.
__device__ bool reads_own_elements(const DeviceMatrix& matrix) { return matrix.column_stride == 1; }

// Elements that a thread reads for an exchange: the first one, and the steps to the next ones. Neighboring
// threads read along the smaller stride.
struct ExchangedElements {
  int vector;  // index in the group
  int element;
  int vector_step;
  int element_step;

  __device__ explicit ExchangedElements(const VectorGroup& group) {
    const DeviceMatrix& matrix = group.task.matrix;
    const bool along_k = abs(matrix.column_stride) <= abs(matrix.row_stride);
    const int lanes_per_line = along_k ? group.length() : group.vectors();
    const int first = static_cast<int>(threadIdx.x) & (lanes_per_line - 1);
    const int line = static_cast<int>(threadIdx.x) >> (31 - __clz(lanes_per_line));
    const int step = threads >> (31 - __clz(lanes_per_line));
    vector = along_k ? line : first;
    element = along_k ? first : line;
    vector_step = along_k ? step : 0;
    element_step = along_k ? 0 : step;
  }
};

// Starts loads of elements into registers: the thread's own elements, or those that it reads for other
// threads.
template <class Source>
__device__ void start_loading(const VectorGroup& group, Source (&x)[elements_at_once]) {
  const SplitTask& task = group.task;
  const DeviceMatrix& matrix = task.matrix;
  const Source* start = matrix_start<Source>(task);
  if (reads_own_elements(matrix)) {
    const bool exists = group.vector() < task.vectors;
    const Source* source = start + (task.first + group.vector()) * matrix.row_stride;
    const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0;
    return load_elements(source, group.element(), exists ? task.length : 0, aligned, x);
  }
  const ExchangedElements exchanged(group);
  const std::int64_t first_vector = group.first_vector + exchanged.vector;
  const Source* source =
      start + (task.first + first_vector) * matrix.row_stride + exchanged.element * matrix.column_stride;
  const std::int64_t step =
      exchanged.vector_step * matrix.row_stride + exchanged.element_step * matrix.column_stride;
#pragma unroll
  for (int i = 0; i < elements_at_once; ++i) {
    const bool exists = first_vector + i * exchanged.vector_step < task.vectors &&
                        exchanged.element + i * exchanged.element_step < task.length;
    x[i] = exists ? __ldg(source + i * step) : Source(0);
  }
}

// Exchanges elements between threads, unless they read their own. All threads of the thread block must call
// it together.
template <class Source>
__device__ void exchange(const VectorGroup& group, Source* memory, Source (&x)[elements_at_once]) {
  if (reads_own_elements(group.task.matrix)) return;
  const int pitch = group.length() + 1;
  const ExchangedElements exchanged(group);
  __syncthreads();  // the previous group has been read
#pragma unroll
  for (int i = 0; i < elements_at_once; ++i) {
    memory[(exchanged.vector + i * exchanged.vector_step) * pitch + exchanged.element +
           i * exchanged.element_step] = x[i];
  }
  __syncthreads();
  const Source* own_elements = memory + group.own_vector() * pitch + group.element();
#pragma unroll
  for (int i = 0; i < elements_at_once; ++i) x[i] = own_elements[i];
}

// Writes the slices of elements p, p + 1, ... of the writer's vector.
template <ElementKind kind, class Source>
__device__ void write_elements(const VectorWriter<kind>& writer, std::int64_t p,
                               const Source (&x)[elements_at_once]) {
  if (writer.is_plain()) return writer.write_plain(x, p);
#pragma unroll
  for (int i = 0; i < elements_at_once; ++i) writer.write_element(x[i], p + i);
}

// Splits the group's vectors. All threads of the thread block must call it together.
template <class Source, ElementKind kind>
__device__ void split_group(const VectorGroup& group, const Source (&x)[elements_at_once]) {
  const SplitTask& task = group.task;
  const std::int64_t vector = group.vector();
  const int element = group.element();
  RangeSum<kind, Source> sum;
  sum.add(x);
  add_over_lanes(sum, group.lanes() - 1U);  // the bits of the lane number within a vector
  if (element >= task.vector_stride) return;
  if (vector >= task.vectors) {
    if (vector < task.padded_vectors)
      write_zeros<elements_at_once>(task, vector * task.vector_stride + element);
    return;
  }
  const bool stores_range = element == 0;
  const Scaling scaling = finish_range(task, kind, vector, sum.range(), stores_range);
  write_elements(VectorWriter<kind>(task, scaling, vector), element, x);
}

template <class Source, ElementKind kind>
__device__ void split_short(const SplitTasks& tasks) {
  if (!begin_split(tasks)) return;
  // One element of padding per vector; a vector has at least 8 threads.
  __shared__ Source memory[threads * elements_at_once + threads / 8];
  const std::int64_t groups = tasks.task[0].blocks + tasks.task[1].blocks;
  Source x[elements_at_once];
  start_loading(VectorGroup(tasks, blockIdx.x), x);
#pragma unroll 1
  for (std::int64_t index = blockIdx.x; index < groups; index += gridDim.x) {
    const VectorGroup group(tasks, index);
    exchange(group, memory, x);
    Source next[elements_at_once] = {};
    const std::int64_t next_index = index + gridDim.x;
    if (next_index < groups) start_loading(VectorGroup(tasks, next_index), next);
    split_group<Source, kind>(group, x);
#pragma unroll
    for (int i = 0; i < elements_at_once; ++i) x[i] = next[i];
  }
}

}  // namespace

#define KINTSUGI_SPLIT_SHORT(name, Source, kind)                                \
  extern "C" __global__ void __launch_bounds__(short_threads, short_blocks)     \
      split_##name##_##kind##_short(const __grid_constant__ SplitTasks tasks) { \
    split_short<Source, ElementKind::kind>(tasks);                              \
  }

KINTSUGI_SPLIT_SHORT(f32, float, fp16)
KINTSUGI_SPLIT_SHORT(f32, float, fp16_with_depth)
KINTSUGI_SPLIT_SHORT(f32, float, bf16)

}  // namespace kintsugi::core::cuda
