// Splits of vectors whose elements are contiguous. A thread block reads some vectors once and holds them in
// shared memory. Each vector is split by task.vector_threads threads, which are consecutive whole warps.
// `thread` is a thread's index among them.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/select/sums.cuh"
#include "engines/cuda/split/elements.cuh"

namespace kintsugi::core::cuda {

namespace rows {

constexpr int elements_per_write = 8;
constexpr int chunks_of_group = 4;  // sixteen bytes each, of a thread

// Returns when at most the last `groups` groups of this thread's copies are incomplete.
__device__ inline void await_copies_before(int groups) {
  if (groups >= 3) {
    await_copies_but<3>();
  } else if (groups == 2) {
    await_copies_but<2>();
  } else if (groups == 1) {
    await_copies_but<1>();
  } else {
    await_copies_but<0>();
  }
}

// Part of a vector that threads hold; a SplitTask describes a whole vector by the same names.
struct RowPart {
  std::int64_t length;         // elements of the operand
  std::int64_t vector_stride;  // elements, those of padding included
  std::int32_t vector_threads;
};

// Copies a vector or a part of one to shared memory, with zeros after its end. The thread starts all of its
// copies before it waits. Copies are committed in groups of chunks_of_group.
template <class Source, class Part>
__device__ void start_loading_vector(const Source* source, const Part& part, int thread, Source* row) {
  constexpr int chunk = sizeof(uint4) / sizeof(Source);
  const int stride = static_cast<int>(part.vector_stride);
  const int length = static_cast<int>(part.length);
  const int step = part.vector_threads * chunk;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0 && length % chunk == 0;
  int p = thread * chunk;
  const auto copy = [&](int i) {
    const int element = p + i * step;
    if (aligned) {
      copy_aligned(row + element, source + element, element < length ? static_cast<int>(sizeof(uint4)) : 0);
    } else {
      copy_unaligned(row + element, source + element,
                     max(min(length - element, chunk), 0) * static_cast<int>(sizeof(Source)));
    }
  };
#pragma unroll 1
  for (int groups = stride / (chunks_of_group * step); groups > 0; --groups, p += chunks_of_group * step) {
#pragma unroll
    for (int i = 0; i < chunks_of_group; ++i) copy(i);
    commit_copies();
  }
  for (; p < stride; p += step) copy(0);
}

// Calls visit(elements) for the elements that this thread loaded, sixteen bytes at a time.
template <class Source, class Visit>
__device__ void visit_vector(const SplitTask& task, int thread, const Source* row, const Visit& visit,
                             int first = 0) {
  constexpr int chunk = sizeof(uint4) / sizeof(Source);
  const int stride = static_cast<int>(task.vector_stride);
  for (int p = thread * chunk + first; p < stride; p += task.vector_threads * chunk) {
    Source x[chunk];
    read_chunk(row + p, x);
    visit(x);
  }
}

// visit_vector() with more elements at a time, whose reads do not wait for each other. With `awaits` each
// group of elements is visited as soon as its copies are complete.
template <bool awaits, class Source, class Visit>
__device__ void visit_vector_by_groups(const SplitTask& task, int thread, const Source* row,
                                       const Visit& visit) {
  constexpr int chunk = sizeof(uint4) / sizeof(Source);
  constexpr int chunks = chunks_of_group;
  const int step = task.vector_threads * chunk;
  const int groups = static_cast<int>(task.vector_stride) / (chunks * step);
  const Source* group = row + thread * chunk;
#pragma unroll 1
  for (int g = 0; g < groups; ++g, group += chunks * step) {
    if constexpr (awaits) await_copies_before(groups - 1 - g);
    Source x[chunks * chunk];
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      Source elements[chunk];
      read_chunk(group + c * step, elements);
#pragma unroll
      for (int i = 0; i < chunk; ++i) x[chunk * c + i] = elements[i];
    }
    visit(x);
  }
  if constexpr (awaits) await_copies();
  visit_vector(task, thread, row, visit, groups * chunks * step);
}

// Adds the sums of a vector's threads. The result is complete in the vector's first thread. All threads of
// the thread block must call it together.
template <class Sum>
__device__ Sum whole_sum(const SplitTask& task, int thread, Sum sum) {
  __shared__ Sum warp_sums[rows_threads / 32];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  add_over_lanes(sum, all_lane_bits);
  if (threadIdx.x % 32 == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (thread == 0) {
    for (int other = 1; other < task.vector_threads / 32; ++other) sum.add(warp_sums[warp + other]);
  }
  return sum;
}

// Finds the vector's scaling. The vector's first thread stores it in `scaling`, unless the vector is padding.
// All threads of the thread block must call it together.
template <ElementKind kind, class Source>
__device__ void find_scaling(const SplitTask& task, int vector, int thread, const Source* row,
                             Scaling& scaling) {
  RangeSum<kind, Source> sum;
  const bool exists = vector < task.vectors;
  if (exists) visit_vector(task, thread, row, [&](const auto& x) { sum.add(x); });
  sum = whole_sum(task, thread, sum);
  if (exists && thread == 0) scaling = finish_range(task, kind_of<kind>(task), vector, sum.range());
}

// find_scaling() by the vector's norm, which this function finds as well, whatever the elements are.
// `norm_scaling_of_vector` is shared memory for the vector.
template <class Source>
__device__ __noinline__ void find_general_scaling_by_norms(const SplitTask& task, int vector, int thread,
                                                           const Source* row, Scaling& scaling,
                                                           TwoFactors& norm_scaling_of_vector) {
  MagnitudesAndExponents<Source> sum;
  const bool exists = vector < task.vectors;
  if (exists) visit_vector(task, thread, row, [&](const auto& x) { sum.add(x); });
  sum = whole_sum(task, thread, sum);
  if (thread == 0) norm_scaling_of_vector = norm_scaling(sum.range());
  __syncthreads();
  const TwoFactors& norms = norm_scaling_of_vector;
  NormSums norm_sums;
  if (exists) {
    visit_vector(task, thread, row, [&](const auto& x) {
#pragma unroll
      for (const Source element : x) norm_sums.add(element, norms);
    });
  }
  norm_sums = whole_sum(task, thread, norm_sums);
  if (exists && thread == 0) scaling = finish_norm(task, vector, sum.range(), norm_sums.norm(task.length));
}

// Adds this warp's words to those of its vector in shared memory, which begin at zero.
__device__ inline void add_extremes_of_warp(const UpperSums& sums, VectorWords& words) {
  const std::uint32_t largest = __reduce_max_sync(~0U, sums.largest);
  const std::uint32_t complement = __reduce_max_sync(~0U, sums.complement());
  const unsigned lane = threadIdx.x % 32;
  if (lane < 2) atomicMax(&words.extremes[lane], lane == 0 ? largest : complement);
}
__device__ inline void add_words_of_warp(const UpperSums& sums, const IntegerSums& integers,
                                         VectorWords& words) {
  std::uint32_t added[vector_words];
  get_words(sums, integers.squares, integers.magnitudes, added);
  std::uint32_t mine = 0;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < vector_words; ++i) {
    const std::uint32_t word = __reduce_add_sync(~0U, added[i]);
    if (lane == i) mine = word;
  }
  if (lane < vector_words) atomicAdd(&words.words[lane], mine);
}

// find_scaling() by the vector's norm, which this function finds as well. `vector_words` is shared memory for
// the vector, cleared.
template <class Source>
__device__ void find_scaling_by_norms(const SplitTask& task, int vector, int thread, const Source* row,
                                      Scaling& scaling, VectorWords& words) {
  UpperSums sums;
  const bool exists = vector < task.vectors;
  if (exists) visit_vector_by_groups<true>(task, thread, row, [&](const auto& x) { sums.add(x); });
  __syncthreads();  // the words are cleared
  add_extremes_of_warp(sums, words);
  __syncthreads();
  const double factor = words.factor<double>();
  IntegerSums integers;
  if (exists) {
    visit_vector_by_groups<false>(task, thread, row, [&](const auto& x) {
#pragma unroll
      for (const Source element : x) integers.add(element, factor);
    });
  }
  add_words_of_warp(sums, integers, words);
  if (__syncthreads_or(words.is_general<double>() ? 1 : 0) != 0) {
    __shared__ TwoFactors norm_scalings[rows_threads / 32];
    return find_general_scaling_by_norms(task, vector, thread, row, scaling,
                                         norm_scalings[threadIdx.x / task.vector_threads]);
  }
  if (!exists || thread != 0) return;
  const auto numbers = static_cast<std::uint32_t>(task.vector_stride);
  scaling = finish_norm(task, vector, words.magnitudes<double>(numbers).range(),
                        words.norm_sums<double>(numbers).norm(task.length));
}

// Writes the slices of the vector, unless they will not be used.
template <ElementKind kind, class Source>
__device__ void write_vector(const SplitTask& task, const Scaling& scaling, std::int64_t vector, int thread,
                             const Source* row) {
  if (scaling.left_out) return;
  const VectorWriter<kind> writer(task, scaling, vector);
  const int stride = static_cast<int>(task.vector_stride);
  for (int p = thread * elements_per_write; p < stride; p += task.vector_threads * elements_per_write)
    writer.template write<elements_per_write, /*step=*/1, /*aligned=*/true>(row + p, p);
}

// Writes zeros to the slices of a vector of padding.
__device__ inline void clear_vector(const SplitTask& task, std::int64_t vector, int thread) {
  for (std::int64_t p = thread * elements_per_write; p < task.vector_stride;
       p += task.vector_threads * elements_per_write)
    write_zeros<elements_per_write>(task, vector * task.vector_stride + p);
}

}  // namespace rows

