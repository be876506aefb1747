// Tests the comparison of Algorithm 3 of dgemm-tc on numbers with known answers.
#include "split/successive.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kintsugi::core {
namespace {

Scaled scaled(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return {fraction, exponent};
}

// 2 sqrt(k) 2^-bits s > (d + 1) t, equality excluded.
TEST(EnoughSlices, IsAlgorithmThree) {
  EXPECT_TRUE(enough_slices(scaled(0x1p+53), scaled(3.999), 3, 64, 53));  // 16 > 15.996
  EXPECT_FALSE(enough_slices(scaled(0x1p+53), scaled(4), 3, 64, 53));
  EXPECT_FALSE(enough_slices(scaled(0x1p+53), scaled(3.999), 4, 64, 53));
  EXPECT_TRUE(enough_slices(scaled(0x1p+24), scaled(3.999), 3, 64, 24));
  EXPECT_TRUE(enough_slices(scaled(1), scaled(0), 2, 64, 53));
  EXPECT_FALSE(enough_slices(scaled(0), scaled(1), 2, 64, 53));
}

TEST(EnoughSlices, TakesExponentsFarBeyondDouble) {
  EXPECT_TRUE(enough_slices({0.5, 3000}, {0.5, -3000}, 2, 1, 53));
  EXPECT_FALSE(enough_slices({0.5, -3000}, {0.5, 3000}, 2, 1, 53));
}

TEST(WeightedVectors, AreSumsRoundedOnce) {
  const std::vector<double> values{1, 0x1p+60, -3, 0x1p-60, -0x1p+60, 5};
  const MatrixView<const double> rows{values.data(), 2, 3, 3, 1};
  std::vector<VectorRange> ranges(2);
  for (VectorRange& range : ranges) range.flags = 0;
  std::vector<double> weights(3);
  sum_vectors(rows, ranges, weights.data(), 2);
  EXPECT_EQ(weights, (std::vector<double>{1, 0x1p+61, 8}));
  std::vector<Scaled> sums(2);
  multiply_magnitudes(rows, ranges, weights.data(), sums.data(), 2);
  EXPECT_EQ(std::ldexp(sums[1].fraction, static_cast<int>(sums[1].exponent)), 0x1p+121 + 40);
  ranges[1].flags = VectorRange::has_nan;
  sum_vectors(rows, ranges, weights.data(), 1);
  EXPECT_EQ(weights, (std::vector<double>{1, 0x1p+60, 3}));
  multiply_magnitudes(rows, ranges, weights.data(), sums.data(), 1);
  EXPECT_EQ(sums[1].fraction, 0);
}

}  // namespace
}  // namespace kintsugi::core
