// Sums of an integer of up to 158 bits and an old element in doubles, against the exact epilogue.
#include "arith/residue/integer_update.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "arith/exact/exact_rounding.hpp"
#include "tests/arith/residue/drawn_updates.hpp"

namespace kintsugi::core {
namespace wide_integer_update {
namespace {

using Integer = WideInteger<3>;
constexpr int max_bits = 157;

Integer power(int bit) { return Integer::shifted(WideInteger<1>{{1}}, bit); }

// An integer of up to 157 bits: random, with zeros at its end, or near a power of two.
ExactNumber<3> draw_integer(std::mt19937_64& random) {
  const int bits = static_cast<int>(random() % (max_bits + 1));
  Integer magnitude;
  if (random() % 3 == 0) {
    magnitude = power(bits);
    if (random() % 2 == 0) magnitude.subtract(power(static_cast<int>(random() % (bits + 1))));
  } else {
    const Integer all{{random(), random(), random()}};
    const int zeros = random() % 2 == 0 ? 0 : static_cast<int>(random() % (bits + 1));
    for (int bit = zeros; bit < bits; ++bit)
      if ((all.limb[bit / 64] >> bit % 64 & 1) != 0) magnitude.add_multiple(power(bit), 1);
  }
  const int exponent = static_cast<int>(random() % (2 * max_ordinary_exponent + 1)) - max_ordinary_exponent;
  return {magnitude, exponent, random() % 2 == 0};
}

// The integer in overlapping parts, as the sums of digits give them.
WideIntegerParts overlapping_parts(std::mt19937_64& random, const ExactNumber<3>& x) {
  constexpr std::uint64_t mask = (std::uint64_t{1} << 40) - 1;
  const double sign = x.negative ? -1 : 1;
  const auto part = [&](int shift, std::uint64_t bits) {
    return sign * static_cast<double>(x.magnitude.bits_from(shift) & bits) * power_of_two(shift);
  };
  const auto moved = [&](int most) {
    return static_cast<double>(static_cast<int>(random() % (2 * static_cast<unsigned>(most) + 1)) - most);
  };
  const double to_top = part(80, mask) > 0x1p119 ? 1 : part(80, mask) < -0x1p119 ? -1 : 0;
  const double to_upper = part(40, mask) > 0x1p79 ? 1 : part(40, mask) < -0x1p79 ? -1 : 0;
  const double to_middle = moved(63);
  return {part(120, mask) + to_top * 0x1p120, part(80, mask) - to_top * 0x1p120 + to_upper * 0x1p80,
          part(40, mask) - to_upper * 0x1p80 + to_middle * 0x1p40, part(0, mask) - to_middle * 0x1p40};
}

TEST(WideIntegerUpdate, IsTheExactSumRoundedOnce) {
  std::mt19937_64 random(37);
  int uncertain = 0;
  constexpr int draws = 400000;
  for (int draw = 0; draw < draws && !testing::Test::HasFailure(); ++draw) {
    const ExactNumber<3> x = draw_integer(random);
    const double alpha = random() % 2 == 0 ? 1 : -1;
    const double unit = alpha * power_of_two(x.exponent);
    const WideIntegerParts integer = overlapping_parts(random, x);
    expect_bits(rounded_product(integer, unit), exact_epilogue<double>(x, alpha, 0, nullptr), x, alpha, 0);
    const double old = draw_old(random, x, alpha);
    const CertainlyRounded<double> sum = rounded_update(integer, unit, 1 / unit, old);
    uncertain += sum.is_certain ? 0 : 1;
    if (sum.is_certain) expect_bits(sum.value, exact_epilogue<double>(x, alpha, 1, &old), x, alpha, old);
  }
  EXPECT_LT(uncertain, draws / 20);  // old elements are often extreme here
}

// Sums of usual magnitudes need no exact epilogue, ties and cancelling sums included. Nearly all others
// neither.
TEST(WideIntegerUpdate, IsCertainForUsualMagnitudes) {
  std::mt19937_64 random(38);
  int uncertain = 0;
  constexpr int draws = 100000;
  for (int draw = 0; draw < draws; ++draw) {
    ExactNumber<3> x = draw_integer(random);
    x.exponent = 0;
    const WideIntegerParts integer = overlapping_parts(random, x);
    const double old = -rounded<double>(x) * (random() % 2 == 0 ? 1 : draw_significand(random) * 0x1p-53);
    if (std::fabs(old) >= 0x1p40 || old == 0)
      ASSERT_TRUE(rounded_update(integer, 1, 1, old).is_certain) << old;
    for (const double factor : {0x1p-130, 0x1p40, 0x1p70})
      uncertain += rounded_update(integer, 1, 1, old * factor).is_certain ? 0 : 1;
  }
  EXPECT_LT(uncertain, draws / 100);
}

TEST(WideIntegerUpdate, KeepsOldElementsThatAreNotFinite) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double low : {0, 5}) {
    const WideIntegerParts integer{0, 0, 0, low};
    EXPECT_EQ(rounded_update(integer, 1, 1, infinity).value, infinity);
    EXPECT_EQ(rounded_update(integer, 1, 1, -infinity).value, -infinity);
    EXPECT_TRUE(std::isnan(rounded_update(integer, 1, 1, std::numeric_limits<double>::quiet_NaN()).value));
    EXPECT_TRUE(rounded_update(integer, 1, 1, infinity).is_certain);
  }
}

}  // namespace
}  // namespace wide_integer_update
}  // namespace kintsugi::core
