// Splits of FP64 operands into the residues of the seven operands of one step of Strassen's algorithm.
// Vectors are read as by split_rows.cu and split_columns_sm90.cu; ranges, norms and scales are the same as
// well.
#include "engines/cuda/split/rows.cuh"
#include "engines/cuda/split/strassen/strip_pairs.cuh"
#include "engines/cuda/split/strips/strip_scalings.cuh"

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
  if (task.matrix.right) {
    write_strip<true>(task, part, shared, scalings);
  } else {
    write_strip<false>(task, part, shared, scalings);
  }
}

// Address of the same shared variable in another thread block of the cluster.
template <class T>
__device__ const T* in_block(const T* variable, unsigned block) {
  const T* result;
  asm("mapa.u64 %0, %1, %2;" : "=l"(result) : "l"(variable), "r"(block));
  return result;
}

// Two vectors of a pair, in the shared memory of one thread block or of two.
struct RowPair {
  int pair;
  const double* rows[2];
  Scaling scalings[2];
};

// Writes the groups of a pair, of which thread `thread` of both vectors' threads takes its share.
template <bool right>
__device__ void write_rows(const SplitTask& task, const RowPair& rows, bool exists, int thread) {
  const int groups = static_cast<int>(task.vector_stride) / group_length;
  for (int g = thread; g < groups; g += 2 * task.vector_threads) {
    const std::int64_t offset = offset_of_group(task, rows.pair, g);
    if (!exists) {
      clear_group(task, offset);
      continue;
    }
    double x[2][group_length];
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      uint4 words[group_length / 2];
#pragma unroll
      for (int i = 0; i < group_length / 2; ++i)
        words[i] = reinterpret_cast<const uint4*>(rows.rows[v] + g * group_length)[i];
      memcpy(x[v], words, sizeof words);
    }
    write_group<right>(task, rows.scalings, x[0], x[1], offset);
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
  const RowPair rows{pair,
                     {half == 0 ? row : other_row, half == 0 ? other_row : row},
                     {half == 0 ? scalings[v] : *other_scaling, half == 0 ? *other_scaling : scalings[v]}};
  if (!rows.scalings[0].left_out) {
    const bool exists = first_vector < task.vectors;
    if (task.matrix.right) {
      write_rows<true>(task, rows, exists, half * task.vector_threads + thread);
    } else {
      write_rows<false>(task, rows, exists, half * task.vector_threads + thread);
    }
  }
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
