// Splits of FP64 operands into the residues of the seven operands of one step of Strassen's algorithm.
// Vectors are read as by split_rows.cu and split_columns_sm90.cu; ranges, norms and scales are the same as
// well.
#include "engines/cuda/split/rows.cuh"
#include "engines/cuda/split/strassen_operands.cuh"
#include "engines/cuda/split/strip_scalings.cuh"

namespace kintsugi::core::cuda {

namespace {

using namespace strassen;

// Splits the thread block's part of a strip. `block` is its index among the task's thread blocks.
__device__ void split_strip(const SplitTask& task, std::int64_t block) {
  using Shape = Strip<double>;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[Shape::width];
  const int blocks = cluster_size();
  const int length = static_cast<int>(task.vector_stride) / blocks;
  const StripPart part{.first_vector = static_cast<int>(block) / blocks * Shape::width,
                       .first_element = block_rank_in_cluster() * length,
                       .length = length};
  auto* shared = reinterpret_cast<double*>(memory);
  auto* messages = reinterpret_cast<std::byte*>(shared + Shape::shared_offset(0, length));  // after the part
  start_loading<Shape>(task, part, shared);
  const int v = static_cast<int>(threadIdx.x);
  if (v < Shape::width && part.first_vector + v >= task.vectors) scalings[v] = scaling_of_padding();
  if (task.ranges_known) {
    if (v < Shape::width && part.first_vector + v < task.vectors)
      scalings[v] =
          finish_range(task, ElementKind::residues, part.first_vector + v, {}, block_rank_in_cluster() == 0);
    await_copies();
  } else {
    find_scalings_by_norms<Shape>(task, part, shared, messages, scalings);
  }
  __syncthreads();
  if (scalings[0].left_out) return;
  auto& weights = *reinterpret_cast<SideWeights*>(messages);  // in place of the messages, which are read
  load_weights(task, weights);
  write_strip(task, part, shared, scalings, weights);
}

// Address of the same shared variable in another thread block of the cluster.
template <class T>
__device__ const T* in_block(const T* variable, unsigned block) {
  const T* result;
  asm("mapa.u64 %0, %1, %2;" : "=l"(result) : "l"(variable), "r"(block));
  return result;
}

// Writes the slices of a pair. `row` is the lane's vector of the pair, `warp` counts the warps of both
// vectors.
__device__ void write_pair(const SplitTask& task, int pair, int warp, const double* row,
                           const Scaling& scaling, const SideWeights& weights) {
  const bool exists = pair / strassen_group * 2 * strassen_group + pair % strassen_group < task.vectors;
  const int groups = static_cast<int>(task.vector_stride) / group_length;  // a multiple of groups_of_warp
  for (int first = warp * groups_of_warp; first < groups;
       first += 2 * task.vector_threads / 32 * groups_of_warp) {
    const int group = first + group_of_lane();
    const std::int64_t offset = offset_of_group(task, pair, group);
    if (!exists) {
      clear_groups(task, offset, true);
      continue;
    }
    LaneElements x;
#pragma unroll
    for (int j = 0; j < groups_of_lane; ++j) {
      uint4 words[quads_of_group / 2];
#pragma unroll
      for (int i = 0; i < quads_of_group / 2; ++i)
        words[i] = reinterpret_cast<const uint4*>(row + (group + j) * group_length +
                                                  half_of_lane() * quads_of_group)[i];
      memcpy(x[j], words, sizeof words);
    }
    write_groups(task, scaling, x, offset, true, weights);
  }
}

// Loads the vector, or zeros if it does not exist.
__device__ void start_loading_row(const SplitTask& task, int vector, int thread, double* row) {
  if (vector < task.vectors) {
    const double* source = matrix_start<double>(task) + (task.first + vector) * task.matrix.row_stride;
    return rows::start_loading_vector(source, task, thread, row);
  }
  for (int p = thread; p < static_cast<int>(task.vector_stride); p += task.vector_threads) row[p] = 0;
}

// Finds the scaling of a vector and stores it in `scaling`. All threads of the thread block must call it
// together.
__device__ void find_row_scaling(const SplitTask& task, int vector, int thread, const double* row,
                                 Scaling& scaling) {
  __shared__ VectorWords words[rows_threads / 32];
  const bool exists = vector < task.vectors;
  if (thread == 0 && !exists) scaling = scaling_of_padding();
  if (task.ranges_known) {
    if (thread == 0 && exists) scaling = finish_range(task, ElementKind::residues, vector, {});
    await_copies();
    return;
  }
  VectorWords& words_of_vector = words[threadIdx.x / task.vector_threads];
  if (thread == 0) words_of_vector = {};
  rows::find_scaling_by_norms(task, vector, thread, row, scaling, words_of_vector);
}

// Splits the vectors of a thread block. Both vectors of a pair are next to each other in the order of
// `block`: in one thread block or in two, which read each other's vector.
__device__ void split_row_pairs(const SplitTask& task, std::int64_t block) {
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[rows_threads / 32];
  const int vectors = static_cast<int>(blockDim.x) / task.vector_threads;
  const int v = static_cast<int>(threadIdx.x) / task.vector_threads;  // vector of the thread block
  const int thread = static_cast<int>(threadIdx.x) - v * task.vector_threads;
  const int index = static_cast<int>(block) * vectors + v;
  const int half = index % 2;
  const int pair = index / 2;
  const int first_vector = pair / strassen_group * 2 * strassen_group + pair % strassen_group;
  auto* const row = reinterpret_cast<double*>(memory) + v * static_cast<int>(task.vector_stride);
  start_loading_row(task, first_vector + half * strassen_group, thread, row);
  find_row_scaling(task, first_vector + half * strassen_group, thread, row, scalings[v]);
  const double* other_row = row + (1 - 2 * half) * static_cast<int>(task.vector_stride);
  const Scaling* other_scaling = scalings + (v ^ 1);
  if (vectors == 1) {
    cluster_arrive();
    cluster_wait();
    const unsigned other = static_cast<unsigned>(block_rank_in_cluster()) ^ 1U;
    other_row = in_block(row, other);
    other_scaling = in_block(scalings, other);
  } else {
    __syncthreads();
  }
  auto& weights = *reinterpret_cast<SideWeights*>(reinterpret_cast<double*>(memory) +
                                                  vectors * static_cast<int>(task.vector_stride));
  load_weights(task, weights);
  const bool is_own = vector_of_lane() == half;
  const Scaling scaling = is_own ? scalings[v] : *other_scaling;
  const bool left_out = scalings[v].left_out || other_scaling->left_out;  // the same in all lanes of a warp
  const int warp = (half * task.vector_threads + thread) / 32;
  if (!left_out) write_pair(task, pair, warp, is_own ? row : other_row, scaling, weights);
  if (vectors == 1) {
    cluster_arrive();  // the other thread block's vector is read
    cluster_wait();
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(cluster_threads, 3)
    split_strassen(const __grid_constant__ SplitTasks tasks) {
  if (!begin_split(tasks)) return;
  std::int64_t block = blockIdx.x;
  const SplitTask& task = enter_task(tasks, block);
  if (task.vector_threads != 0) {
    split_row_pairs(task, block);
  } else {
    split_strip(task, block);
  }
}

}  // namespace kintsugi::core::cuda
