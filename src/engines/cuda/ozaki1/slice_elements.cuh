// Integers in slices whose elements are floating-point numbers.
#pragma once

#include "engines/cuda/ozaki1/ozaki1.hpp"

namespace kintsugi::core::cuda {

// Stores an integer as an element. It is exact: fp16 holds integers up to 2^11, FP64 up to 2^53.
__device__ inline void store_slice_element(const SliceArray& slices, int s, std::int64_t vector,
                                           std::int64_t p, std::int64_t integer) {
  const std::int64_t element = s * slices.slice_stride + vector * slices.vector_stride + p;
  if (slices.is_fp64) {
    reinterpret_cast<double*>(slices.data)[element] = static_cast<double>(integer);
    return;
  }
  std::uint16_t pattern = 0;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(pattern) : "f"(static_cast<float>(static_cast<std::int32_t>(integer))));
  reinterpret_cast<std::uint16_t*>(slices.data)[element] = pattern;
}

// Reads an element as an integer.
__device__ inline std::int64_t slice_element(const SliceArray& slices, int s, std::int64_t vector,
                                             std::int64_t p) {
  const std::int64_t element = s * slices.slice_stride + vector * slices.vector_stride + p;
  if (slices.is_fp64) return static_cast<std::int64_t>(reinterpret_cast<const double*>(slices.data)[element]);
  float value = 0;
  asm("cvt.f32.f16 %0, %1;"
      : "=f"(value)
      : "h"(reinterpret_cast<const std::uint16_t*>(slices.data)[element]));
  return static_cast<std::int32_t>(value);
}

}  // namespace kintsugi::core::cuda
