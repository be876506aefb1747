// Exponents from bits: no log, no rounding, no dependence on the floating-point environment.
#pragma once

#include <bit>
#include <cstdint>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// floor(log2 |x|) of a finite, non-zero value; subnormals included.
KINTSUGI_HOST_DEVICE constexpr int exponent_of(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  const int field = static_cast<int>(magnitude >> 23);
  return field != 0 ? field - 127 : -118 - std::countl_zero(magnitude);
}

KINTSUGI_HOST_DEVICE constexpr int exponent_of(double x) {
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffULL;
  const int field = static_cast<int>(magnitude >> 52);
  return field != 0 ? field - 1023 : -1011 - std::countl_zero(magnitude);
}

}  // namespace kintsugi::core
