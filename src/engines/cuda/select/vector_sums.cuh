// Sums over each vector of an operand, in either memory layout.
//
// The template parameter Summation defines what is summed. It has
// - begin(v), the empty sum to which a thread adds elements of vector v; the sum's type has add(x) for
//   several elements and add(sum) for another sum;
// - add_over_lanes(sum, lane_bits), which adds sums over the lanes whose numbers differ in these bits only;
// - end(v, sum), which gets the sum over all of vector v.
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

// Sums vectors whose elements are adjacent in memory. Each vector is summed by one warp.
template <class T, class Summation>
__device__ void sum_along_k(const DeviceMatrix& matrix, std::int64_t item, std::int64_t first,
                            const Summation& summation) {
  for (int v = threadIdx.x / 32; v < ranges_vectors && first + v < matrix.vectors(); v += warps) {
    auto sum = summation.begin(first + v);
    add_elements(line_of<T>(matrix, item, first + v), threadIdx.x % 32, 32, matrix.length(), sum);
    summation.add_over_lanes(sum, all_lane_bits);
    if (threadIdx.x % 32 == 0) summation.end(first + v, sum);
  }
}

// Sums vectors that are adjacent in memory. Neighboring threads have neighboring vectors.
template <class T, class Summation>
__device__ void sum_across(const DeviceMatrix& matrix, std::int64_t item, std::int64_t first,
                           const Summation& summation) {
  using Sum = decltype(summation.begin(first));
  __shared__ Sum warp_sums[warps][ranges_vectors];
  const int v = threadIdx.x % ranges_vectors;
  const bool exists = first + v < matrix.vectors();
  Sum sum = summation.begin(exists ? first + v : first);
  if (exists) {
    add_elements(line_of<T>(matrix, item, first + v), threadIdx.x / ranges_vectors,
                 ranges_threads / ranges_vectors, matrix.length(), sum);
  }
  summation.add_over_lanes(sum,
                           all_lane_bits & ~(ranges_vectors - 1));  // over lanes that have the same vector
  if (threadIdx.x % 32 < ranges_vectors) warp_sums[threadIdx.x / 32][v] = sum;
  __syncthreads();
  if (threadIdx.x >= ranges_vectors || !exists) return;
  for (int warp = 1; warp < warps; ++warp) sum.add(warp_sums[warp][v]);
  summation.end(first + v, sum);
}

}  // namespace vector_detail

// Sums vectors first ... first + ranges_vectors - 1. One thread block calls it. The order of additions
// depends only on k and the operand's layout.
template <class T, class Summation>
__device__ void sum_vectors(const DeviceMatrix& matrix, std::int64_t item, std::int64_t first,
                            const Summation& summation) {
  if (abs(matrix.column_stride) <= abs(matrix.row_stride)) {
    vector_detail::sum_along_k<T>(matrix, item, first, summation);
  } else {
    vector_detail::sum_across<T>(matrix, item, first, summation);
  }
}

}  // namespace kintsugi::core::cuda
