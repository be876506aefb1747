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
#include "arith/residue/rounding_errors.hpp"
#include "formats/double_double.hpp"

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
KINTSUGI_HOST_DEVICE inline CertainlyRounded<double> rounded_update(const IntegerParts& integer, double unit,
                                                                    double inverse, double c) {
  using namespace update_detail;
  const IntegerParts x = integer.with_small_lowest();
  const double old = c * inverse;
  // An `old` of 2^40 or more is a multiple of 2^-12, so all sums of parts are exact.
  if (!is_between<40, 128>(old) && c != 0)
    return {sum_of_unlike_magnitudes(x, unit, c) + 0.0, true};  // + 0.0 turns -0 into 0
  const double upper = nearest_multiple<80>(old);
  const double middle = nearest_multiple<40>(old - upper);
  const IntegerParts sum{x.upper + upper, x.middle + middle, x.lowest + ((old - upper) - middle)};
  return {std::fma(sum.rounded(), unit, 0.0), true};
}

// The same for integers X of up to 158 bits.
//
// X is the sum of four doubles A + B + C + D, multiples of 2^120, 2^80, 2^40 and 1, with |B| <= 2^119 +
// 2^111, |C| < 2^81 and |D| <= 2^47. They are added from the lowest to the uppermost, and every sum's
// rounding error is kept:
//   c + d = C + D,  b + c' = B + c,  a + b' = A + b.
// Each error takes three operations, because the first term of each sum is a multiple of the last bit of the
// second one: the last bits of D, c and b are at most 2^0, 2^29 and 2^68. So X = a + b' + c' + d exactly, and
// the result is
//   a + odd(b' + odd(c' + d)),
// where odd() rounds to odd. It is the exact one rounded once:
// - t = odd(c' + d). If c' is 0, t is d. Else c' is a multiple of the last bit of c, so |d| <= |c'| / 2, and
//   |t| <= 3/4 of the last bit of b. If t is inexact, its last bit g is set, all numbers that t stands for
//   lie between the same multiples of 2 g, and the last bit of b is at least 2^52 g.
// - |A + b| >= |b| / 4, because A is 0 or at least 2^120 and |b| < 0.51 * 2^120. So the last bit of the
//   result is at least 2^49 g: doubles and ties of two doubles are multiples of 2 g there, as are b' and a.
//   It does not matter which of those numbers t is.
// - v = odd(b' + t). If b' is 0, it is t. Else a is inexact, |a| >= 2^118, and its last bit is at least 2^66.
//   |b'| is at most half of that, and |t| is less, so v is exact, or its last bit is at most 2^-51 times
//   that of a, far below ties of a + v.
// Cancellation needs no search for a leading bit: a sum that cancels is exact.
//
// y = c / u of 2^40 to 2^170 in magnitude is a multiple of 2^-12. It is cut at the same bits, and its parts,
// of at most half a unit of the next one, are added to those of X, whose |C| is below 2^80 - 2^47 as it comes
// from parts_of_pieces(). Before that the excess of D over 2^39 moves into C, and afterwards that of B over
// 2^119 into A. So D has at most 52 bits and is at most 2^40, |C| < 2^81, and the parts of the sum satisfy
// all that the proof needs.
//
// For other y, s + e = y + a exactly, and X + y = s + e + b' + c' + d. The last four are added in double;
// their sum differs from the exact one by at most 3 * 2^-53 of the sum of their magnitudes. The result is
// certain if both ends of this interval give the same double. It may not be if |y| is much smaller than |X|
// and X is at or near a tie of two doubles, as integers of 54 to 64 bits often are.
//
// The code needs rounding to nearest and no contraction to fused operations.

// X, or X + y, as the sum of four doubles.
struct WideIntegerParts {
  double top;     // a multiple of 2^120
  double upper;   // a multiple of 2^80 of at most 2^119 + 2^111 in magnitude
  double middle;  // a multiple of 2^40 of at most 2^81 in magnitude
  double lowest;  // an integer, or a multiple of 2^-12, of at most 2^47 in magnitude

  // The same number as the sum of a, b', c' and d.
  struct Sums {
    double sum;              // a
    double error_of_top;     // b'
    double error_of_upper;   // c'
    double error_of_middle;  // d

