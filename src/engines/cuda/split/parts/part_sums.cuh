// Sums over parts of vectors, in either memory layout.
//
// The template parameter Summation defines what is summed. It has
// - a type Sum;
// - begin(v), the empty sum to which a thread adds elements of vector v;
// - add(sum, x), which adds the elements x of one vector;
// - add_each(sums, x), which adds x[i], an element of the i-th of several adjacent vectors, to sums[i];
// - end(v, sum), which gets the sum over one part of vector v;
// - max_adjacent, the largest number of adjacent vectors that a thread sums.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/select/vector_sums.cuh"
#include "engines/cuda/split/parts/range_parts_task.hpp"

namespace kintsugi::core::cuda {

inline constexpr int parts_warps = parts_threads / 32;

// Elements begin ... end - 1 of a vector.
struct VectorPart {
  std::int64_t begin;
  std::int64_t end;

  __device__ VectorPart(const PartsTask& task, std::int64_t part)
      : begin(part * task.part_length), end(min(begin + task.part_length, task.matrix.length())) {}
};

template <class T>
__device__ bool is_aligned(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(uint4) == 0;
}

template <class T, int count>
__device__ void load_aligned(const T* source, T (&x)[count]) {
  static_assert(sizeof x == sizeof(uint4));
  const uint4 bits = __ldg(reinterpret_cast<const uint4*>(source));
  memcpy(x, &bits, sizeof bits);
}

// Adds a warp's part of a vector whose elements are contiguous, sixteen bytes at a time. `start` is the
// vector's first element and must be aligned to sixteen bytes.
template <class T, class Summation>
__device__ void add_aligned(const T* start, const VectorPart& part, const Summation& summation,
                            typename Summation::Sum& sum) {
  constexpr int chunk = sizeof(uint4) / sizeof(T);
  constexpr int unrolled = 4;
  constexpr int step = 32 * chunk;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t p = part.begin + lane * chunk; p < part.end; p += unrolled * step) {
    T x[unrolled][chunk];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const std::int64_t q = p + u * step;
      if (q + chunk <= part.end) {
        load_aligned(start + q, x[u]);
      } else {
#pragma unroll
        for (int i = 0; i < chunk; ++i) x[u][i] = q + i < part.end ? __ldg(start + q + i) : T(0);
      }
    }
#pragma unroll
    for (int u = 0; u < unrolled; ++u) summation.add(sum, x[u]);
  }
}

// Adds a warp's part of any vector, element by element.
template <class T, class Summation>
__device__ void add_line(const Line<T>& line, const VectorPart& part, const Summation& summation,
                         typename Summation::Sum& sum) {
  constexpr int unrolled = 8;
  for (std::int64_t p = part.begin + threadIdx.x % 32; p < part.end; p += unrolled * 32) {
    T x[unrolled];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) x[u] = p + u * 32 < part.end ? line.element(p + u * 32) : T(0);
    summation.add(sum, x);
  }
}

// Along k: each warp sums one part of one vector.
template <class T, class Summation>
__device__ void add_along_k(const PartsTask& task, std::int64_t block, const Summation& summation) {
  const std::int64_t warp_of_launch = block * parts_warps + threadIdx.x / 32;
  if (warp_of_launch >= task.vectors * task.parts_per_vector) return;
  const std::int64_t vector = warp_of_launch / task.parts_per_vector;
  const VectorPart part(task, warp_of_launch % task.parts_per_vector);
  const Line<T> line = line_of<T>(task.matrix, task.item + item_of_block(), task.first + vector);
  typename Summation::Sum sum = summation.begin(vector);
  if (!line.complex && line.stride == 1 && is_aligned(line.start)) {
    add_aligned(line.start, part, summation, sum);
  } else {
    add_line(line, part, summation, sum);
  }
  add_over_lanes(sum, all_lane_bits);
  if (threadIdx.x % 32 == 0) summation.end(vector, sum);
}

// Shared memory of a thread block that reads across k. It has room for one sum per warp and vector.
inline constexpr int max_sum_bytes = 64;
inline constexpr int part_memory_bytes = parts_warps * (parts_strip_bytes / sizeof(float)) * max_sum_bytes;

