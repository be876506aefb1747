// Splits of vectors that no thread block or cluster holds into the residues of the seven operands of one step
// of Strassen's algorithm, part by part. Ranges and norms must be known. Parts are split in the order of
// split_parts.cu.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/finish_range.cuh"
#include "engines/cuda/split/strassen_operands.cuh"

namespace kintsugi::core::cuda {

namespace {

using namespace strassen;

// Scaling of a vector whose range is known, or of a vector that does not exist. Several thread blocks compute
// it; the one with `stores` stores the scale.
__device__ Scaling known_scaling(const SplitTask& task, int vector, bool stores) {
  Scaling scaling = vector < task.vectors ? finish_range(task, ElementKind::residues, vector, {}, stores)
                                          : scaling_of_padding();
  scaling.left_out = task.found_norms.ruled_out != nullptr && *task.found_norms.ruled_out != 0;
  return scaling;
}

// Loads elements p ... p + 3 of a vector of `length` contiguous elements, with zeros after its end.
// `aligned`: source + p is aligned to sixteen bytes.
__device__ void load_quads(const double* source, std::int64_t p, std::int64_t length, bool aligned,
                           double (&x)[quads_of_group]) {
  if (aligned && p + quads_of_group <= length) {
    uint4 words[quads_of_group / 2];
#pragma unroll
    for (int i = 0; i < quads_of_group / 2; ++i)
      words[i] = __ldg(reinterpret_cast<const uint4*>(source + p) + i);
    memcpy(x, words, sizeof words);
    return;
  }
#pragma unroll
  for (int i = 0; i < quads_of_group; ++i) x[i] = p + i < length ? __ldg(source + p + i) : 0.0;
}

// Splits a part of a pair of vectors whose elements are contiguous. `block` is the index among the task's
// thread blocks.
__device__ void split_part_of_rows(const SplitTask& task, std::int64_t block, const SideWeights& weights) {
  __shared__ Scaling scalings[2];
  const std::int64_t parts = (task.vector_stride + task.part_length - 1) / task.part_length;
  const int pair = static_cast<int>(block / parts);
  const int first_vector = pair / strassen_group * group_length + pair % strassen_group;
  const std::int64_t begin = block % parts * task.part_length;
  const std::int64_t end = min(begin + task.part_length, task.vector_stride);
  if (threadIdx.x < 2)
    scalings[threadIdx.x] = known_scaling(task, first_vector + static_cast<int>(threadIdx.x) * strassen_group,
                                          /*stores=*/begin == 0);
  __syncthreads();
  if (scalings[0].left_out) return;
  const std::int64_t vector = first_vector + vector_of_lane() * strassen_group;
  const double* const source = matrix_start<double>(task) + (task.first + vector) * task.matrix.row_stride;
  const std::int64_t length = vector < task.vectors ? task.length : 0;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0;
  // The part's length is a multiple of a warp's groups.
  constexpr std::int64_t warp_length = groups_of_warp * group_length;
#pragma unroll 1
  for (std::int64_t p = begin + threadIdx.x / 32 * warp_length; p < end; p += blockDim.x / 32 * warp_length) {
    const auto group = static_cast<int>(p / group_length) + group_of_lane();
    const std::int64_t offset = offset_of_group(task, pair, group);
    if (first_vector >= task.vectors) {
      clear_groups(task, offset, true);
      continue;
    }
    LaneElements x;
#pragma unroll
    for (int j = 0; j < groups_of_lane; ++j)
      load_quads(source, std::int64_t{group + j} * group_length + half_of_lane() * quads_of_group, length,
                 aligned, x[j]);
    write_groups(task, scalings[vector_of_lane()], x, offset, true, weights);
  }
}

// Splits a part of a strip. Neighboring thread blocks have neighboring strips.
__device__ void split_part_of_strip(const SplitTask& task, std::int64_t block, const SideWeights& weights) {
  using Shape = Strip<double>;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[Shape::width];
  const std::int64_t strips = task.padded_vectors / Shape::width;
  const std::int64_t begin = block / strips * task.part_length;
  const StripPart part{.first_vector = static_cast<int>(block % strips) * Shape::width,
                       .first_element = static_cast<int>(begin),
                       .length = static_cast<int>(min(task.part_length, task.vector_stride - begin))};
  auto* shared = reinterpret_cast<double*>(memory);
  start_loading<Shape>(task, part, shared);
  if (threadIdx.x < Shape::width)
    scalings[threadIdx.x] = known_scaling(task, part.first_vector + static_cast<int>(threadIdx.x),
                                          /*stores=*/begin == 0);
  await_copies();
  __syncthreads();
  if (!scalings[0].left_out) write_strip(task, part, shared, scalings, weights);
}

__device__ void split_part(const SplitTask& task, std::int64_t block) {
  __shared__ SideWeights weights;
  load_weights(task, weights);  // the previous part may have been of the other operand
  if (task.matrix.column_stride == 1) {
    split_part_of_rows(task, block, weights);
  } else {
    split_part_of_strip(task, block, weights);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(parts_split_threads, 2)
    split_strassen_parts(const __grid_constant__ SplitTasks tasks) {
  if (!begin_split(tasks)) return;
  const std::int64_t parts = tasks.task[0].blocks + tasks.task[1].blocks;
#pragma unroll 1
  for (std::int64_t i = blockIdx.x; i < parts; i += gridDim.x) {
    const bool norms_were_found = tasks.task[0].found_norms.ruled_out != nullptr;
    std::int64_t block = norms_were_found ? i : parts - 1 - i;  // parts that were read last come first
    const SplitTask& task = enter_task(tasks, block);
    split_part(task, block);
    __syncthreads();
  }
}

}  // namespace kintsugi::core::cuda