    KINTSUGI_HOST_DEVICE double rounded() const {
      return sum + sum_to_odd(error_of_top, sum_to_odd(error_of_upper, error_of_middle));
    }
  };
  KINTSUGI_HOST_DEVICE Sums sums() const {
    const double c = middle + lowest;
    const double b = upper + c;
    const double a = top + b;
    return {a, b - (a - top), c - (b - upper), lowest - (c - middle)};
  }
  KINTSUGI_HOST_DEVICE double rounded() const { return sums().rounded(); }
};

// Returns X u rounded once. If X is a multiple of 2^s, the exponent of u plus s must be at most
// max_ordinary_exponent in magnitude.
KINTSUGI_HOST_DEVICE inline double rounded_product(const WideIntegerParts& integer, double unit) {
  return std::fma(integer.rounded(), unit, 0.0);  // + 0.0 turns -0 into 0
}

namespace update_detail {

// X + y for 2^40 <= |y| < 2^170 or y = 0.
KINTSUGI_HOST_DEVICE inline WideIntegerParts sum_of_parts(const WideIntegerParts& x, double y) {
  const double top = nearest_multiple<120>(y);
  const double below_top = y - top;
  const double upper = nearest_multiple<80>(below_top);
  const double below_upper = below_top - upper;
  const double middle = nearest_multiple<40>(below_upper);
  const double excess_of_lowest = nearest_multiple<40>(x.lowest);
  const double upper_sum = x.upper + upper;
  const double excess_of_upper = nearest_multiple<120>(upper_sum);
  return {(x.top + top) + excess_of_upper, upper_sum - excess_of_upper,
          (x.middle + excess_of_lowest) + middle, (x.lowest - excess_of_lowest) + (below_upper - middle)};
}

// X + y rounded once, for |y| < 2^220.
KINTSUGI_HOST_DEVICE inline CertainlyRounded<double> sum_of_unlike_magnitudes(const WideIntegerParts& x,
                                                                              double y) {
  const WideIntegerParts::Sums sums = x.sums();
  const ValueAndError<double> sum = two_sum(y, sums.sum);
  const double rest = sum.error + (sums.error_of_top + (sums.error_of_upper + sums.error_of_middle));
  const double magnitudes = std::fabs(sum.error) + std::fabs(sums.error_of_top) +
                            std::fabs(sums.error_of_upper) + std::fabs(sums.error_of_middle);
  const double deviation =
      0x1p-50 * magnitudes;  // covers the errors of rest, of itself and of the next two sums
  const double least = sum.value + (rest - deviation);
  return {least, least == sum.value + (rest + deviation)};
}

}  // namespace update_detail

// X u + c rounded once, for the same u as rounded_product(); c if it is infinite or NaN. `inverse` is 1 / u.
// The result may be uncertain for an old element of unlike magnitude, and is for 0 < |c| < 2^-900 |u|.
KINTSUGI_HOST_DEVICE inline CertainlyRounded<double> rounded_update(const WideIntegerParts& integer,
                                                                    double unit, double inverse, double c) {
  using namespace update_detail;
  const double old = c * inverse;
  // + 0.0 turns -0 into 0.
  if (is_between<40, 170>(old) || c == 0)
    return {std::fma(sum_of_parts(integer, old).rounded(), unit, 0.0), true};
  // |X| < 2^158 is less than a quarter of the last bit of such an element.
  if (!(std::fabs(old) < 0x1p220)) return {c, true};
  const CertainlyRounded<double> sum = sum_of_unlike_magnitudes(integer, old);
  return {std::fma(sum.value, unit, 0.0), sum.is_certain && std::fabs(old) >= 0x1p-900};
}

// Test whether every number within a deviation of an integer rounds to the same double, and this double. The
// integer is the sum of four doubles (WideIntegerParts).
//
// With X = A + B + C + D and the sums and errors of WideIntegerParts::rounded(),
//   c + d = C + D,  b + c' = B + c,  a + b' = A + b,
// X = a + (b' + c' + d) exactly. Let h be half of the last place of a. All numbers whose distance from a is
// less than h round to a, or less than h / 2 if a is a power of two. X is at most |b' + c' + d| away from a.
// The computed r = b' + (c' + d) has two rounding errors. |b'| <= h, and the test demands |r| < h, so |c' +
// d| <= 2 h (1 + 2^-52) and both errors together are less than 2^-51 h. The test therefore demands
//   |r| + deviation  <  (1 - 2^-21) h,
// where the term 2^-21 h covers both errors and the error of the sum on its left.
//
// The test fails for a = 0, and for one of 2^20 other numbers where h is not much larger than the deviation.
//
// The code needs rounding to nearest and no contraction to fused operations.

