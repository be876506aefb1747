// Exponents of tiles (MixPert, Eqs. 7 and 9). docs/schemes/mixpert.md has the definitions.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::core {

inline constexpr int segment_bits = 7;
// Deepest tile whose sums fit an int32: 256 (3 * 127 * 127 * 128 + 4 * 127 * 127) < 2^31.
inline constexpr int deepest_tile = 256;

struct TileExponent {
  static constexpr std::int16_t none = -0x4000;  // far below every exponent

  std::int16_t exponent = none;    // largest rounded_exponent() of its elements; none: all elements are zero
  std::int16_t difference = none;  // the exponent minus that of the panel's scale, at most 0
  std::int32_t fails = 0;          // 1: Eq. 9 is not met; segments are zero, the half-precision program runs
};

// Sum and maximum of the exponents of a tile's elements, from which Eq. 9 is decided in integers.
struct TileExponentSum {
  std::int32_t largest = TileExponent::none;
  std::int64_t sum = 0;
  std::int64_t elements = 0;  // number of elements that are not zero

  KINTSUGI_HOST_DEVICE constexpr void add(int exponent) {
    if (exponent > largest) largest = exponent;
    sum += exponent;
    ++elements;
  }
  // True if the elements lie on average more than `limit` binades below the largest: Eq. 9's sum is positive.
  KINTSUGI_HOST_DEVICE constexpr bool exceeds(int limit) const { return elements * (largest - limit) > sum; }
};

}  // namespace kintsugi::core
