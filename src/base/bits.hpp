// Bits of integers, the same functions on host and device.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kintsugi::core {

// Number of zeros above the leading one; 32 or 64 for zero. Device code does not use the 64-bit
// std::countl_zero: nvcc 13.0 compiles the host compiler's builtin into code that returns 64 for every
// argument.
constexpr int leading_zeros(std::uint32_t x) { return std::countl_zero(x); }
constexpr int leading_zeros(std::uint64_t x) {
#ifdef __CUDA_ARCH__
  if (!std::is_constant_evaluated()) return __clzll(static_cast<long long>(x));
#endif
  return std::countl_zero(x);
}

}  // namespace kintsugi::core
