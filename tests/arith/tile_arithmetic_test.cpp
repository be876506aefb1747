// Elements of tiles against the definitions in docs/schemes/mixpert.md, written out in long double.
#include "arith/tile_arithmetic.hpp"

#include <gtest/gtest.h>

#include <cfloat>
#include <random>
#include <vector>

#include "tests/support/effort.hpp"

namespace kintsugi::core {
namespace {

const std::vector<float> edge_cases{
    1.0F,
    0x1.fffff0p0F,  // the last 21-bit number below 2
    0x1.fffff8p0F,  // a tie, which rounds to 2
    0x1.fffff6p0F, 0x1.fffffep0F, 0x1.fff8p0F,
    0x1.fffcp0F,  // the same for 14 bits
    0x1.fffbfep0F, 0x1.fffep0F,   -0x1.fffffep0F, 0x1.000008p0F,  0x1.000018p0F,    0x1.0004p0F,
    0x1.000cp0F,   FLT_MAX,       -FLT_MAX,       FLT_MIN,        0x1.fffffcp-127F, 0x1.fffffcp-128F,
    0x1p-149F,     0x3p-149F,     0x1fffffp-149F, 0x3fffffp-149F, 0x7fffffp-149F,   0x3ffdp-149F};

std::vector<float> some_numbers(int count) {
  std::vector<float> numbers = edge_cases;
  std::mt19937 random(5);
  while (static_cast<int>(numbers.size()) < count) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(x) && x != 0) numbers.push_back(x);
  }
  return numbers;
}

// The integer nearest to |x| 2^shift, ties to even; |x| 2^shift is exact in long double.
std::uint64_t nearest(float x, int shift) {
  const long double scaled = std::ldexp(std::fabs(static_cast<long double>(x)), shift);
  if (scaled < 0.25L) return 0;
  return static_cast<std::uint64_t>(std::llrint(scaled));
}

TEST(TileElements, ExponentsAreThoseOfRoundedMagnitudes) {
  for (const float x : some_numbers(test::thorough ? 200000 : 5000)) {
    for (const int segments : {2, 3, 4}) {
      const int exponent = std::ilogb(x);
      const std::uint64_t rounded = nearest(x, 7 * segments - 1 - exponent);
      const int expected = exponent + (rounded >> (7 * segments) != 0 ? 1 : 0);
      ASSERT_EQ(rounded_exponent(x, segments), expected) << x << " " << segments;
      // The formula of the page for normal numbers.
      if (std::isnormal(x)) {
        const std::uint32_t half = segments == 2 ? 512 : segments == 3 ? 4 : 0;
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
        ASSERT_EQ(static_cast<int>((bits + half) >> 23) - 127, expected) << x << " " << segments;
      }
    }
  }
  EXPECT_EQ(rounded_exponent(FLT_MAX, 3), 128);
  EXPECT_EQ(rounded_exponent(FLT_MAX, 4), 127);
}

TEST(TileElements, IntegersAreRoundedOnceInTheTilesUnit) {
  std::mt19937 random(6);
  for (const float x : some_numbers(test::thorough ? 200000 : 5000)) {
    for (const int segments : {2, 3, 4}) {
      for (const int above : {0, 1, static_cast<int>(random() % 40)}) {
        const int exponent = rounded_exponent(x, segments) + above;
        const std::uint32_t integer = tile_integer(x, exponent, segments);
        ASSERT_EQ(integer, nearest(x, 7 * segments - 1 - exponent)) << x << " " << segments << " " << above;
        ASSERT_LT(integer, 1U << (7 * segments));
      }
    }
  }
  EXPECT_EQ(tile_integer(0.0F, 3, 3), 0U);
}

