// Exponents and arithmetic of tiles (MixPert, Eqs. 2-4 and 7-9). docs/schemes/mixpert.md has the definitions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "arith/host_device.hpp"
#include "base/bits.hpp"
#include "formats/format.hpp"

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

// Elements are integers of 7-bit segments. Tiles that fail Eq. 9 run a half-precision program.

// A finite FP32 number other than zero as significand * 2^(exponent - 23), 2^23 <= significand < 2^24.
struct NormalizedFloat {
  std::uint32_t significand;
  int exponent;
};

KINTSUGI_HOST_DEVICE constexpr NormalizedFloat normalized_float(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
  const auto field = static_cast<int>(magnitude >> 23);
  if (field != 0) return {(magnitude & 0x7fffffU) | 0x800000U, field - 127};
  const int shift = leading_zeros(magnitude) - 8;
  return {magnitude << shift, -126 - shift};
}

// Exponent of |x| after rounding to `segments` segments: one higher than x's if 1.11...1 is rounded up. x is
// finite and not zero. The code rounds half up instead of ties to even, with the same exponent: the last bit
// of 1.11...1 is odd.
KINTSUGI_HOST_DEVICE constexpr int rounded_exponent(float x, int segments) {
  const NormalizedFloat number = normalized_float(x);
  const int dropped = 24 - segments * segment_bits;
  const std::uint32_t half = dropped > 0 ? 1U << (dropped - 1) : 0U;
  return number.exponent + static_cast<int>((number.significand + half) >> 24);
}

// |x| in units of 2^(exponent + 1 - bits) with bits = segment_bits * segments, rounded to nearest, ties to
// even. The result is below 2^bits. `exponent` is that of x's tile, at least rounded_exponent(x, segments).
KINTSUGI_HOST_DEVICE constexpr std::uint32_t tile_integer(float x, int exponent, int segments) {
  if (x == 0.0F) return 0;
  const NormalizedFloat number = normalized_float(x);
  const int right = 24 - segments * segment_bits + exponent - number.exponent;
  if (right <= 0) return number.significand << -right;
  if (right > 25) return 0;
  const std::uint32_t whole = number.significand >> right;
  const std::uint32_t rest = number.significand & ((1U << right) - 1U);
  const std::uint32_t half = 1U << (right - 1);
  return whole + (rest > half || (rest == half && (whole & 1U) != 0) ? 1U : 0U);
}

// Segment s of a tile integer, with the element's sign: -127 ... 127. Segment 0 has the leading bits.
KINTSUGI_HOST_DEVICE constexpr std::int8_t tile_segment(std::uint32_t integer, bool negative, int segments,
                                                        int s) {
  const auto digit = static_cast<std::int8_t>((integer >> (segment_bits * (segments - 1 - s))) &
                                              ((1U << segment_bits) - 1U));
  return static_cast<std::int8_t>(negative ? -digit : digit);
}

// Value of a pair of tiles from four integer sums over their elements: S_w = sum over i + j = w of x_i y_j,
// where x_i and y_j are segments. The unit is 2^(p_x + p_y - 19), with the tiles' exponents p_x and p_y.
KINTSUGI_HOST_DEVICE inline float tile_value(std::int32_t s0, std::int32_t s1, std::int32_t s2,
                                             std::int32_t s3) {
  const auto high = static_cast<float>(s0 * 128 + s1);
  // Other code may hold the sums S_w in FP32, which is exact, and may compute `high` as fma(S_0, 128, S_1)
  // and `low` alike. The bits are the same.
  const auto low = static_cast<float>(s2 * 128 + s3);
  return std::fma(low, 0x1p-14F, high);
}

// 2^difference in FP32, where `difference` is a tile's exponent minus its panel's, at most 0; 0 below -126.
KINTSUGI_HOST_DEVICE constexpr float tile_weight(int difference) {
  return difference < -126 ? 0.0F : std::bit_cast<float>(static_cast<std::uint32_t>(difference + 127) << 23);
}

// The half-precision program: six digits of 8 bits, which fp16 and bf16 hold exactly.
inline constexpr int half_digits = 6;
inline constexpr int half_digit_bits = 8;
inline constexpr int half_piece = 32;  // inner indices with one exponent and one sum

// |x| in units of 2^(exponent - 47), rounded to nearest, ties to even. `exponent` is at least x's, so that
// the result is below 2^48.
KINTSUGI_HOST_DEVICE constexpr std::uint64_t half_integer(float x, int exponent) {
  if (x == 0.0F) return 0;
  const NormalizedFloat number = normalized_float(x);
  const int left = 24 - (exponent - number.exponent);
  if (left >= 0) return std::uint64_t{number.significand} << left;
  return left < -25 ? 0 : format_detail::shift_right(number.significand, -left, Rounding::nearest_even);
}

// Digit s of a half_integer(), with the element's sign: -255 ... 255.
KINTSUGI_HOST_DEVICE constexpr std::int16_t half_digit(std::uint64_t integer, bool negative, int s) {
  const auto digit = static_cast<std::int16_t>((integer >> (half_digit_bits * (half_digits - 1 - s))) &
                                               ((1U << half_digit_bits) - 1U));
  return static_cast<std::int16_t>(negative ? -digit : digit);
}

// Value of a piece's sums T_w = sum over i + j = w of h_i g_j, w = 0 ... 5, in units of 2^(q_x + q_y - 14).
// The sums are exact in FP32: they are at most 6 * 32 * 255 * 255 < 2^24.
KINTSUGI_HOST_DEVICE inline float half_value(const std::int32_t (&sums)[half_digits]) {
  auto value = static_cast<float>(sums[half_digits - 1]);
  for (int w = half_digits - 2; w >= 0; --w) value = std::fma(value, 0x1p-8F, static_cast<float>(sums[w]));
  return value;
}

}  // namespace kintsugi::core
