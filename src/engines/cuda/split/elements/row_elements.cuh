// A few elements of a contiguous vector in registers, which a thread reads at once.
#pragma once

#include "engines/cuda/common/operands.cuh"

namespace kintsugi::core::cuda {

inline constexpr int elements_at_once = 8;

// Loads elements p, p + 1, ... of a vector of `length` contiguous elements, with zeros after its end.
// `aligned`: source + p is aligned to sixteen bytes.
template <class Source>
__device__ void load_elements(const Source* source, std::int64_t p, std::int64_t length, bool aligned,
                              Source (&x)[elements_at_once]) {
  if (aligned && p + elements_at_once <= length) {
    constexpr int words = sizeof x / sizeof(uint4);
    uint4 bits[words];
#pragma unroll
    for (int i = 0; i < words; ++i) bits[i] = __ldg(reinterpret_cast<const uint4*>(source + p) + i);
    memcpy(x, bits, sizeof bits);
    return;
  }
#pragma unroll
  for (int i = 0; i < elements_at_once; ++i) x[i] = p + i < length ? __ldg(source + p + i) : Source(0);
}

}  // namespace kintsugi::core::cuda