TEST(TileElements, SegmentsHaveTheSignAndAddUp) {
  for (const float x : some_numbers(5000)) {
    for (const int segments : {2, 3, 4}) {
      const std::uint32_t integer = tile_integer(x, rounded_exponent(x, segments), segments);
      std::int64_t sum = 0;
      for (int s = 0; s < segments; ++s) {
        const int segment = tile_segment(integer, x < 0, segments, s);
        ASSERT_LE(std::abs(segment), 127);
        ASSERT_TRUE(segment == 0 || (segment < 0) == (x < 0));
        sum = sum * 128 + segment;
      }
      ASSERT_EQ(sum, x < 0 ? -std::int64_t{integer} : std::int64_t{integer});
      ASSERT_GE(std::abs(int{tile_segment(integer, x < 0, segments, 0)}), 64);  // the explicit leading one
    }
  }
}

TEST(TileElements, ValueOfFourSumsIsThatOfItsFmas) {
  std::mt19937 random(7);
  for (int draw = 0; draw < 100000; ++draw) {
    const auto sum = [&](int products) {
      const std::int32_t limit = 32 * products * 127 * 127;
      return static_cast<std::int32_t>(random() % (2U * static_cast<std::uint32_t>(limit) + 1)) - limit;
    };
    const std::int32_t s0 = sum(1), s1 = sum(2), s2 = sum(3), s3 = sum(4);
    const float high = std::fma(static_cast<float>(s0), 128.0F, static_cast<float>(s1));
    const float low = std::fma(static_cast<float>(s2), 128.0F, static_cast<float>(s3));
    ASSERT_EQ(tile_value(s0, s1, s2, s3), std::fma(low, 0x1p-14F, high));
  }
  // The deepest tile of the largest segments.
  const std::int32_t square = 256 * 127 * 127;
  EXPECT_EQ(tile_value(square, 2 * square, 3 * square, 4 * square),
            static_cast<float>(std::int64_t{square} * 130) +
                0x1p-14F * static_cast<float>(std::int64_t{square} * 388));
}

TEST(TileElements, WeightsArePowersOfTwo) {
  for (int difference = -160; difference <= 28; ++difference)
    EXPECT_EQ(tile_weight(difference), difference < -126 ? 0.0F : std::ldexp(1.0F, difference));
}

TEST(TileDepths, SumBinadesBelowTheLargest) {
  TileExponentSum depth;
  for (const int exponent : {3, -7, 3, 1}) depth.add(exponent);  // 0 + 10 + 0 + 2 binades below
  EXPECT_EQ(depth.largest, 3);
  EXPECT_TRUE(depth.exceeds(2));
  EXPECT_FALSE(depth.exceeds(3));  // 12 = 4 * 3: the sum of Eq. 9 is 0
  EXPECT_FALSE(TileExponentSum{}.exceeds(0));
}

TEST(HalfPrecision, IntegersHave48BitsBelowThePiecesExponent) {
  std::mt19937 random(8);
  for (const float x : some_numbers(test::thorough ? 100000 : 5000)) {
    for (const int above : {0, 24, 27, static_cast<int>(random() % 60)}) {
      const int exponent = std::ilogb(x) + above;
      const std::uint64_t integer = half_integer(x, exponent);
      ASSERT_EQ(integer, nearest(x, 47 - exponent)) << x << " " << above;
      ASSERT_LT(integer, std::uint64_t{1} << 48);
      std::int64_t sum = 0;
      for (int s = 0; s < half_digits; ++s) {
        ASSERT_LE(std::abs(int{half_digit(integer, x < 0, s)}), 255);
        sum = sum * 256 + half_digit(integer, x < 0, s);
      }
      ASSERT_EQ(sum, x < 0 ? -static_cast<std::int64_t>(integer) : static_cast<std::int64_t>(integer));
    }
  }
}

TEST(HalfPrecision, ValuesAreSumsOfDigitProducts) {
  const std::int32_t largest = 6 * 32 * 255 * 255;
  static_assert(largest < 1 << 24);
  const std::int32_t sums[half_digits] = {largest, -3, 0, 7, largest, 1};
  double expected = 0;
  for (int w = 0; w < half_digits; ++w) expected += std::ldexp(double{static_cast<double>(sums[w])}, -8 * w);
  EXPECT_EQ(half_value(sums), static_cast<float>(expected));
}

}  // namespace
}  // namespace kintsugi::core
