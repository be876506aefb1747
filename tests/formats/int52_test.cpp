// Tests the conversion to 52-bit words: rounding, saturation and sign extension.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mpfr_reference.hpp"

namespace kintsugi::core {
namespace {

double int52_and_back(double x, Rounding rounding) { return decode(int52, encode(int52, x, rounding)); }

// nearbyint rounds to nearest even, which the test's environment has not changed.
double expected_of_int52(double x, Rounding rounding) {
  const double rounded = rounding == Rounding::nearest_even ? std::nearbyint(x) : std::trunc(x);
  return std::clamp(rounded, -0x1p51, 0x1p51 - 1);
}

TEST(Int52, RoundsQuartersAroundEveryPowerOfTwo) {
  for (int exponent = -3; exponent <= 60; ++exponent) {
    for (int quarters = -9; quarters <= 9; ++quarters) {
      const double x = std::ldexp(1.0, exponent) + quarters / 4.0;
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::towards_zero, Rounding::bit_cut}) {
        EXPECT_EQ(int52_and_back(x, rounding), expected_of_int52(x, rounding)) << x;
        EXPECT_EQ(int52_and_back(-x, rounding), expected_of_int52(-x, rounding)) << -x;
      }
    }
  }
}

TEST(Int52, SaturatesAndHasNoNan) {
  for (const double x : {0x1p51, 0x1p52, 0x1p53 + 2, 0x1p63, 0x1p64, 1e300, testing::infinity}) {
    EXPECT_EQ(int52_and_back(x, Rounding::nearest_even), 0x1p51 - 1) << x;
    EXPECT_EQ(int52_and_back(-x, Rounding::nearest_even), -0x1p51) << x;
  }
  EXPECT_EQ(encode(int52, testing::not_a_number), 0U);
}

TEST(Int52, NegativePatternsAreSignExtended) {
  EXPECT_EQ(encode(int52, -1.0), ~std::uint64_t{0});
  EXPECT_EQ(decode(int52, encode(int52, -0x1p51)), -0x1p51);
}

}  // namespace
}  // namespace kintsugi::core
