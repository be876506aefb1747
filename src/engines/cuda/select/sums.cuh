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
  __device__ VectorRange range_without_depth() const { return Magnitudes<T>::range(); }

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

// Sums from which ranges and norms of vectors follow, in few instructions: nearly all of them have 32 bits,
// and the first pass over the numbers finds the logarithms that the norm needs. They hold for vectors of
// zeros and normal numbers (is_general()).

// Leading 32 bits of the magnitude of a number of type T. In FP64 the last of them is also set if one of the
// bits after them is: then rounding up gives the integers of the number itself, since a norm's integers have
// fewer bits.
template <class T>
struct Head {
  static constexpr int shift = sizeof(T) == 8 ? 20 : 23;  // the bits below are the significand
  static constexpr int bias = sizeof(T) == 8 ? 1023 : 127;
  static constexpr std::uint32_t infinity = sizeof(T) == 8 ? 0x7ff00000U : 0x7f800000U;
  static constexpr std::uint32_t normal = 1U << shift;            // that of the least normal number
  static constexpr int most_scale = sizeof(T) == 8 ? 1000 : 127;  // 2^most_scale is a normal number

  std::uint32_t bits;
  std::uint32_t upper;  // upper half of the magnitude in FP64; for FP32 less than that by a constant

  __device__ explicit Head(double x) : upper(static_cast<std::uint32_t>(__double2hiint(x)) & 0x7fffffffU) {
    bits = upper | min(static_cast<std::uint32_t>(__double2loint(x)), 1U);
  }
  __device__ explicit Head(float x) : bits(__float_as_uint(x) & 0x7fffffffU), upper(bits >> 3) {}
};

// The magnitude with these leading bits, times `factor` and rounded up.
template <class T>
__device__ std::uint32_t scaled_above(std::uint32_t head, T factor) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<std::uint32_t>(
        __double2loint(__fma_ru(__hiloint2double(static_cast<int>(head), 0), factor, 0x1p52)));
  } else {
    constexpr std::uint32_t units = 0x4b000000;  // bits of 2^23
    return __float_as_uint(__fmaf_ru(__uint_as_float(head), factor, 0x1p23F)) - units;
  }
}

// Words of the sums over a vector that are added. A thread adds at most 2^12 numbers, a vector has at most
// 2^19 beside zeros.
enum VectorWord : int {
  exponent_word,     // biased exponents
  significand_word,  // lower 16 bits of threads' sums of 20 leading bits of significands; the others follow
  zeros_word = 3,
  squares_word,         // lower 20 bits of threads' sums of squares; the others follow
  magnitudes_word = 6,  // lower 16 bits of threads' sums of magnitudes; the others follow
  vector_words = 8
};

// Sums over a vector.
struct VectorWords {
  std::uint32_t extremes[2] =
      {};  // largest head; complement of the least head of a non-zero number, less one
  std::uint32_t words[vector_words] = {};

  __device__ std::uint32_t largest() const { return extremes[0]; }
  __device__ std::uint32_t smallest() const { return ~extremes[1] + 1; }
  // Exponent of the factor of a norm's integers, for a vector that is not zero.
  template <class T>
  __device__ int scale() const {
    return norm_digits + Head<T>::bias - static_cast<int>(largest() >> Head<T>::shift);
  }
  // True if the sums do not hold: for vectors with special values, subnormal numbers, or numbers that become
  // subnormal when they are scaled.
  template <class T>
  __device__ bool is_general() const {
    if (largest() == 0) return false;
    if (largest() >= Head<T>::infinity || smallest() < Head<T>::normal) return true;
    if (scale<T>() > Head<T>::most_scale) return true;
    return sizeof(T) == 8 && static_cast<int>(smallest() >> Head<T>::shift) + scale<T>() < 1;
  }
  // Factor of a norm's integers; 1 where no such factor is needed.
  template <class T>
  __device__ T factor() const {
    if (largest() == 0 || is_general<T>()) return 1;
    const auto upper = static_cast<std::uint32_t>(Head<T>::bias + scale<T>()) << Head<T>::shift;
    if constexpr (sizeof(T) == 8) {
      return __hiloint2double(static_cast<int>(upper), 0);
    } else {
      return __uint_as_float(upper);
    }
  }

  // `numbers` counts those that were added, zeros included.
  template <class T>
  __device__ MagnitudesAndExponents<T> magnitudes(std::uint32_t numbers) const {
    using Bits = typename Magnitudes<T>::Bits;
    constexpr int shift = 8 * (sizeof(T) - sizeof(std::uint32_t));
    MagnitudesAndExponents<T> result;
    if (largest() == 0) return result;
    result.largest = static_cast<Bits>(largest()) << shift;
    result.smallest_minus_1 = (static_cast<Bits>(smallest()) << shift) - 1;
    result.elements = numbers - words[zeros_word];
    result.exponents = words[exponent_word];
    return result;
  }
  template <class T>
  __device__ NormSums norm_sums(std::uint32_t numbers) const {
    const auto joined = [&](int word, int shift) {
      return words[word] + (static_cast<std::uint64_t>(words[word + 1]) << shift);
    };
    const std::uint32_t elements = numbers - words[zeros_word];
    if (elements == 0) return {};
    constexpr int upper_bias = sizeof(T) == 8 ? 0 : 1023 - 127;
    const std::int64_t raised = std::int64_t{upper_bias + scale<T>()} * elements + words[exponent_word];
    return {joined(squares_word, 20), joined(magnitudes_word, 16),
            joined(significand_word, 16) + (static_cast<std::uint64_t>(raised) << 20), elements};
  }
};

