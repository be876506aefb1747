// Sums over the vectors of an operand, whole or in parts, in either memory layout.
//
// The template parameter Summation defines what is summed. It has
// - a type Sum, which adds other sums by add(sum), and for which there is add_over_lanes(sum, lane_bits);
// - begin(v), the empty sum to which a thread adds elements of vector v;
// - add(sum, x), which adds the elements x of one vector;
// - end(v, sum), which gets the sum over vector v or a part of it;
// - max_adjacent, the largest number of adjacent vectors that a thread sums. If it is 0, the order of
//   additions depends only on k and on which way the operand is read, not on its alignment.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/select/ranges_task.hpp"

namespace kintsugi::core::cuda {

// A real vector of an operand, read in memory order. For complex elements it has the same numbers as the
// embedding's vector (base/embedding.hpp), but in another order.
template <class T>
struct Line {
  const T* start;
  std::int64_t stride;  // distance of elements, in numbers of type T
  bool complex;
  bool negated;  // true: imaginary parts change their sign

  // Returns the p-th number of the vector.
  __device__ T element(std::int64_t p) const {
    if (!complex) return __ldg(start + p * stride);
    const T part = __ldg(start + (p >> 1) * stride + (p & 1));
    return negated && (p & 1) != 0 ? -part : part;
  }
};

// Vector `vector` of a batch item's operand.
template <class T>
__device__ Line<T> line_of(const DeviceMatrix& matrix, std::int64_t item, std::int64_t vector) {
  if (!matrix.complex()) {
    return {.start = matrix_start<T>(matrix, item) + vector * matrix.row_stride,
            .stride = matrix.column_stride,
            .complex = false,
            .negated = false};
  }
  const auto* start = reinterpret_cast<const T*>(matrix_start<std::complex<T>>(matrix, item));
  const std::int64_t row = matrix.right ? vector >> 1 : vector;
  // A column of B gives two vectors: an even one with -im b for the real parts of C, and an odd one with im
  // b. Conjugation changes both signs.
  const bool gives_real_part = matrix.right && (vector & 1) == 0;
  return {.start = start + 2 * row * matrix.row_stride,
          .stride = 2 * matrix.column_stride,
          .complex = true,
          .negated = matrix.conjugated != gives_real_part};
}

namespace vector_sums {

constexpr int warps = vectors_threads / 32;

// True if vectors are read along k: that is the smaller stride.
__device__ inline bool is_along_k(const DeviceMatrix& matrix) {
  return abs(matrix.column_stride) <= abs(matrix.row_stride);
}

// Vectors that a thread block sums, if they are not divided.
template <class T>
__device__ std::int64_t vectors_of_block(const VectorsTask& task) {
  return is_along_k(task.matrix) ? warps : vectors_strip_bytes / static_cast<std::int64_t>(sizeof(T));
}

// Elements begin ... end - 1 of a vector.
struct Part {
  std::int64_t begin;
  std::int64_t end;

  __device__ Part(const VectorsTask& task, std::int64_t index)
      : begin(index * task.part_length), end(min(begin + task.part_length, task.matrix.length())) {}
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
__device__ void add_aligned(const T* start, const Part& part, const Summation& summation,
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
__device__ void add_line(const Line<T>& line, const Part& part, const Summation& summation,
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
__device__ void sum_along_k(const VectorsTask& task, std::int64_t block, const Summation& summation) {
  const std::int64_t warp_of_launch = block * warps + threadIdx.x / 32;
  if (warp_of_launch >= task.vectors * task.parts_per_vector) return;
  const std::int64_t vector = warp_of_launch / task.parts_per_vector;
  const Part part(task, warp_of_launch % task.parts_per_vector);
  const Line<T> line = line_of<T>(task.matrix, task.item + item_of_block(), task.first + vector);
  typename Summation::Sum sum = summation.begin(vector);
  if (Summation::max_adjacent > 0 && !line.complex && line.stride == 1 && is_aligned(line.start)) {
    add_aligned(line.start, part, summation, sum);
  } else {
    add_line(line, part, summation, sum);
  }
  add_over_lanes(sum, all_lane_bits);
  if (threadIdx.x % 32 == 0) summation.end(vector, sum);
}

// Shared memory of a thread block that reads across k. It has room for one sum per warp and vector.
constexpr int max_sum_bytes = 64;
constexpr int memory_bytes = warps * (vectors_strip_bytes / sizeof(float)) * max_sum_bytes;

// Vectors vector ... vector + chunk - 1 of an operand. If chunk is greater than 1, their elements of one
// inner index must be adjacent in memory.
template <class T, int chunk>
struct AdjacentLines {
  const VectorsTask& task;
  std::int64_t vector;
  Line<T> line;

  __device__ AdjacentLines(const VectorsTask& vectors_task, std::int64_t first_vector)
      : task(vectors_task), vector(first_vector),
        line(line_of<T>(vectors_task.matrix, vectors_task.item + item_of_block(),
                        vectors_task.first + min(first_vector, vectors_task.vectors - 1))) {}

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
__device__ void sum_across(const VectorsTask& task, std::int64_t block, const Summation& summation,
                           std::byte* memory) {
  constexpr int width = vectors_strip_bytes / sizeof(T);
  constexpr int lanes = width / chunk;  // threads that read a line
  constexpr int lines = vectors_threads / lanes;
  constexpr int unrolled = chunk == 4 ? 3 : 4;  // registers hold no more sums and elements
  using Sum = typename Summation::Sum;
  static_assert(sizeof(Sum) <= max_sum_bytes);
  auto& warp_sums = *reinterpret_cast<Sum(*)[warps][width]>(memory);
  const std::int64_t strips = (task.vectors + width - 1) / width;
  const Part part(task, block / strips);
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
  for (int warp = 1; warp < warps; ++warp) sum.add(warp_sums[warp][thread]);
  summation.end(first_vector + thread, sum);
}

}  // namespace vector_sums

// Sums the elements that thread block `block` of the operand must read: along k or across k. `memory` is
// shared memory of vector_sums::memory_bytes.
template <class T, class Summation>
__device__ void sum_vectors(const VectorsTask& task, std::int64_t block, const Summation& summation,
                            std::byte* memory) {
  const DeviceMatrix& matrix = task.matrix;
  if (vector_sums::is_along_k(matrix)) return vector_sums::sum_along_k<T>(task, block, summation);
  constexpr int chunk = Summation::max_adjacent;
  if constexpr (chunk > 1) {
    const bool reads_lines =
        !matrix.complex() && matrix.row_stride == 1 && matrix.column_stride % chunk == 0 &&
        vector_sums::is_aligned(matrix_start<T>(matrix, task.item + item_of_block()) + task.first);
    if (reads_lines) return vector_sums::sum_across<T, chunk>(task, block, summation, memory);
  }
  vector_sums::sum_across<T, 1>(task, block, summation, memory);
}

// Calls sum(task, block, memory) with the task of this thread block, the block's index within it, and shared
// memory for sum_vectors().
template <class Sum>
__device__ void with_task(const VectorsTasks& tasks, std::int64_t block, const Sum& sum) {
  __shared__ __align__(sizeof(uint4)) std::byte memory[vector_sums::memory_bytes];
  const bool is_of_second_task = block >= tasks.task[0].blocks;
  if (is_of_second_task) block -= tasks.task[0].blocks;
  sum(tasks.task[is_of_second_task ? 1 : 0], block, memory);
}

__device__ inline bool is_fp64(const VectorsTask& task) {
  return task.matrix.type == ElementType::f64 || task.matrix.type == ElementType::c64;
}

}  // namespace kintsugi::core::cuda
