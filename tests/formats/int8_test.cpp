// Tests the conversion to int8: every half-integer, its neighbours, and saturation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mpfr_reference.hpp"

namespace kintsugi::core {
namespace {

double int8_and_back(double x, Rounding rounding) { return decode(int8, encode(int8, x, rounding)); }

// nearbyint rounds to nearest even, which the test's environment has not changed.
double expected_of_int8(double x, Rounding rounding) {
  const double rounded = rounding == Rounding::nearest_even ? std::nearbyint(x) : std::trunc(x);
  return std::clamp(rounded, -128.0, 127.0);
}

TEST(Int8, RoundsEveryHalfIntegerAndItsNeighbours) {
  for (int twice = -600; twice <= 600; ++twice) {
    const double x = twice / 2.0;
    for (const double y : {x, std::nextafter(x, -1e9), std::nextafter(x, 1e9), x + 0.25}) {
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::towards_zero, Rounding::bit_cut}) {
        EXPECT_EQ(int8_and_back(y, rounding), expected_of_int8(y, rounding)) << y;
      }
    }
  }
}

TEST(Int8, Saturates) {
  for (const double x : {128.0, 1e3, 8191.5, 8192.0, 1e5, 0x1p31, 0x1p52, 1e300, testing::infinity}) {
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::towards_zero, Rounding::bit_cut}) {
      EXPECT_EQ(int8_and_back(x, rounding), 127) << x;
      EXPECT_EQ(int8_and_back(-x, rounding), -128) << x;
    }
  }
  EXPECT_EQ(int8_and_back(127.5, Rounding::nearest_even), 127);
  EXPECT_EQ(int8_and_back(-128.5, Rounding::nearest_even), -128);
  EXPECT_EQ(int8_and_back(-127.5, Rounding::nearest_even), -128);
}

TEST(Int8, SmallValuesAndNanBecomeZero) {
  for (const double x : {0.0, 0.25, 0.5, 0x1p-60, 0x1p-1022, 0x1p-1074}) {
    EXPECT_EQ(encode(int8, x), 0U) << x;
    EXPECT_EQ(encode(int8, -x), 0U) << x;
  }
  EXPECT_EQ(int8_and_back(std::nextafter(0.5, 1.0), Rounding::nearest_even), 1);
  EXPECT_EQ(encode(int8, testing::not_a_number), 0U);
  EXPECT_EQ(encode(int8, -testing::not_a_number), 0U);
}

}  // namespace
}  // namespace kintsugi::core