// Sums of a thread over its numbers of a vector.
template <class T>
struct HeadSums {
  std::uint32_t largest = 0;
  std::uint32_t smallest_minus_1 = ~0U;
  std::uint32_t exponents = 0;
  std::uint32_t uppers = 0;  // modulo 2^32
  std::uint32_t zeros = 0;

  __device__ void add(const Head<T>& head) {
    largest = max(largest, head.bits);
    const std::uint32_t minus_1 = head.bits - 1;
    smallest_minus_1 = min(smallest_minus_1, minus_1);
    exponents += head.bits >> Head<T>::shift;
    uppers += head.upper;
    zeros += minus_1 >> 31;
  }
  // Sum of the 20 leading bits of the numbers' significands.
  __device__ std::uint32_t significands() const { return uppers - (exponents << 20); }
};

// Words that a thread adds to a vector's.
template <class Sums>
__device__ void get_words(const Sums& sums, std::uint64_t squares, std::uint32_t magnitudes,
                          std::uint32_t* words) {
  words[exponent_word] = sums.exponents;
  words[significand_word] = sums.significands() & 0xffffU;
  words[significand_word + 1] = sums.significands() >> 16;
  words[zeros_word] = sums.zeros;
  words[squares_word] = static_cast<std::uint32_t>(squares) & 0xfffffU;
  words[squares_word + 1] = static_cast<std::uint32_t>(squares >> 20);
  words[magnitudes_word] = magnitudes & 0xffffU;
  words[magnitudes_word + 1] = magnitudes >> 16;
}

// Reductions over the lanes of a warp whose numbers differ in `lane_bits` only. All of these lanes get the
// result.
template <class Operation>
__device__ std::uint32_t over_lanes(std::uint32_t x, unsigned lane_bits, const Operation& operation) {
  for (unsigned lane = 1; lane < 32; lane <<= 1) {
    if ((lane_bits & lane) != 0) x = operation(x, __shfl_xor_sync(~0U, x, lane));
  }
  return x;
}
__device__ inline std::uint32_t sum_over_lanes(std::uint32_t x, unsigned lane_bits) {
  if (lane_bits == all_lane_bits) return __reduce_add_sync(~0U, x);
  return over_lanes(x, lane_bits, [](std::uint32_t a, std::uint32_t b) { return a + b; });
}
__device__ inline std::uint32_t max_over_lanes(std::uint32_t x, unsigned lane_bits) {
  if (lane_bits == all_lane_bits) return __reduce_max_sync(~0U, x);
  return over_lanes(x, lane_bits, [](std::uint32_t a, std::uint32_t b) { return max(a, b); });
}

// The same for FP64 numbers in shared memory.

// Sums of a thread over its numbers of a vector. If one of the numbers is subnormal, infinite or NaN, so is
// one of the extremes, and the sums do not hold.
struct UpperSums {
  static constexpr std::uint32_t normal = Head<double>::normal;

  std::uint32_t largest = 0;     // upper half of the largest magnitude
  std::uint32_t smallest = ~0U;  // of the smallest one that is not zero
  std::uint32_t exponents = 0;
  std::uint32_t uppers = 0;  // modulo 2^32
  std::uint32_t zeros = 0;

  __device__ static std::uint32_t upper_of(double x) {
    return static_cast<std::uint32_t>(__double2hiint(x)) & 0x7fffffffU;
  }

  // Adds numbers. Where one is zero or subnormal, all are looked at again.
  template <int count>
  __device__ void add(const double (&x)[count]) {
    std::uint32_t least = ~0U;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      add_upper(upper_of(x[i]));
      least = min(least, upper_of(x[i]));
    }
    if (least >= normal) {
      smallest = min(smallest, least);
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) add_small(x[i]);
    }
  }

  // Sum of the 20 leading bits of the numbers' significands.
  __device__ std::uint32_t significands() const { return uppers - (exponents << Head<double>::shift); }
  // The largest head, and the complement of the least head less one, as in VectorWords.
  __device__ std::uint32_t complement() const { return smallest == ~0U ? 0 : ~(smallest - 1); }

 private:
  __device__ void add_upper(std::uint32_t upper) {
    largest = max(largest, upper);
    exponents += upper >> Head<double>::shift;
    uppers += upper;
  }
  // Adds what only depends on numbers that may be zero or subnormal. The latter make `smallest` small.
  __device__ void add_small(double x) {
    if (x == 0) {
      ++zeros;
    } else {
      const std::uint32_t upper = max(upper_of(x), 1U);
      smallest = min(smallest, upper);
      largest = max(largest, upper);  // else a vector of such numbers would count as zero
    }
  }
};

// Sums of a thread over the integers of a norm.
struct IntegerSums {
  std::uint64_t squares = 0;
  std::uint32_t magnitudes = 0;

  __device__ void add(double x, double factor) {
    const auto integer = static_cast<std::uint32_t>(__double2loint(__fma_ru(fabs(x), factor, 0x1p52)));
    squares += static_cast<std::uint64_t>(integer) * integer;
    magnitudes += integer;
  }
};

}  // namespace kintsugi::core::cuda
