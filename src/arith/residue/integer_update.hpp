// X u + c rounded once, in double arithmetic. X is a signed integer of up to 126 bits from the Chinese
// remainder theorem, u is a power of two with a sign, and c is beta times the old element of C.
//
// X is cut into three parts, each exact in a double: a signed part above 2^78, and two parts of 39 bits below
// it. So neither the sign nor the leading bit of X has to be found. If c / u has a similar magnitude as X, it
// is cut at the same bits, and added part by part.
//
// The three parts are added and rounded once in this way. The sum of the upper two parts is a double plus its
// error. The error and the lowest part are added and rounded to odd: the last bit of the sum is set if the
// sum is inexact. This sum is added to the double with rounding to nearest. The result is the exact one,
// rounded once (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, IEEE Trans. Comput. 57,
// 2008), because the sum rounded to odd has bits below those of the result: the error is zero below 2^92, and
// above 2^92 the lowest part is below the result's last bit.
//
// The code needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "formats/error_free.hpp"

namespace kintsugi::core {

namespace update_detail {

inline constexpr int part_bits = 39;

// Returns the integer of up to 52 bits in `upper` and `lower`, times 2^shift. The integer is put into the
// significand of 2^(52 + shift), whose last bit has the value 2^shift; then 2^(52 + shift) is subtracted.
template <int shift>
KINTSUGI_HOST_DEVICE constexpr double converted(std::uint32_t upper, std::uint32_t lower) {
  constexpr std::uint32_t exponent = static_cast<std::uint32_t>(1075 + shift) << 20;
  return std::bit_cast<double>(both_words(exponent + upper, lower)) -
         std::bit_cast<double>(both_words(exponent, 0));
}
// converted() for signed integers of up to 51 bits.
template <int shift>
KINTSUGI_HOST_DEVICE constexpr double converted_signed(std::int32_t upper, std::uint32_t lower) {
  constexpr std::uint32_t offset = (static_cast<std::uint32_t>(1075 + shift) << 20) + (1U << 19);
  return std::bit_cast<double>(both_words(offset + static_cast<std::uint32_t>(upper), lower)) -
         std::bit_cast<double>(both_words(offset, 0));
}

// Returns the multiple of 2^shift nearest to x, for |x| < 2^(51 + shift).
template <int shift>
KINTSUGI_HOST_DEVICE constexpr double nearest_multiple(double x) {
  constexpr double offset = std::bit_cast<double>(both_words((1075U + shift) << 20 | 1U << 19, 0));
  return (x + offset) - offset;
}

KINTSUGI_HOST_DEVICE inline double sum_to_odd(double x, double y) {
  const ValueAndError<double> sum = two_sum(x, y);
  const auto pattern = std::bit_cast<std::uint64_t>(sum.value);
  const std::uint64_t odd = (sum.error > 0) == (sum.value > 0) ? pattern + 1 : pattern - 1;
  return std::bit_cast<double>(sum.error == 0 || (pattern & 1U) != 0 ? pattern : odd);
}

// X, or X + c / u, as the sum of three doubles.
struct IntegerParts {
  double upper;   // a multiple of 2^78
  double middle;  // a multiple of 2^39 below 2^79 in magnitude
  double lowest;  // below 2^40 in magnitude

  KINTSUGI_HOST_DEVICE double high() const { return upper + middle; }
  // Rounding error of high(). high() + error() is upper + middle exactly, because |upper| >= |middle| or
  // high() is exact.
  KINTSUGI_HOST_DEVICE double error() const { return middle - (high() - upper); }
  KINTSUGI_HOST_DEVICE double rounded() const { return high() + sum_to_odd(error(), lowest); }
};

KINTSUGI_HOST_DEVICE inline IntegerParts parts_of_integer(const WideInteger<2>& integer) {
  constexpr int middle_shift = part_bits - 32;
  constexpr int upper_shift = 2 * part_bits - 64;
  constexpr std::uint32_t mask = (1U << middle_shift) - 1;
  const std::uint32_t words[4]{low_word(integer.limb[0]), high_word(integer.limb[0]),
                               low_word(integer.limb[1]), high_word(integer.limb[1])};
  const auto joined = [&](int w, int shift) {
    return static_cast<std::uint32_t>(both_words(words[w + 1], words[w]) >> shift);
  };
  return {converted_signed<2 * part_bits>(static_cast<std::int32_t>(words[3]) >> upper_shift,
                                          joined(2, upper_shift)),
          converted<part_bits>(words[2] >> middle_shift & mask, joined(1, middle_shift)),
          converted<0>(words[1] & mask, words[0])};
}

// Returns X u + c where |c| is not between 2^40 |u| and 2^128 |u|.
KINTSUGI_HOST_DEVICE inline double sum_of_unlike_magnitudes(const IntegerParts& x, double unit, double c) {
  if (!(std::fabs(c) <= std::numeric_limits<double>::max())) return c;
  double factor = 1;
  if (std::fabs(c) >= 0x1p1000) {  // all terms are scaled down; then only the last product can overflow
    factor = 0x1p64;
    unit *= 0x1p-64;
    c *= 0x1p-64;
  }
  const double high = x.high() * unit;
  const double error = x.error() * unit;
  const double lowest = x.lowest * unit;
  if (std::fabs(c) >= std::fabs(unit) * 0x1p128) {  // c is a multiple of 2^76 u; |c + high| is near |c|
    const ValueAndError<double> sum = two_sum(c, high);
    return (sum.value + sum_to_odd(sum.error, sum_to_odd(error, lowest))) * factor;
  }
  if (error != 0) return high + sum_to_odd(error, sum_to_odd(lowest, c));  // |high| >= 2^92 u
  const ValueAndError<double> integer = two_sum(high, lowest);
  const ValueAndError<double> sum = two_sum(c, integer.value);
  return sum.value + sum_to_odd(sum.error, integer.error);
}

}  // namespace update_detail

// Returns X u rounded once, for |exponent of u| <= max_ordinary_exponent.
KINTSUGI_HOST_DEVICE inline double rounded_product(const WideInteger<2>& integer, double unit) {
  return std::fma(update_detail::parts_of_integer(integer).rounded(), unit, 0.0);  // + 0.0 turns -0 into 0
}

// Returns X u + c rounded once, for |exponent of u| <= max_ordinary_exponent. Returns c if it is infinite or
// NaN. `inverse` is 1 / u.
KINTSUGI_HOST_DEVICE inline double rounded_update(const WideInteger<2>& integer, double unit, double inverse,
                                                  double c) {
  using namespace update_detail;
  const IntegerParts x = parts_of_integer(integer);
  const double old = c * inverse;
  // An `old` of 2^40 or more is a multiple of 2^-12, so all sums of parts are exact.
  if (!(std::fabs(old) < 0x1p128 && std::fabs(old) >= 0x1p40) && c != 0)
    return sum_of_unlike_magnitudes(x, unit, c) + 0.0;  // + 0.0 turns -0 into 0
  const double upper = nearest_multiple<2 * part_bits>(old);
  const double middle = nearest_multiple<part_bits>(old - upper);
  const IntegerParts sum{x.upper + upper, x.middle + middle, x.lowest + ((old - upper) - middle)};
  return std::fma(sum.rounded(), unit, 0.0);
}

}  // namespace kintsugi::core
