// X u + c rounded once, in double arithmetic. X is a signed integer of up to 126 bits from the Chinese
// remainder theorem (digit_sums.hpp), u is a power of two with a sign, and c is beta times the old element of
// C.
//
// X is the sum of three doubles, multiples of 2^80, 2^40 and 1. So neither the sign nor the leading bit of X
// has to be found. If c / u has a similar magnitude as X, it is cut at the same bits, and added part by part.
//
// The three parts are added and rounded once in this way. The sum of the upper two parts is a double plus its
// error. The error and the lowest part are added and rounded to odd: the last bit of the sum is set if the
// sum is inexact. This sum is added to the double with rounding to nearest. The result is the exact one,
// rounded once (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, IEEE Trans. Comput. 57,
// 2008), because the sum rounded to odd is exact or has bits below those of the result: if the error is zero,
// the sum is the lowest part. Else the double is at least 2^92, and the error at most half of its last bit.
// The lowest part is below 2^48, so an inexact sum of more than 53 bits is one of at least 2^53 whose error
// is at least 2^52, and the last bit of the sum is 2^51 times below that of the double.
//
// The code needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "arith/exact/double_sum.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "formats/error_free.hpp"

namespace kintsugi::core {

namespace update_detail {

// Returns the multiple of 2^shift nearest to x, for |x| < 2^(51 + shift).
template <int shift>
KINTSUGI_HOST_DEVICE constexpr double nearest_multiple(double x) {
  constexpr double offset = std::bit_cast<double>(both_words((1075U + shift) << 20 | 1U << 19, 0));
  return (x + offset) - offset;
}

}  // namespace update_detail

// X, or X + c / u, as the sum of three doubles.
struct IntegerParts {
  double upper;   // a multiple of 2^80
  double middle;  // a multiple of 2^40 of at most 2^81 in magnitude
  double lowest;  // below 2^48 in magnitude

  KINTSUGI_HOST_DEVICE double high() const { return upper + middle; }
  // Rounding error of high(). high() + error() is upper + middle exactly: if high() is not exact, it is at
  // least 2^93, so that |upper| > |middle|.
  KINTSUGI_HOST_DEVICE double error() const { return middle - (high() - upper); }
  KINTSUGI_HOST_DEVICE double rounded() const { return high() + sum_to_odd(error(), lowest); }

  // The same number with a lowest part of at most 2^39 in magnitude.
  KINTSUGI_HOST_DEVICE IntegerParts with_small_lowest() const {
    const double excess = update_detail::nearest_multiple<40>(lowest);
    return {upper, middle + excess, lowest - excess};
  }
};

// Adds X * factor to the sum. The factor must be at least 2^-700 in magnitude.
KINTSUGI_HOST_DEVICE inline void add_multiple(DoubleSum& sum, const IntegerParts& x, double factor) {
  sum.add_product(x.upper, factor);
  sum.add_product(x.middle, factor);
  sum.add_product(x.lowest, factor);
}

namespace update_detail {

// True if 2^least <= |x| < 2^limit, by integer comparisons, which leave the FP64 unit to sums.
template <int least, int limit>
KINTSUGI_HOST_DEVICE constexpr bool is_between(double x) {
  const std::uint32_t magnitude = high_word(std::bit_cast<std::uint64_t>(x)) & 0x7fffffffU;
  return magnitude - (static_cast<std::uint32_t>(1023 + least) << 20) <
         static_cast<std::uint32_t>(limit - least) << 20;
}

// Returns X u + c where |c| is not between 2^40 |u| and 2^128 |u|.
KINTSUGI_HOST_DEVICE KINTSUGI_OUTLINED inline double sum_of_unlike_magnitudes(const IntegerParts& x,
                                                                              double unit, double c) {
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

// Returns X u rounded once. If X is a multiple of 2^s, the exponent of u plus s must be at most
// max_ordinary_exponent in magnitude.
KINTSUGI_HOST_DEVICE inline double rounded_product(const IntegerParts& integer, double unit) {
  return std::fma(integer.rounded(), unit, 0.0);  // + 0.0 turns -0 into 0
}

// Returns X u + c rounded once, for the same u as rounded_product(). Returns c if it is infinite or NaN.
// `inverse` is 1 / u.
KINTSUGI_HOST_DEVICE inline double rounded_update(const IntegerParts& integer, double unit, double inverse,
                                                  double c) {
  using namespace update_detail;
  const IntegerParts x = integer.with_small_lowest();
  const double old = c * inverse;
  // An `old` of 2^40 or more is a multiple of 2^-12, so all sums of parts are exact.
  if (!is_between<40, 128>(old) && c != 0)
    return sum_of_unlike_magnitudes(x, unit, c) + 0.0;  // + 0.0 turns -0 into 0
  const double upper = nearest_multiple<80>(old);
  const double middle = nearest_multiple<40>(old - upper);
  const IntegerParts sum{x.upper + upper, x.middle + middle, x.lowest + ((old - upper) - middle)};
  return std::fma(sum.rounded(), unit, 0.0);
}

}  // namespace kintsugi::core
