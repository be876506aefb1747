// Conversion of FP32 operands in registers to two fp16 slices, with an exponent for each vector and k-block
// of its own, and what the acceptance of elements must know of each vector.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "engines/cuda/gemm/block_params.hpp"

namespace kintsugi::core::cuda {

inline constexpr std::uint32_t infinite_field = 0x7f800000U;
inline constexpr float residual_scale = normal_power_of_two(block_residual_exponent);

__device__ inline float largest_magnitude(float x, float y) {
  float result;
  asm("{\n.reg .f32 a, b;\nabs.f32 a, %1;\nabs.f32 b, %2;\nmax.NaN.f32 %0, a, b;\n}"
      : "=f"(result)
      : "f"(x), "f"(y));
  return result;
}

// Scale of a k-block of a vector with this largest magnitude, and the weight of its products.
struct BlockScale {
  std::uint32_t field;  // of the exponent, in place
  float scale;          // block_scale(), block_weight()
  float weight;

  __device__ explicit BlockScale(float largest)
      : field(max(__float_as_uint(largest) & 0x7f800000U, static_cast<unsigned>(least_block_exponent + 127)
                                                              << 23)),
        scale(__uint_as_float((static_cast<unsigned>(block_top_exponent + 2 * 127) << 23) - field)),
        weight(__uint_as_float(field -
                               (static_cast<unsigned>(block_top_exponent - block_sum_exponent / 2) << 23))) {}
  // Elements below it are deep (is_deep()).
  __device__ float deep_bound() const {
    return weight * normal_power_of_two(block_top_exponent - block_sum_exponent / 2 - block_window);
  }
};

// Splits a pair of elements, scaled.
__device__ inline void split_pair(float x, float y, float scale, std::uint32_t& high, std::uint32_t& low) {
  const float scaled_x = x * scale;
  const float scaled_y = y * scale;
  const __half2 rounded = __floats2half2_rn(scaled_x, scaled_y);
  const float2 again = __half22float2(rounded);
  const __half2 residual =
      __floats2half2_rn((scaled_x - again.x) * residual_scale, (scaled_y - again.y) * residual_scale);
  memcpy(&high, &rounded, sizeof high);
  memcpy(&low, &residual, sizeof low);
}

// Fragments of a k-block of one vector in one thread: 16 elements, in pairs.
struct SplitVector {
  std::uint32_t high[8];
  std::uint32_t low[8];
  float weight;  // BlockScale::weight
};

// Statistics of a vector in a thread: its largest exponent, and the zeros among the elements that the thread
// has read.
struct ThreadStatistics {
  std::uint32_t largest = 0;
  std::uint32_t zeros = 0;
  bool has_counted = false;  // zeros or deep elements

  __device__ bool is_clean() const { return !has_counted && largest < infinite_field; }
};

// Smallest magnitudes of both halves of the words.
template <int Count>
__device__ __forceinline__ __half2 smallest_of(const std::uint32_t (&words)[Count]) {
  __half2 least[Count];
  memcpy(least, words, sizeof least);
#pragma unroll
  for (int i = 0; i < Count; ++i) least[i] = __habs2(least[i]);
#pragma unroll
  for (int step = Count / 2; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) least[i] = __hmin2(least[i], least[i + step]);
  }
  return least[0];
}

// True if zeros or deep elements may be among those with these high slices: elements that are not deep are at
// least 2^-14 when scaled. In most k-blocks there are none.
__device__ __forceinline__ bool may_lose(const std::uint32_t (&high)[8]) {
  const __half least = __ushort_as_half(0x0400);
  return !__hbgt2(smallest_of(high), __half2(least, least));
}

// Counts zeros and deep elements among those that a thread has of a k-block. The vector's statistics are in
// shared memory; one thread of those that share the vector counts its blocks (`counts_block`).
template <int Count>
__device__ __forceinline__ void count_elements(const float (&x)[Count], float largest, bool counts_block,
                                               ThreadStatistics& mine, VectorStatistics& all) {
  const BlockScale scale(largest);
  const float bound = scale.deep_bound();
  std::uint32_t zeros = 0;
  std::uint32_t small = 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    zeros += x[i] == 0.0F ? 1 : 0;
    small += fabsf(x[i]) < bound ? 1 : 0;
  }
  mine.zeros += zeros;
  mine.has_counted = mine.has_counted || small > 0;
  if (small > zeros) {
    atomicAdd(&all.deep, small - zeros);
    atomicMax(&all.deep_largest, scale.field);
  }
  if (largest == 0.0F && counts_block) atomicAdd(&all.zero_blocks, 1U);
}

__device__ __forceinline__ float largest_of(const float (&x)[16]) {
  float most[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) most[i] = largest_magnitude(x[2 * i], x[2 * i + 1]);
#pragma unroll
  for (int step = 4; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) most[i] = largest_magnitude(most[i], most[i + step]);
  }
  return most[0];
}

// Splits 16 elements with this scale.
__device__ __forceinline__ void split_elements(const float (&x)[16], const BlockScale& scale,
                                               SplitVector& split) {
  split.weight = scale.weight;
#pragma unroll
  for (int p = 0; p < 8; ++p) split_pair(x[2 * p], x[2 * p + 1], scale.scale, split.high[p], split.low[p]);
}

// Splits the k-blocks of `Count` vectors, a quarter of each in a thread; lanes that differ in the bits Mask1
// and Mask2 have the other quarters. Calls have_read() when all elements are certainly in registers: their
// memory may then be written again. Calls store(v, split) for each vector, which may keep the slices or write
// them; all_of(v) is the vector's statistics.
template <int Mask1, int Mask2, int Count, class HaveRead, class Store, class AllOf>
__device__ __forceinline__ void split_vectors(const float (&x)[Count][16],
                                              ThreadStatistics (&statistics)[Count],
                                              const HaveRead& have_read, const Store& store,
                                              const AllOf& all_of) {
  float largest[Count];
#pragma unroll
  for (int v = 0; v < Count; ++v) largest[v] = largest_of(x[v]);
#pragma unroll
  for (int v = 0; v < Count; ++v)
    largest[v] = largest_magnitude(largest[v], __shfl_xor_sync(~0U, largest[v], Mask1));
#pragma unroll
  for (int v = 0; v < Count; ++v)
    largest[v] = largest_magnitude(largest[v], __shfl_xor_sync(~0U, largest[v], Mask2));
  have_read();
  bool counts = false;
#pragma unroll
  for (int v = 0; v < Count; ++v) {
    const BlockScale scale(largest[v]);
    SplitVector split;
    split_elements(x[v], scale, split);
    statistics[v].largest = max(statistics[v].largest, scale.field);
    counts = counts || may_lose(split.high);
    store(v, split);
  }
  if (!counts) [[likely]]
    return;
#pragma unroll
  for (int v = 0; v < Count; ++v)
    count_elements(x[v], largest[v], (threadIdx.x & (Mask1 | Mask2)) == 0, statistics[v], all_of(v));
}

}  // namespace kintsugi::core::cuda
