// Conversion of FP32 operands in registers to three bf16 slices, and the largest magnitudes of high slices,
// by which elements are accepted.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

// Slices of two elements, the first one in the lower half of each word.
struct SlicedPair {
  std::uint32_t high;
  std::uint32_t middle;
  std::uint32_t low;
};

// Rounds two numbers to bf16. The first one comes into the lower half.
__device__ __forceinline__ std::uint32_t round_pair(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

// Subtracts the numbers of a pair.
__device__ __forceinline__ void subtract_pair(float& first, float& second, std::uint32_t pair) {
  first -= __uint_as_float(pair << 16);
  second -= __uint_as_float(pair & 0xffff0000U);
}

// The residuals are exact. Those of NaN and infinities are NaN.
__device__ __forceinline__ SlicedPair split_pair(float first, float second) {
  SlicedPair slices;
  slices.high = round_pair(first, second);
  subtract_pair(first, second, slices.high);
  slices.middle = round_pair(first, second);
  subtract_pair(first, second, slices.middle);
  slices.low = round_pair(first, second);
  return slices;
}

// Largest magnitudes of both halves of bf16 pairs, with any sign; NaN precedes all numbers.
__device__ __forceinline__ std::uint32_t largest_of_pairs(std::uint32_t x, std::uint32_t y) {
  std::uint32_t result;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(y));
#else
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(x & 0x7fff7fffU), "r"(y & 0x7fff7fffU));
#endif
  return result;
}

// Pattern in FP32 of the larger half of a pair of magnitudes. Integers order these patterns, NaN last.
__device__ __forceinline__ std::uint32_t larger_half(std::uint32_t pair) {
  return max(pair << 16 & 0x7fff0000U, pair & 0x7fff0000U);
}

}  // namespace kintsugi::core::cuda
