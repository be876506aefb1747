// Exponents from bit patterns: no log, no rounding, no dependence on the floating-point environment.
#pragma once

#include <bit>
#include <cstdint>

#include "arith/host_device.hpp"
#include "base/bits.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// floor(log2 |x|) of a finite, non-zero x, which may be subnormal.
KINTSUGI_HOST_DEVICE constexpr int exponent_of(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  const int field = static_cast<int>(magnitude >> 23);
  return field != 0 ? field - 127 : -118 - leading_zeros(magnitude);
}

KINTSUGI_HOST_DEVICE constexpr int exponent_of(double x) {
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffULL;
  const int field = static_cast<int>(magnitude >> 52);
  return field != 0 ? field - 1023 : -1011 - leading_zeros(magnitude);
}

// True if the seven leading significant bits of a finite, non-zero x are all ones: 1.111111b...
KINTSUGI_HOST_DEVICE constexpr bool leading_bits_all_ones(float x) {
  std::uint32_t significand = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  if (significand < 0x800000U) significand <<= leading_zeros(significand) - 8;
  return ((significand >> 17) & 0x3fU) == 0x3fU;
}

KINTSUGI_HOST_DEVICE constexpr bool leading_bits_all_ones(double x) {
  std::uint64_t significand = std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffULL;
  if (significand < 0x10000000000000ULL) significand <<= leading_zeros(significand) - 11;
  return ((significand >> 46) & 0x3fU) == 0x3fU;
}

}  // namespace kintsugi::core
