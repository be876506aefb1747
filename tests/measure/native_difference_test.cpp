// Tests differences from the native product for special values and at the limits of double.
#include "tools/measure/native_difference.hpp"

#include <gtest/gtest.h>

#include "tests/measure/special_numbers.hpp"

namespace kintsugi::measure {
namespace {

TEST(NativeDifference, IsDefinedForSpecialAndExtremeValues) {
  EXPECT_EQ(relative_difference(3, -4), 1.75);
  EXPECT_EQ(relative_difference(-5, -4), -0.25);
  EXPECT_EQ(relative_difference(0, 0), 0);
  EXPECT_EQ(relative_difference(nan, nan), 0);
  EXPECT_EQ(relative_difference(infinity, infinity), 0);
  EXPECT_EQ(relative_difference(-1, 0), -infinity);
  EXPECT_EQ(relative_difference(1, infinity), -infinity);
  EXPECT_EQ(relative_difference(infinity, 1), infinity);
  EXPECT_TRUE(std::isinf(relative_difference(nan, 1)));
  // Differences and sums beyond double.
  EXPECT_EQ(relative_difference(0x1p1023, -0x1p1023), 2);
  EXPECT_EQ(symmetric_difference(0x1p1023, -0x1p1023), 1);
  EXPECT_EQ(symmetric_difference(0x1p-1074, 0), 1);
  EXPECT_EQ(symmetric_difference(1, infinity), infinity);
}

}  // namespace
}  // namespace kintsugi::measure
