// Sums of FP64 numbers in shared memory from which ranges and norms of vectors follow, in few instructions
// (select/head_sums.cuh).
#pragma once

#include "engines/cuda/select/head_sums.cuh"

namespace kintsugi::core::cuda {

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
