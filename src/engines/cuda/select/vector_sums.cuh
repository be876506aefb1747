// Sums over each vector of an operand, in either memory layout.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/select/ranges_task.hpp"

namespace kintsugi::core::cuda {

// A vector read in memory order. For complex elements its numbers are those of the embedding's vector, in
// another order.
template <class T>
struct Line {
  const T* start;
  std::int64_t stride;  // from element to element, in numbers of type T
  bool complex;
  bool negated;  // imaginary parts change their sign

  __device__ T element(std::int64_t p) const {
    if (!complex) return __ldg(start + p * stride);
    const T part = __ldg(start + (p >> 1) * stride + (p & 1));
    return negated && (p & 1) != 0 ? -part : part;
  }
};

template <class T>
__device__ Line<T> line_of(const DeviceMatrix& matrix, std::int64_t item, std::int64_t vector) {
  if (!matrix.complex())
    return {matrix_start<T>(matrix, item) + vector * matrix.row_stride, matrix.column_stride, false, false};
  const auto* start = reinterpret_cast<const T*>(matrix_start<std::complex<T>>(matrix, item));
  const std::int64_t row = matrix.right ? vector >> 1 : vector;
  // A column of B gives two vectors. The even one, for the real parts of C, has -im b; conjugation changes
  // the sign of either.
  const bool even = matrix.right && (vector & 1) == 0;
  return {start + 2 * row * matrix.row_stride, 2 * matrix.column_stride, true, matrix.conjugated != even};
}

namespace vector_detail {

inline constexpr int warps = ranges_threads / 32;
inline constexpr int unrolled = 4;

// Adds elements first, first + step, ... of a vector to `sum`.
template <class T, class Sum>
__device__ void add_elements(const Line<T>& line, std::int64_t first, std::int64_t step, std::int64_t length,
                             Sum& sum) {
  for (std::int64_t begin = first; begin < length; begin += unrolled * step) {
    T x[unrolled];
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      const std::int64_t p = begin + u * step;
      x[u] = p < length ? line.element(p) : T(0);
    }
    sum.add(x);
  }
}

// Sums with one warp per vector.
template <class T, class Task>
__device__ void sum_along_k(const DeviceMatrix& matrix, std::int64_t item, std::int64_t first,
                            const Task& task) {
  for (int v = threadIdx.x / 32; v < ranges_vectors && first + v < matrix.vectors(); v += warps) {
    auto sum = task.begin(first + v);
    add_elements(line_of<T>(matrix, item, first + v), threadIdx.x % 32, 32, matrix.length(), sum);
    task.add_over_lanes(sum, 31);
    if (threadIdx.x % 32 == 0) task.end(first + v, sum);
  }
}

// Sums with neighboring threads on neighboring vectors.
template <class T, class Task>
__device__ void sum_across(const DeviceMatrix& matrix, std::int64_t item, std::int64_t first,
                           const Task& task) {
  using Sum = decltype(task.begin(first));
  __shared__ Sum warp_sums[warps][ranges_vectors];
  const int v = threadIdx.x % ranges_vectors;
  const bool exists = first + v < matrix.vectors();
  Sum sum = task.begin(exists ? first + v : first);
  if (exists) {
    add_elements(line_of<T>(matrix, item, first + v), threadIdx.x / ranges_vectors,
                 ranges_threads / ranges_vectors, matrix.length(), sum);
  }
  task.add_over_lanes(sum, 31 & ~(ranges_vectors - 1));
  if (threadIdx.x % 32 < ranges_vectors) warp_sums[threadIdx.x / 32][v] = sum;
  __syncthreads();
  if (threadIdx.x >= ranges_vectors || !exists) return;
  for (int warp = 1; warp < warps; ++warp) sum.add(warp_sums[warp][v]);
  task.end(first + v, sum);
}

}  // namespace vector_detail

// Sums vectors first ... first + ranges_vectors - 1: each thread adds its share of a vector's elements to a
// sum that begins as task.begin(v), and task.end(v, sum) takes the total. The order of additions depends on k
// and the operand's layout alone.
template <class T, class Task>
__device__ void sum_vectors(const DeviceMatrix& matrix, std::int64_t item, std::int64_t first,
                            const Task& task) {
  if (abs(matrix.column_stride) <= abs(matrix.row_stride)) {
    vector_detail::sum_along_k<T>(matrix, item, first, task);
  } else {
    vector_detail::sum_across<T>(matrix, item, first, task);
  }
}

}  // namespace kintsugi::core::cuda
