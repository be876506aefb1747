// Tests the 128-bit sums of magnitudes of Algorithm 3 of dgemm-tc, and the numbers of slices of a block of C.
#include "arith/successive.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace kintsugi::test {
namespace {

using core::ExactSum;
using core::MagnitudeSum;
using core::Residual;
using core::Scaled;

struct Pair {
  double x;
  double y;
};

int bits_of_count(std::size_t count) {
  int bits = 0;
  while ((std::size_t{1} << bits) < count) ++bits;
  return bits;
}

MagnitudeSum sum_of(const std::vector<Pair>& pairs) {
  std::int32_t top = core::no_residual;
  for (const auto& [x, y] : pairs)
    top = std::max(top, MagnitudeSum::top(core::residual_of(x), core::residual_of(y)));
  MagnitudeSum sum(top, bits_of_count(pairs.size()));
  for (const auto& [x, y] : pairs) sum.add(core::residual_of(x), core::residual_of(y));
  return sum;
}

Scaled exactly(const std::vector<Pair>& pairs) {
  ExactSum sum;
  for (const auto& [x, y] : pairs) sum.add_product(std::fabs(x), std::fabs(y));
  return sum.to_scaled();
}

// Nothing is lost if all products lie within some twenty binades.
TEST(MagnitudeSums, AreExactForNarrowRanges) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const std::size_t count : {1U, 2U, 3U, 100U, 4097U}) {
    for (const int exponent : {-1060, -500, 0, 400}) {
      std::vector<Pair> pairs(count);
      for (Pair& pair : pairs)
        pair = {std::ldexp(1 + std::fabs(normal(random)), exponent), -(1 + std::fabs(normal(random)))};
      const Scaled got = sum_of(pairs).scaled();
      const Scaled expected = exactly(pairs);
      EXPECT_EQ(got.fraction, expected.fraction) << count << " products at 2^" << exponent;
      EXPECT_EQ(got.exponent, expected.exponent) << count << " products at 2^" << exponent;
    }
  }
}

TEST(MagnitudeSums, LoseAtMost51BitsBelowWideRanges) {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> uniform(0.5, 1);
  std::uniform_int_distribution<int> exponents(-1000, 1000);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Pair> pairs(300);
    for (Pair& pair : pairs)
      pair = {std::ldexp(uniform(random), exponents(random)), std::ldexp(uniform(random), exponents(random))};
    const double ratio = core::magnitude_ratio(sum_of(pairs).scaled(), exactly(pairs));
    EXPECT_NEAR(ratio, 1, 0x1p-51);
  }
}

TEST(MagnitudeSums, AreZeroWithoutNonZeroProducts) {
  EXPECT_EQ(sum_of({}).scaled().fraction, 0);
  EXPECT_EQ(sum_of({{0, 1}, {1, 0}, {-0.0, 5}}).scaled().fraction, 0);
  EXPECT_EQ(sum_of({{0, 1}}).finite(), 0);
}

TEST(MagnitudeSums, AreRoundedOnce) {
  // 2^53 + 1 is a tie, which 2^-60 more decides.
  EXPECT_EQ(sum_of({{0x1p53, 1}, {1, 1}}).finite(), 0x1p53);
  EXPECT_EQ(sum_of({{0x1p53, 1}, {1, 1}, {0x1p-60, 1}}).finite(), 0x1.0000000000001p53);
  // The tie is decided however far below it the last product lies.
  EXPECT_EQ(sum_of({{0x1p53, 1}, {1, 1}, {0x1p-1000, 1}}).finite(), 0x1.0000000000001p53);
  // The sum is rounded up to the next power of two.
  const Scaled up = sum_of({{0x1.fffffffffffffp0, 1}, {0x1p-53, 1}}).scaled();
  EXPECT_EQ(up.fraction, 0.5);
  EXPECT_EQ(up.exponent, 2);
  EXPECT_EQ(sum_of({{0x1p1023, 1}, {0x1p1023, 1}}).finite(), std::numeric_limits<double>::max());
  EXPECT_EQ(sum_of({{0x1p-1074, 1}, {0x1p-1074, 1}}).finite(), 0x1p-1073);
}

TEST(MagnitudeSums, DoNotDependOnTheOrder) {
  std::mt19937_64 random(9);
  std::uniform_int_distribution<int> exponents(-70, 0);
  std::vector<Pair> pairs(1000);
  for (Pair& pair : pairs) pair = {std::ldexp(1.25, exponents(random)), std::ldexp(1.75, exponents(random))};
  const MagnitudeSum first = sum_of(pairs);
  for (int trial = 0; trial < 5; ++trial) {
    std::shuffle(pairs.begin(), pairs.end(), random);
    EXPECT_EQ(sum_of(pairs).low(), first.low());
    EXPECT_EQ(sum_of(pairs).high(), first.high());
  }
}

TEST(SliceDepths, LeaveOutProductsInFastModeUnlessTheRowsAreComplete) {
  const core::SliceDepth fast = core::depth_of({5, 4}, 32, true);
  EXPECT_EQ(fast.products(0), 5);
  EXPECT_EQ(fast.products(4), 1);
  EXPECT_EQ(fast.products(5), 0);
  const core::SliceDepth square = core::depth_of({5, 4}, 32, false);
  EXPECT_EQ(square.products(4), 5);
  EXPECT_EQ(square.products(5), 0);
  const core::SliceDepth exhausted = core::depth_of({3, 3}, 32, true);
  EXPECT_EQ(exhausted.products(31), 3);
  EXPECT_EQ(exhausted.products(32), 0);
  EXPECT_EQ(core::depth_of({0, 0}, 32, true).products(0), 0);
}

TEST(SliceDepths, LeastCountIsOfTheRowsThatKeepAResidual) {
  EXPECT_EQ(core::depth_of({5, 4}, 32, true).least(), 5);
  EXPECT_EQ(core::depth_of({5, 4}, 32, false).least(), 5);
  EXPECT_EQ(core::depth_of({2, 3}, 32, true).least(), 3)
      << "rows that Algorithm 3 stopped at 3 slices keep a residual";
  EXPECT_EQ(core::depth_of({3, 3}, 32, true).least(), 3);
  EXPECT_EQ(core::depth_of({0, 3}, 32, true).least(), 32) << "no row keeps a residual";
  EXPECT_EQ((core::SliceDepth{4, 4, true}.least()), 4);
}

}  // namespace
}  // namespace kintsugi::test
