// Test whether every number within a deviation of an integer rounds to the same double, and this double. The
// integer is the sum of four doubles (wide_integer_update.hpp).
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
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "arith/exact/exact_rounding.hpp"
#include "arith/host_device.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "arith/residue/wide_integer_update.hpp"

namespace kintsugi::core {

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
  const double c = x.middle + x.lowest;
  const double d = x.lowest - (c - x.middle);
  const double b = x.upper + c;
  const double error_of_b = c - (b - x.upper);
  const double a = x.top + b;
  const double error_of_a = b - (a - x.top);
  const double rest = error_of_a + (error_of_b + d);
  rounded = a;
  return std::fabs(rest) + certain_detail::double_above(deviation) < certain_detail::distance_limit(a);
}

}  // namespace kintsugi::core
