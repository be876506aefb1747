// Compares ExactSum with MPFR at a precision that holds every sum exactly, and draws numbers of all
// exponents.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/measure/special_numbers.hpp"
#include "tests/support/mpfr_value.hpp"
#include "tools/measure/generators/random.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::measure {

using testing::Mpfr;
using testing::power_of_two;

inline constexpr double double_max = std::numeric_limits<double>::max();
inline constexpr double double_tiny = std::numeric_limits<double>::denorm_min();
inline constexpr float float_max = std::numeric_limits<float>::max();
inline constexpr float float_tiny = std::numeric_limits<float>::denorm_min();

// Draws a finite bit pattern, so that all exponents are equally likely, with subnormals.
inline double any_double(Random& random) {
  for (;;) {
    const double x = std::bit_cast<double>(random.bits());
    if (std::isfinite(x)) return x;
  }
}

inline float any_float(Random& random) {
  for (;;) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
    if (std::isfinite(x)) return x;
  }
}

// Sets `result` to the sum, with a precision that makes it exact.
inline void to_mpfr(const ExactSum& sum, mpfr_t result) {
  const ExactSum::Magnitude parts = sum.magnitude();
  if (!sum.is_finite() || parts.last < parts.first) {
    mpfr_set_prec(result, 53);
    mpfr_set_d(result, sum.to_double(), MPFR_RNDN);
    return;
  }
  mpz_t integer;
  mpz_init(integer);
  const auto count = static_cast<std::size_t>(parts.last - parts.first + 1);
  mpz_import(integer, count, -1, sizeof(std::uint32_t), 0, 0, parts.digit.data() + parts.first);
  if (parts.negative) mpz_neg(integer, integer);
  mpfr_set_prec(result, static_cast<mpfr_prec_t>(count) * ExactSum::digit_bits);
  mpfr_set_z_2exp(result, integer, parts.first * ExactSum::digit_bits - ExactSum::one_position, MPFR_RNDN);
  mpz_clear(integer);
}

// Succeeds if exact value, sign, exponent and the roundings to float and double agree.
inline ::testing::AssertionResult same(const ExactSum& sum, const Mpfr& expected) {
  if (!expected.exact()) return ::testing::AssertionFailure() << "the reference was rounded";
  mpfr_t value;
  mpfr_init(value);
  to_mpfr(sum, value);
  const bool equal = mpfr_equal_p(value, expected.get()) != 0;
  mpfr_clear(value);
  if (!equal)
    return ::testing::AssertionFailure() << "exact values differ; MPFR has " << expected.to_double();
  if (sum.to_double() != expected.to_double()) {
    return ::testing::AssertionFailure() << "double " << sum.to_double() << ", MPFR " << expected.to_double();
  }
  if (sum.to_float() != expected.to_float()) {
    return ::testing::AssertionFailure() << "float " << sum.to_float() << ", MPFR " << expected.to_float();
  }
  const int sign = expected.sign() > 0 ? 1 : expected.sign() < 0 ? -1 : 0;
  if (sum.sign() != sign || sum.is_zero() != (sign == 0)) return ::testing::AssertionFailure() << "sign";
  if (sign != 0) {
    const Scaled scaled = sum.to_scaled();
    if (sum.exponent() != mpfr_get_exp(expected.get()) - 1)
      return ::testing::AssertionFailure() << "exponent";
    long exponent = 0;
    const double fraction = mpfr_get_d_2exp(&exponent, expected.get(), MPFR_RNDN);
    if (scaled.fraction != fraction || scaled.exponent != exponent)
      return ::testing::AssertionFailure() << "scaled";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace kintsugi::measure
