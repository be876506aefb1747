// Sums from which ranges and norms of vectors are found, and their addition over lanes.
#pragma once

#include <bit>
#include <limits>

#include "arith/residue/norm_proof.hpp"
#include "engines/cuda/common/operands.cuh"

namespace kintsugi::core::cuda {

// Magnitudes, number of finite non-zero elements, and sum of their biased exponents. Magnitudes is a base
// class, so that `elements` fills its padding. Otherwise messages between thread blocks would be twice as
// long.
template <class T>
struct MagnitudesAndExponents : Magnitudes<T> {
  using Bits = typename Magnitudes<T>::Bits;
  static constexpr int digits = std::numeric_limits<T>::digits;

  std::uint32_t elements = 0;
  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> exponents = 0;

  template <int count>
  __device__ void add(const T (&x)[count]) {
    const bool all_finite = Magnitudes<T>::add(x);
#pragma unroll
    for (int i = 0; i < count; ++i) add_exponent(x[i], all_finite);
  }
  __device__ void add(T x) {
    Magnitudes<T>::add(x);
    constexpr bool is_known_finite = false;
    add_exponent(x, is_known_finite);
  }
  // Adds x[i], an element of the i-th of several adjacent vectors, to sums[i].
  template <int count>
  __device__ static void add_each(MagnitudesAndExponents (&sums)[count], const T (&x)[count]) {
    Magnitudes<T> magnitudes[count];
#pragma unroll
    for (int i = 0; i < count; ++i) magnitudes[i] = sums[i];
    const bool all_finite = Magnitudes<T>::add_each(magnitudes, x);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      static_cast<Magnitudes<T>&>(sums[i]) = magnitudes[i];
      sums[i].add_exponent(x[i], all_finite);
    }
  }
  __device__ void add(const MagnitudesAndExponents& other) {
    Magnitudes<T>::add(static_cast<const Magnitudes<T>&>(other));
    elements += other.elements;
    exponents += other.exponents;
  }

  // Range of the vector, with its number of elements and its depth if 32 bits hold the depth.
  __device__ VectorRange range() const {
    VectorRange result = Magnitudes<T>::range();
    set_depth<T>(result, elements, exponents);
    return result;
  }

 private:
  // Adds an element's biased exponent, and 1 to the number of elements. A zero adds nothing to either. With
  // `is_known_finite` the test for NaN and infinities is left out.
  __device__ void add_exponent(T x, bool is_known_finite) {
    const Bits magnitude = std::bit_cast<Bits>(x) & Magnitudes<T>::without_sign;
    if (!is_known_finite && magnitude >= Magnitudes<T>::infinity) return;
    exponents += magnitude >> (digits - 1);
    elements += static_cast<std::uint32_t>((magnitude + Magnitudes<T>::without_sign) >> (8 * sizeof(T) - 1));
  }
};
static_assert(sizeof(MagnitudesAndExponents<double>) == 32);

// Sum from which the split of a kind of element finds a vector's range.
template <ElementKind kind, class T>
using RangeSum =
    std::conditional_t<kind == ElementKind::fp16_with_depth, MagnitudesAndExponents<T>, Magnitudes<T>>;

// Adds up sums over the lanes of a warp whose numbers differ in `lane_bits` only. All of these lanes get the
// result.
template <class T>
__device__ void add_over_lanes(MagnitudesAndExponents<T>& sum, unsigned lane_bits) {
  add_over_lanes(static_cast<Magnitudes<T>&>(sum), lane_bits);
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) == 0) continue;
    sum.exponents += __shfl_xor_sync(~0U, sum.exponents, lane);
    sum.elements += __shfl_xor_sync(~0U, sum.elements, lane);
  }
}
__device__ inline void add_over_lanes(NormSums& sums, unsigned lane_bits) {
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) == 0) continue;
    const NormSums other{
        __shfl_xor_sync(~0U, sums.squares, lane), __shfl_xor_sync(~0U, sums.magnitudes, lane),
        __shfl_xor_sync(~0U, sums.logarithms, lane), __shfl_xor_sync(~0U, sums.elements, lane)};
    sums.add(other);
  }
}

}  // namespace kintsugi::core::cuda
