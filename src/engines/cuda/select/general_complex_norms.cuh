// Ranges and norms of any vectors of complex elements, special values and subnormal numbers included. Few
// vectors need this: complex_norms.cu finds those of the others.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/select/norm_sums.cuh"
#include "engines/cuda/select/ranges_task.hpp"

namespace kintsugi::core::cuda {

// Sums over a row or column of complex elements, from which the ranges of its real vectors follow. These have
// the same numbers, but imaginary parts of either sign (base/embedding.hpp).
template <class T>
struct ComplexSum {
  MagnitudesAndExponents<T> numbers;  // its flags are those of real parts
  std::uint32_t imaginary_flags = 0;

  __device__ void add(const T (&x)[2]) {
    const auto magnitude = std::bit_cast<typename Magnitudes<T>::Bits>(x[1]) & Magnitudes<T>::without_sign;
    if (magnitude < Magnitudes<T>::infinity) {
      numbers.add(x);
      return;
    }
    numbers.add(x[0]);
    VectorRange special;
    extend(special, x[1]);
    imaginary_flags |= special.flags & ~static_cast<std::uint32_t>(VectorRange::all_zero);
  }
  __device__ void add(const ComplexSum& other) {
    numbers.add(other.numbers);
    imaginary_flags |= other.imaginary_flags;
  }

  // Flags that imaginary parts give to the real vector in which they have their sign or, if `negated`, the
  // other one.
  __device__ std::uint32_t flags_of_imaginary_parts(bool negated) const {
    const std::uint32_t plus = imaginary_flags & VectorRange::has_plus_infinity;
    const std::uint32_t minus = imaginary_flags & VectorRange::has_minus_infinity;
    static_assert(VectorRange::has_minus_infinity == 2 * VectorRange::has_plus_infinity);
    return (imaginary_flags & VectorRange::has_nan) | (negated ? plus * 2 | minus / 2 : plus | minus);
  }
};

template <class T>
__device__ void add_over_lanes(ComplexSum<T>& sum, unsigned lane_bits) {
  cuda::add_over_lanes(sum.numbers, lane_bits);
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) != 0) sum.imaginary_flags |= __shfl_xor_sync(~0U, sum.imaginary_flags, lane);
  }
}

// A row or column of complex elements of a batch item.
struct ComplexVector {
  const RangesTask& task;
  std::int64_t item;  // counted from the launch's first item
  std::int64_t vector;

  // Index of its first real vector among all real vectors of the launch's items.
  __device__ std::int64_t first_real_vector() const {
    return item * task.matrix.vectors() + (task.matrix.right ? 2 : 1) * vector;
  }

  // Stores the ranges of the real vectors that stand for the row or column.
  template <class T>
  __device__ void store_ranges(const ComplexSum<T>& sum) const {
    const DeviceMatrix& matrix = task.matrix;
    VectorRange* ranges = task.ranges + first_real_vector();
    VectorRange range = sum.numbers.range();
    const std::uint32_t flags = range.flags;
    range.flags = flags | sum.flags_of_imaginary_parts(matrix.conjugated != matrix.right);
    ranges[0] = range;
    if (!matrix.right) return;
    range.flags = flags | sum.flags_of_imaginary_parts(matrix.conjugated);
    ranges[1] = range;
  }
  __device__ void store_norm(const NormSums& sums) const {
    const VectorNorm norm = sums.norm(task.matrix.length());
    VectorNorm* norms = task.norms + first_real_vector();
    norms[0] = norm;
    if (task.matrix.right) norms[1] = norm;
  }
};

// Adds up the sums of the thread block's warps. All threads get the result.
template <class Sum>
__device__ Sum add_over_block(Sum sum) {
  constexpr int warps = complex_norms_threads / 32;
  __shared__ Sum warp_sums[warps];
  add_over_lanes(sum, all_lane_bits);
  __syncthreads();  // the sums of an earlier call are read
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  Sum total;
#pragma unroll 1
  for (const Sum& each : warp_sums) total.add(each);
  return total;
}

// Finds and stores range and norm of a vector by all threads of the thread block. They read it twice.
template <class T>
__device__ __noinline__ void find_general_norm(const ComplexVector& vector) {
  const DeviceMatrix& matrix = vector.task.matrix;
  const auto* elements = matrix_start<std::complex<T>>(matrix, vector.task.item + vector.item);
  const T* start = reinterpret_cast<const T*>(elements + vector.vector * matrix.row_stride);
  ComplexSum<T> sum;
#pragma unroll 1
  for (std::int64_t p = threadIdx.x; p < matrix.columns; p += complex_norms_threads) {
    const T* element = start + 2 * p * matrix.column_stride;
    sum.add({__ldg(element), __ldg(element + 1)});
  }
  sum = add_over_block(sum);
  if (threadIdx.x == 0) vector.store_ranges(sum);
  const TwoFactors scaling = norm_scaling(static_cast<const Magnitudes<T>&>(sum.numbers).range());
  NormSums sums;
#pragma unroll 1
  for (std::int64_t p = threadIdx.x; p < matrix.columns; p += complex_norms_threads) {
    const T* element = start + 2 * p * matrix.column_stride;
    sums.add(__ldg(element), scaling);
    sums.add(__ldg(element + 1), scaling);
  }
  sums = add_over_block(sums);
  if (threadIdx.x == 0) vector.store_norm(sums);
}

}  // namespace kintsugi::core::cuda