// Splits the vectors of a thread block; `block` counts the thread blocks of the task.
template <class Source, ElementKind kind>
__device__ void split_rows(const SplitTask& task, std::int64_t block) {
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[rows_threads / 32];
  const int v = static_cast<int>(threadIdx.x) / task.vector_threads;  // vector of the thread block
  const int thread = static_cast<int>(threadIdx.x) - v * task.vector_threads;
  const auto vector = static_cast<int>(block) * (static_cast<int>(blockDim.x) / task.vector_threads) + v;
  const bool exists = vector < task.vectors;  // else it is padding
  Source* row = reinterpret_cast<Source*>(memory) + v * static_cast<int>(task.vector_stride);
  if (exists) {
    const Source* source = matrix_start<Source>(task) + (task.first + vector) * task.matrix.row_stride;
    rows::start_loading_vector(source, task, thread, row);
  }
  if constexpr (kind == ElementKind::residues_by_norms) {
    __shared__ VectorWords words[rows_threads / 32];
    if (thread == 0) words[v] = {};
    rows::find_scaling_by_norms(task, vector, thread, row, scalings[v], words[v]);
  } else {
    await_copies();
    rows::find_scaling<kind>(task, vector, thread, row, scalings[v]);
  }
  __syncthreads();
  if (exists) {
    with_kind_of<kind>(
        task, [&](auto known) { rows::write_vector<known>(task, scalings[v], vector, thread, row); });
  } else {
    rows::clear_vector(task, vector, thread);
  }
}

}  // namespace kintsugi::core::cuda
