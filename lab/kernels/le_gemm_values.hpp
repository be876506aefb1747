// Elements of the matrices that LE-GEMM's kernels are timed with: the host computes those that it checks
// anew.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define KINTSUGI_LAB_HOST_DEVICE __host__ __device__
#else
#define KINTSUGI_LAB_HOST_DEVICE
#endif

namespace kintsugi::lab {

// Returns element `index` of a matrix, uniform on [-1, 1) in steps of 2^-23. The mixing is that of
// SplitMix64.
KINTSUGI_LAB_HOST_DEVICE inline float le_gemm_element(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t bits = (seed << 48) + (index + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>(static_cast<std::int32_t>((bits ^ (bits >> 31)) >> 40) - (1 << 23)) * 0x1p-23f;
}

}  // namespace kintsugi::lab