// Returns the least float that is at least x, for x >= 0.
KINTSUGI_HOST_DEVICE inline float float_above(double x) {
#ifdef __CUDA_ARCH__
  return __double2float_ru(x);
#else
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? std::nextafter(nearest, std::numeric_limits<float>::infinity())
                                          : nearest;
#endif
}

// RoundingErrors in floats, with half of the magnitudes. A float that is too large becomes infinite.
struct FloatBound {
  float errors = 0;
  float magnitudes = 0;
  float largest = 0;

  // `unit`: power of two by which all vectors' integers are multiplied. With the sums of errors E, magnitudes
  // M and largest integers L, largest_deviation() is min(E_a L_b, M_b / 2), the same with a and b exchanged,
  // and min(E_a, E_b) / 2. The last term is part of the first one here, as min(E_a (L_b + 1/2), (M_b + E_b) /
  // 2).
  KINTSUGI_HOST_DEVICE static FloatBound of(const RoundingErrors& vector, double unit) {
    constexpr double slack = 1 + 0x1p-18;  // more than the factor of largest_deviation()
    return {float_above(slack * vector.errors),
            float_above(0.5 * slack * unit * (vector.magnitudes + vector.errors)),
            float_above(vector.largest == 0 ? 0 : unit * (vector.largest + 0.5))};
  }
};

// Upper bound of largest_deviation() times the unit of the bounds.
KINTSUGI_HOST_DEVICE inline float deviation_above(const FloatBound& a, const FloatBound& b) {
#ifdef __CUDA_ARCH__
  return __fadd_ru(fminf(__fmul_ru(a.errors, b.largest), b.magnitudes),
                   fminf(__fmul_ru(b.errors, a.largest), a.magnitudes));
#else
  const auto beside = [](const FloatBound& rounded, const FloatBound& other) {
    const double product = static_cast<double>(rounded.errors) * static_cast<double>(other.largest);
    return std::fmin(float_above(product), other.magnitudes);
  };
  return float_above(static_cast<double>(beside(a, b)) + static_cast<double>(beside(b, a)));
#endif
}

namespace certain_detail {

// Returns a double of at least x, for x >= 0, in fewer instructions than a conversion. An infinite x gives
// 2^128 or more.
KINTSUGI_HOST_DEVICE constexpr double double_above(float x) {
  constexpr std::uint32_t exponent_difference = 1023 - 127;
  const std::uint32_t upper = (std::bit_cast<std::uint32_t>(x) >> 3) + (exponent_difference << 20) + 1;
  return std::bit_cast<double>(both_words(upper, 0));
}

// Returns (1 - 2^-21) h of a, (1 - 2^-21) h / 2 for a power of two, and a negative number for a = 0. |a| is 0
// or at least 1.
KINTSUGI_HOST_DEVICE constexpr double distance_limit(double a) {
  const auto bits = std::bit_cast<std::uint64_t>(a);
  constexpr std::uint32_t fraction = 0xfffff;
  constexpr std::uint32_t exponent = 0x7ff00000;
  const bool is_power_of_two = ((high_word(bits) & fraction) | low_word(bits)) == 0;
  const std::uint32_t upper = ((high_word(bits) & exponent) - (54U << 20)) | fraction;
  return std::bit_cast<double>(both_words(upper - (is_power_of_two ? 1U << 20 : 0), 0));
}

}  // namespace certain_detail

// Sets `rounded` to the double to which all numbers from X - deviation to X + deviation round, and returns
// true. Returns false if there is no such double, or if the test does not find it. |X| must be less than
// 2^160, so that h is less than an infinite deviation in double_above().
KINTSUGI_HOST_DEVICE inline bool round_if_certain(const WideIntegerParts& x, float deviation,
                                                  double& rounded) {
  const WideIntegerParts::Sums sums = x.sums();
  const double rest = sums.error_of_top + (sums.error_of_upper + sums.error_of_middle);
  rounded = sums.sum;
  return std::fabs(rest) + certain_detail::double_above(deviation) < certain_detail::distance_limit(sums.sum);
}

}  // namespace kintsugi::core
