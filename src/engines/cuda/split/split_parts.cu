// Splits of vectors that no thread block or cluster holds, part by part. Their ranges must be known. Parts
// that the kernels before this one (range_parts.cu) read last are split first, because they are still in L2.
// The kernel that finds ranges reads an operand from its beginning to its end; after it the last part is
// split first. The kernel that finds norms, if there is one, follows and reads from the end to the beginning;
// after it the first part is split first.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/split/rows.cuh"
#include "engines/cuda/split/strips.cuh"

namespace kintsugi::core::cuda {

namespace {

// Calls write(kind) with the kind of the task's elements as a constant. Long vectors of other kinds are split
// tile by tile.
template <class Source, class Write>
__device__ void with_kind_of_part(const SplitTask& task, const Write& write) {
  if constexpr (sizeof(Source) == sizeof(double)) {
    with_kind<ElementKind::residues>(task, write);
  } else {
    with_kind<ElementKind::fp16, ElementKind::bf16, ElementKind::residues>(task, write);
  }
}

// Scaling of a vector whose range is known. Several threads compute it; the thread with `stores` stores the
// scale.
__device__ Scaling known_scaling(const SplitTask& task, std::int64_t vector, bool stores) {
  VectorRange& stored_range = range_of(task, vector);
  VectorRange range = stored_range;
  const SplitRule rule = rule_of(task);
  scale_range(task, rule, vector, range);
  if (stores) stored_range.scale = range.scale;
  Scaling scaling = scaling_of(task.kind, range, rule, task.largest_bound);
  scaling.left_out = task.found_norms.ruled_out != nullptr && *task.found_norms.ruled_out != 0;
  return scaling;
}

// Splits a part of a vector whose elements are contiguous. `block` is the index among the task's thread
// blocks.
template <class Source>
__device__ void split_part_of_row(const SplitTask& task, std::int64_t block, Source* shared,
                                  Scaling& scaling) {
  // A vector's stride is its padded length.
  const std::int64_t parts = (task.vector_stride + task.part_length - 1) / task.part_length;
  const std::int64_t vector = block / parts;
  const std::int64_t begin = block % parts * task.part_length;
  const std::int64_t length = min(task.part_length, task.vector_stride - begin);
  const int thread = static_cast<int>(threadIdx.x);
  const int first = thread * rows::elements_per_write;
  constexpr int step = parts_split_threads * rows::elements_per_write;
  if (vector >= task.vectors) {
    for (int p = first; p < length; p += step)
      write_zeros<rows::elements_per_write>(task, vector * task.vector_stride + begin + p);
    return;
  }
  const Source* source = matrix_start<Source>(task) + (task.first + vector) * task.matrix.row_stride + begin;
  const std::int64_t existing = max(min(task.length - begin, length), std::int64_t{0});
  rows::start_loading_vector(source, rows::RowPart{existing, length, parts_split_threads}, thread, shared);
  if (thread == 0) scaling = known_scaling(task, vector, /*stores=*/begin == 0);
  await_copies();
  __syncthreads();
  if (scaling.left_out) return;
  with_kind_of_part<Source>(task, [&](auto known) {
    const VectorWriter<known> writer(task, scaling, vector);
    for (int p = first; p < length; p += step)
      writer.template write<rows::elements_per_write, /*step=*/1, /*aligned=*/true>(shared + p, begin + p);
  });
}

// Splits a part of a strip (strips.cuh). Neighboring thread blocks have neighboring strips.
template <class Source>
__device__ void split_part_of_strip(const SplitTask& task, std::int64_t block, Source* shared,
                                    Scaling* scalings) {
  using Shape = Strip<Source>;
  const std::int64_t strips = task.padded_vectors / Shape::width;
  const std::int64_t begin = block / strips * task.part_length;
  const StripPart part{.first_vector = static_cast<int>(block % strips) * Shape::width,
                       .first_element = static_cast<int>(begin),
                       .length = static_cast<int>(min(task.part_length, task.vector_stride - begin))};
  start_loading<Shape>(task, part, shared);
  const int vector = part.first_vector + static_cast<int>(threadIdx.x);
  const bool stores_scale = begin == 0;
  if (threadIdx.x < Shape::width && vector < task.vectors)
    scalings[threadIdx.x] = known_scaling(task, vector, stores_scale);
  await_copies();
  __syncthreads();
  with_kind_of_part<Source>(task,
                            [&](auto known) { write_part<Shape, known>(task, part, shared, scalings); });
}

// Splits part after part. A launch has fewer thread blocks than parts if few calls are expected to select the
// candidate (SplitTraversal::max_launched).
template <class Source>
__device__ void split_parts(const SplitTasks& tasks) {
  if (!begin_split(tasks)) return;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[Strip<Source>::width];
  auto* shared = reinterpret_cast<Source*>(memory);
#pragma unroll 1
  for (std::uint32_t i = blockIdx.x;; i += gridDim.x) {
    const auto parts = static_cast<std::uint32_t>(tasks.task[0].blocks + tasks.task[1].blocks);
    if (i >= parts) break;
    const bool norms_were_found = tasks.task[0].found_norms.ruled_out != nullptr;
    std::int64_t block = norms_were_found ? i : parts - 1 - i;  // parts that were read last come first
    const SplitTask& task = enter_task(tasks, block);
    if (task.matrix.column_stride == 1) {
      split_part_of_row<Source>(task, block, shared, scalings[0]);
    } else {
      split_part_of_strip<Source>(task, block, shared, scalings);
    }
    __syncthreads();
  }
}

}  // namespace

#define KINTSUGI_SPLIT_PARTS(name, Source)                             \
  extern "C" __global__ void __launch_bounds__(parts_split_threads, 3) \
      split_##name##_parts(const __grid_constant__ SplitTasks tasks) { \
    split_parts<Source>(tasks);                                        \
  }

KINTSUGI_SPLIT_PARTS(f32, float)
KINTSUGI_SPLIT_PARTS(f64, double)

}  // namespace kintsugi::core::cuda
