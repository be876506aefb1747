// Tests two_sum and two_product: value is the rounded result, value + error the exact one.
#include "formats/double_double.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tools/measure/generators/random.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::core {
namespace {

using measure::ExactSum;
using measure::Random;

template <class T>
T rounded(const ExactSum& sum) {
  if constexpr (sizeof(T) == 4) {
    return sum.to_float();
  } else {
    return sum.to_double();
  }
}

// Draws a finite value of T; each exponent of [first, last] is equally likely.
template <class T>
T draw(Random& random, int first, int last) {
  const double significand = 1 + random.unit();
  const auto exponent = static_cast<int>(random.integer(first, last));
  const T magnitude = std::ldexp(static_cast<T>(significand), exponent);
  return random.flip() ? -magnitude : magnitude;
}

template <class T>
::testing::AssertionResult exact_sum(T a, T b, ValueAndError<T> result) {
  ExactSum sum;
  sum.add(static_cast<double>(a));
  sum.add(static_cast<double>(b));
  if (rounded<T>(sum) != result.value) return ::testing::AssertionFailure() << a << " + " << b << ": value";
  sum.add(-static_cast<double>(result.value));
  sum.add(-static_cast<double>(result.error));
  if (!sum.is_zero())
    return ::testing::AssertionFailure() << a << " + " << b << ": off by " << sum.to_double();
  return ::testing::AssertionSuccess();
}

template <class T>
::testing::AssertionResult exact_product(T a, T b, ValueAndError<T> result) {
  ExactSum sum;
  sum.add_product(a, b);
  if (rounded<T>(sum) != result.value) return ::testing::AssertionFailure() << a << " * " << b << ": value";
  sum.add(-static_cast<double>(result.value));
  sum.add(-static_cast<double>(result.error));
  if (!sum.is_zero())
    return ::testing::AssertionFailure() << a << " * " << b << ": off by " << sum.to_double();
  return ::testing::AssertionSuccess();
}

template <class T>
class ErrorFree : public ::testing::Test {
 protected:
  static constexpr int precision = std::numeric_limits<T>::digits;
  static constexpr int lowest = std::numeric_limits<T>::min_exponent - precision;  // of subnormals
  static constexpr int highest = std::numeric_limits<T>::max_exponent - 1;
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ErrorFree, Types);

TYPED_TEST(ErrorFree, TwoSumIsExactForAllExponents) {
  Random random(1);
  for (int trial = 0; trial < 100'000; ++trial) {
    const auto a = draw<TypeParam>(random, this->lowest, this->highest - 1);
    const auto b = draw<TypeParam>(random, this->lowest, this->highest - 1);
    ASSERT_TRUE(exact_sum(a, b, two_sum(a, b)));
  }
}

TYPED_TEST(ErrorFree, TwoSumIsExactForNearbyExponents) {
  Random random(2);
  for (int trial = 0; trial < 100'000; ++trial) {
    const int exponent = static_cast<int>(random.integer(this->lowest + 70, this->highest - 70));
    const auto a = draw<TypeParam>(random, exponent, exponent);
    const auto b = draw<TypeParam>(random, exponent - this->precision - 2, exponent + this->precision + 2);
    ASSERT_TRUE(exact_sum(a, b, two_sum(a, b)));
    ASSERT_TRUE(exact_sum(b, a, two_sum(b, a)));
  }
}

// The last bit of a product of numbers with exponents e and f has the exponent e + f - 2 (p - 1).
TYPED_TEST(ErrorFree, TwoProductIsExactWithinItsPrecondition) {
  Random random(3);
  const int least = this->lowest + 2 * (this->precision - 1);
  for (int trial = 0; trial < 100'000; ++trial) {
    const int first = static_cast<int>(random.integer(least / 2, this->highest / 2 - 1));
    const auto a = draw<TypeParam>(random, first, first);
    const auto b = draw<TypeParam>(random, std::max(least - first, least / 2), this->highest / 2 - 1);
    ASSERT_TRUE(exact_product(a, b, two_product(a, b)));
  }
  for (int trial = 0; trial < 10'000; ++trial) {
    const auto a = draw<TypeParam>(random, least / 2, least / 2);
    const auto b = draw<TypeParam>(random, least - least / 2, least - least / 2);
    ASSERT_TRUE(exact_product(a, b, two_product(a, b)));  // down to the smallest subnormal
  }
}

// Below the precondition the error itself is rounded.
TYPED_TEST(ErrorFree, TwoProductIsInexactBelowItsPrecondition) {
  const TypeParam odd = 1 + std::numeric_limits<TypeParam>::epsilon();
  const TypeParam a = std::ldexp(odd, (this->lowest + 2 * this->precision) / 2 - 3);
  EXPECT_FALSE(exact_product(a, a, two_product(a, a)));
}

TYPED_TEST(ErrorFree, CheckRefusesAWrongErrorOrValue) {
  const TypeParam third = TypeParam{1} / 3;
  const TypeParam tenth = TypeParam{1} / 10;
  EXPECT_TRUE(exact_sum(third, tenth, two_sum(third, tenth)));
  EXPECT_FALSE(exact_sum(third, tenth, {third + tenth, 0}));
  EXPECT_TRUE(exact_product(third, tenth, two_product(third, tenth)));
  EXPECT_FALSE(exact_product(third, tenth, {third * tenth, 0}));
  EXPECT_FALSE(exact_sum(third, tenth, {std::nextafter(third + tenth, TypeParam{1}), 0}));
}

TEST(ErrorFreeExamples, HaveTheirKnownErrors) {
  constexpr auto sum = two_sum(1.0, 0x1p-60);
  static_assert(sum.value == 1 && sum.error == 0x1p-60);
  const auto product = two_product(1 + 0x1p-30, 1 + 0x1p-30);
  EXPECT_EQ(product.value, 1 + 0x1p-29);
  EXPECT_EQ(product.error, 0x1p-60);
  const auto single = two_product(1 + 0x1p-12F, 1 + 0x1p-12F);
  EXPECT_EQ(single.value, 1 + 0x1p-11F);
  EXPECT_EQ(single.error, 0x1p-24F);
}

}  // namespace
}  // namespace kintsugi::core
