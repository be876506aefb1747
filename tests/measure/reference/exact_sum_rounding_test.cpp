// Compares roundings of ExactSum to float and double with MPFR: ties, overflow, subnormal numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "exact_sum_reference.hpp"

namespace kintsugi::measure {
namespace {

// Sums are a tie between two neighbours, or the tie moved by as little as 2^-200 or 2^-2148.
TEST(ExactSum, TiesOfDoubleAreRoundedOnce) {
  Random random(5);
  for (int trial = 0; trial < 500; ++trial) {
    const double low = std::fabs(any_double(random));
    const double high = std::nextafter(low, infinity);
    for (const double nudge : {0.0, 0x1p-200, -0x1p-200, double_tiny, -double_tiny}) {
      ExactSum sum;
      sum.add_product(low, 0.5);
      sum.add_product(std::isinf(high) ? 0 : high, 0.5);
      sum.add_product(nudge, double_tiny);
      Mpfr expected = Mpfr(low) * Mpfr(0.5) + Mpfr(std::isinf(high) ? 0 : high) * Mpfr(0.5);
      expected += Mpfr(nudge) * Mpfr(double_tiny);
      ASSERT_TRUE(same(sum, expected)) << low << " nudged by " << nudge;
      sum.negate();
      ASSERT_EQ(sum.to_double(), -expected.to_double());
    }
  }
}

// Rounding to double first would give the wrong float.
TEST(ExactSum, TiesOfFloatAreRoundedOnce) {
  Random random(6);
  int twice_differs = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const float low = std::fabs(any_float(random));
    const float high = std::nextafter(low, std::numeric_limits<float>::infinity());
    if (std::isinf(high)) continue;
    for (const double nudge : {0.0, 0x1p-200, -0x1p-200, double_tiny, -double_tiny}) {
      ExactSum sum;
      sum.add_product(static_cast<double>(low), 0.5);
      sum.add_product(static_cast<double>(high), 0.5);
      sum.add(nudge);
      ASSERT_TRUE(same(sum, Mpfr(low) * Mpfr(0.5) + Mpfr(high) * Mpfr(0.5) + Mpfr(nudge)))
          << low << " " << nudge;
      if (static_cast<float>(sum.to_double()) != sum.to_float()) ++twice_differs;
    }
  }
  EXPECT_GT(twice_differs, 500) << "the cases must distinguish one rounding from two";
}

TEST(ExactSum, OverflowBeginsAtTheTieBeyondTheLargestNumber) {
  // DBL_MAX + half a unit in its last place is the tie with 2^1024; anything less stays finite.
  const double half_unit = 0x1p970;
  for (const double nudge : {-double_tiny, 0.0, double_tiny}) {
    ExactSum sum;
    sum.add(double_max);
    sum.add(half_unit);
    sum.add(nudge);
    EXPECT_EQ(sum.to_double(), nudge < 0 ? double_max : infinity);
    sum.negate();
    EXPECT_EQ(sum.to_double(), nudge < 0 ? -double_max : -infinity);
  }
  for (const double nudge : {-double_tiny, 0.0, double_tiny}) {
    ExactSum sum;
    sum.add(float_max);
    sum.add(0x1p103);
    sum.add(nudge);
    EXPECT_EQ(sum.to_float(), nudge < 0 ? float_max : std::numeric_limits<float>::infinity());
  }
  ExactSum cancels;  // 2e308 - 2e308 is exactly 0
  cancels.add_product(1e308, 2.0);
  cancels.add_product(1e308, -2.0);
  EXPECT_TRUE(cancels.is_zero());
}

TEST(ExactSum, SubnormalTiesAreRoundedOnce) {
  for (const int odd : {1, 3, 5, 7}) {
    for (const double nudge : {-1.0, 0.0, 1.0}) {
      ExactSum sum;
      sum.add_product(odd * double_tiny, 0.5);
      sum.add_product(nudge * double_tiny, double_tiny);
      Mpfr expected = Mpfr(odd * double_tiny) * Mpfr(0.5) + Mpfr(nudge * double_tiny) * Mpfr(double_tiny);
      ASSERT_TRUE(same(sum, expected)) << odd << " " << nudge;
      ExactSum single;
      single.add(odd * 0x1p-150);
      single.add_product(nudge, double_tiny);
      ASSERT_TRUE(same(single, Mpfr(odd * 0x1p-150) + Mpfr(nudge * double_tiny))) << odd << " " << nudge;
    }
  }
}

}  // namespace
}  // namespace kintsugi::measure