// Vectors vector ... vector + chunk - 1 of an operand. If chunk is greater than 1, their elements of one
// inner index must be adjacent in memory.
template <class T, int chunk>
struct AdjacentLines {
  const PartsTask& task;
  std::int64_t vector;
  Line<T> line;

  __device__ AdjacentLines(const PartsTask& parts_task, std::int64_t first_vector)
      : task(parts_task), vector(first_vector),
        line(line_of<T>(parts_task.matrix, parts_task.item + item_of_block(),
                        parts_task.first + min(first_vector, parts_task.vectors - 1))) {}

  // Loads the vectors' elements of inner index p, and zeros for vectors that do not exist.
  __device__ void load(std::int64_t p, T (&x)[chunk]) const {
    if constexpr (chunk > 1) {
      if (vector + chunk <= task.vectors) return load_aligned(line.start + p * line.stride, x);
#pragma unroll
      for (int i = 0; i < chunk; ++i)
        x[i] = vector + i < task.vectors ? __ldg(line.start + p * line.stride + i) : T(0);
    } else {
      x[0] = vector < task.vectors ? line.element(p) : T(0);
    }
  }
};

// Across k: each thread block sums one part of all vectors of a strip. Neighboring threads have neighboring
// vectors.
template <class T, int chunk, class Summation>
__device__ void add_across(const PartsTask& task, std::int64_t block, const Summation& summation,
                           std::byte* memory) {
  constexpr int width = parts_strip_bytes / sizeof(T);
  constexpr int lanes = width / chunk;  // threads that read a line
  constexpr int lines = parts_threads / lanes;
  constexpr int unrolled = 4;
  using Sum = typename Summation::Sum;
  static_assert(sizeof(Sum) <= max_sum_bytes);
  auto& warp_sums = *reinterpret_cast<Sum(*)[parts_warps][width]>(memory);
  const std::int64_t strips = (task.vectors + width - 1) / width;
  const VectorPart part(task, block / strips);
  const std::int64_t first_vector = block % strips * width;  // of the strip
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % lanes * chunk;
  const AdjacentLines<T, chunk> vectors(task, first_vector + lane);
  Sum sums[chunk];
#pragma unroll
  for (int i = 0; i < chunk; ++i) sums[i] = summation.begin(min(first_vector + lane + i, task.vectors - 1));
  for (std::int64_t p = part.begin + thread / lanes; p < part.end; p += unrolled * lines) {
    T x[unrolled][chunk] = {};
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      if (p + u * lines < part.end) vectors.load(p + u * lines, x[u]);
    }
#pragma unroll
    for (int u = 0; u < unrolled; ++u) summation.add_each(sums, x[u]);
  }
#pragma unroll
  for (int i = 0; i < chunk; ++i) {
    add_over_lanes(sums[i], all_lane_bits & ~(lanes - 1U));  // over the lanes that have the same vectors
    if (thread % 32 < lanes) warp_sums[thread / 32][lane + i] = sums[i];
  }
  __syncthreads();
  if (thread >= width || first_vector + thread >= task.vectors) return;
  Sum sum = warp_sums[0][thread];
#pragma unroll 1
  for (int warp = 1; warp < parts_warps; ++warp) sum.add(warp_sums[warp][thread]);
  summation.end(first_vector + thread, sum);
}

// Sums the elements that thread block `block` of the operand must read. Like sum_vectors(), it reads along k
// or across k, whichever has the smaller stride. `memory` is shared memory of part_memory_bytes.
template <class T, class Summation>
__device__ void add_part(const PartsTask& task, std::int64_t block, const Summation& summation,
                         std::byte* memory) {
  const DeviceMatrix& matrix = task.matrix;
  if (abs(matrix.column_stride) <= abs(matrix.row_stride)) return add_along_k<T>(task, block, summation);
  constexpr int chunk = Summation::max_adjacent;
  const bool reads_lines = chunk > 1 && !matrix.complex() && matrix.row_stride == 1 &&
                           matrix.column_stride % chunk == 0 &&
                           is_aligned(matrix_start<T>(matrix, task.item + item_of_block()) + task.first);
  if (reads_lines) {
    add_across<T, chunk>(task, block, summation, memory);
  } else {
    add_across<T, 1>(task, block, summation, memory);
  }
}

}  // namespace kintsugi::core::cuda
