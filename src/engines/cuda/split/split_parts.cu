// Splits of vectors that no thread block or cluster holds, part by part. Their ranges must be known. Parts
// that the kernels before this one (range_parts.cu) read last are split first, because they are still in L2.
// The kernel that finds ranges reads an operand from its beginning to its end; after it the last part is
// split first. The kernel that finds norms, if there is one, follows and reads from the end to the beginning;
// after it the first part is split first.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/finish_range.cuh"
#include "engines/cuda/split/elements.cuh"
#include "engines/cuda/split/strips.cuh"

namespace kintsugi::core::cuda {

namespace {

// Scaling of a vector whose range is known. Several threads compute it; the thread with `stores` stores the
// scale.
__device__ Scaling known_scaling(const SplitTask& task, ElementKind kind, std::int64_t vector, bool stores) {
  VectorRange& stored_range = range_of(task, vector);
  VectorRange range = stored_range;
  const SplitRule rule = rule_of(task);
  scale_range(task, rule, vector, range);
  if (stores) stored_range.scale = range.scale;
  Scaling scaling = scaling_of(kind, range, rule, task.largest_bound);
  scaling.left_out = task.found_norms.ruled_out != nullptr && *task.found_norms.ruled_out != 0;
  return scaling;
}

// Writes the slices of elements p, p + 1, ..., which are in x. A vector that is not plain is written element
// by element, in a loop that is not unrolled. Such a loop could not keep x in registers; so it reads the
// elements from memory again.
template <ElementKind kind, class Source>
__device__ void write_elements(const VectorWriter<kind>& writer, const Source* source, std::int64_t p,
                               std::int64_t length, const Source (&x)[elements_at_once]) {
  if (writer.is_plain()) return writer.write_plain(x, p);
#pragma unroll 1
  for (int i = 0; i < elements_at_once; ++i)
    writer.write_element(p + i < length ? source[p + i] : Source(0), p + i);
}

// Splits a part of a vector whose elements are contiguous. `block` is the index among the task's thread
// blocks.
template <class Source, ElementKind kind>
__device__ void split_part_of_row(const SplitTask& task, std::int64_t block) {
  __shared__ Scaling scaling;
  // A vector's stride is its padded length.
  const std::int64_t parts = (task.vector_stride + task.part_length - 1) / task.part_length;
  const std::int64_t vector = block / parts;
  const std::int64_t begin = block % parts * task.part_length;
  const std::int64_t end = min(begin + task.part_length, task.vector_stride);
  const std::int64_t step = std::int64_t{blockDim.x} * elements_at_once;
  std::int64_t p = begin + std::int64_t{threadIdx.x} * elements_at_once;
  if (vector >= task.vectors) {
    for (; p < end; p += step) write_zeros<elements_at_once>(task, vector * task.vector_stride + p);
    return;
  }
  const Source* source = matrix_start<Source>(task) + (task.first + vector) * task.matrix.row_stride;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0;
  Source x[elements_at_once];
  load_elements(source, p, task.length, aligned, x);
  const bool stores_scale = begin == 0;
  if (threadIdx.x == 0) scaling = known_scaling(task, kind, vector, stores_scale);
  __syncthreads();
  if (scaling.left_out) return;
  const VectorWriter<kind> writer(task, scaling, vector);
#pragma unroll 1
  while (p < end) {
    Source next[elements_at_once];
    load_elements(source, p + step, p + step < end ? task.length : 0, aligned, next);  // zeros after the part
    write_elements(writer, source, p, task.length, x);
    p += step;
#pragma unroll
    for (int i = 0; i < elements_at_once; ++i) x[i] = next[i];
  }
}

// Splits a part of a strip (strips.cuh). Neighboring thread blocks have neighboring strips.
template <class Source, ElementKind kind>
__device__ void split_part_of_strip(const SplitTask& task, std::int64_t block) {
  using Shape = Strip<Source>;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[Shape::width];
  const std::int64_t strips = task.padded_vectors / Shape::width;
  const std::int64_t begin = block / strips * task.part_length;
  const StripPart part{.first_vector = static_cast<int>(block % strips) * Shape::width,
                       .first_element = static_cast<int>(begin),
                       .length = static_cast<int>(min(task.part_length, task.vector_stride - begin))};
  auto* shared = reinterpret_cast<Source*>(memory);
  start_loading<Shape>(task, part, shared);
  const int vector = part.first_vector + static_cast<int>(threadIdx.x);
  const bool stores_scale = begin == 0;
  if (threadIdx.x < Shape::width && vector < task.vectors)
    scalings[threadIdx.x] = known_scaling(task, kind, vector, stores_scale);
  await_copies();
  __syncthreads();
  write_part<Shape, kind>(task, part, shared, scalings);
}

// Splits part after part. A launch has fewer thread blocks than parts if few calls are expected to select the
// candidate (SplitTraversal::max_launched).
template <class Source, ElementKind kind>
__device__ void split_parts(const SplitTasks& tasks) {
  if (!begin_split(tasks)) return;
  const std::int64_t parts = tasks.task[0].blocks + tasks.task[1].blocks;
#pragma unroll 1
  for (std::int64_t i = blockIdx.x; i < parts; i += gridDim.x) {
    const bool norms_were_found = tasks.task[0].found_norms.ruled_out != nullptr;
    std::int64_t block = norms_were_found ? i : parts - 1 - i;  // parts that were read last come first
    const SplitTask& task = enter_task(tasks, block);
    if (task.matrix.column_stride == 1) {
      split_part_of_row<Source, kind>(task, block);
    } else {
      split_part_of_strip<Source, kind>(task, block);
    }
    __syncthreads();
  }
}

}  // namespace

#define KINTSUGI_SPLIT_PARTS(Source, kind)                                      \
  extern "C" __global__ void __launch_bounds__(parts_split_threads, 3)          \
      split_parts_##Source##_##kind(const __grid_constant__ SplitTasks tasks) { \
    split_parts<Source, ElementKind::kind>(tasks);                              \
  }

KINTSUGI_SPLIT_PARTS(float, fp16)
KINTSUGI_SPLIT_PARTS(float, bf16)
KINTSUGI_SPLIT_PARTS(float, tf32)
KINTSUGI_SPLIT_PARTS(float, quantised)
KINTSUGI_SPLIT_PARTS(float, digits)
KINTSUGI_SPLIT_PARTS(float, residues)
KINTSUGI_SPLIT_PARTS(double, digits)
KINTSUGI_SPLIT_PARTS(double, residues)
KINTSUGI_SPLIT_PARTS(double, wide_residues)

}  // namespace kintsugi::core::cuda
