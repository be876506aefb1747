// Sums over vectors of complex elements of any kind, and where their ranges and norms are stored.
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

}  // namespace kintsugi::core::cuda
