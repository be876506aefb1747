// Sums of an integer and an old element in doubles, against the exact epilogue.
#include "arith/residue/integer_update.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kintsugi::core {
namespace {

// An integer of up to 126 bits: random, sparse, or near powers of two.
ExactNumber<2> draw_integer(std::mt19937_64& random) {
  __extension__ using Wide = unsigned __int128;
  const auto bit = [&] { return Wide{1} << random() % 126; };
  Wide magnitude = Wide{random()} << 64 | random();
  switch (random() % 4) {
    case 0: magnitude = magnitude >> 2 >> random() % 126; break;
    case 1: magnitude = (magnitude >> 2 >> random() % 126) & ~(bit() - 1); break;
    case 2: magnitude = (bit() ^ bit()) - (random() % 2); break;
    default: magnitude = bit() + bit() - bit(); break;
  }
  magnitude &= (Wide{1} << 126) - 1;
  return {{{static_cast<std::uint64_t>(magnitude), static_cast<std::uint64_t>(magnitude >> 64)}},
          static_cast<int>(random() % (2 * max_ordinary_exponent + 1)) - max_ordinary_exponent,
          random() % 2 == 0};
}

// The integer in overlapping parts, as the sums of digits give them.
IntegerParts overlapping_parts(std::mt19937_64& random, const ExactNumber<2>& x) {
  constexpr std::uint64_t mask = (std::uint64_t{1} << 40) - 1;
  const double sign = x.negative ? -1 : 1;
  const auto part = [&](int shift, std::uint64_t bits) {
    return sign * static_cast<double>(x.magnitude.bits_from(shift) & bits) * power_of_two(shift);
  };
  const double moved_up = static_cast<double>(random() % 3) - 1;
  const double moved_down = static_cast<double>(random() % 128) - 64;
  return {part(80, ~std::uint64_t{0}) + moved_up * 0x1p80,
          part(40, mask) - moved_up * 0x1p80 + moved_down * 0x1p40, part(0, mask) - moved_down * 0x1p40};
}

double draw_significand(std::mt19937_64& random) {
  const std::uint64_t bits = random() >> 11;
  const double value =
      static_cast<double>(random() % 3 == 0 ? bits & ~std::uint64_t{0} << random() % 53 : bits);
  return random() % 2 == 0 ? value : -value;
}

// An old element: near -x, where both cancel, of x's order, of any order, or special.
double draw_old(std::mt19937_64& random, const ExactNumber<2>& x, double alpha) {
  constexpr double special[] = {0, -0.0, 5e-324, -5e-324, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023};
  const double opposite = -alpha * rounded<double>(x);
  const auto exponent = [&](int least, int count) {
    return least + static_cast<int>(random() % static_cast<unsigned>(count));
  };
  switch (random() % 8) {
    case 0: return special[random() % 6];
    case 1: return opposite;
    case 2: return std::nextafter(opposite, random() % 2 == 0 ? 1e300 : -1e300);
    case 3: return opposite + std::ldexp(opposite * draw_significand(random), -53 - exponent(0, 53));
    case 4: return std::ldexp(draw_significand(random), exponent(-1130, 2100));
    case 5: return std::ldexp(draw_significand(random), x.exponent + exponent(-75, 170));
    default: return std::ldexp(draw_significand(random), x.exponent + exponent(-20, 80));
  }
}

void expect_bits(double found, double expected, const ExactNumber<2>& x, double alpha, double old) {
  ASSERT_EQ(std::bit_cast<std::uint64_t>(found), std::bit_cast<std::uint64_t>(expected))
      << std::hexfloat << found << " instead of " << expected << ": " << alpha << " * "
      << (x.negative ? "-0x" : "0x") << std::hex << x.magnitude.limb[1] << " 2^64 + 0x" << x.magnitude.limb[0]
      << std::dec << ", 2^" << x.exponent << ", old " << old;
}

TEST(IntegerUpdate, IsTheExactSumRoundedOnce) {
  std::mt19937_64 random(31);
  for (int draw = 0; draw < 400000 && !testing::Test::HasFailure(); ++draw) {
    const ExactNumber<2> x = draw_integer(random);
    const double alpha = random() % 2 == 0 ? 1 : -1;
    const double unit = alpha * power_of_two(x.exponent);
    const IntegerParts integer = overlapping_parts(random, x);
    expect_bits(rounded_product(integer, unit), exact_epilogue<double>(x, alpha, 0, nullptr), x, alpha, 0);
    const double old = draw_old(random, x, alpha);
    expect_bits(rounded_update(integer, unit, 1 / unit, old), exact_epilogue<double>(x, alpha, 1, &old), x,
                alpha, old);
  }
}

TEST(IntegerUpdate, KeepsOldElementsThatAreNotFinite) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double low : {0, 5}) {
    const IntegerParts integer{0, 0, low};
    EXPECT_EQ(rounded_update(integer, 1, 1, infinity), infinity);
    EXPECT_EQ(rounded_update(integer, 1, 1, -infinity), -infinity);
    EXPECT_TRUE(std::isnan(rounded_update(integer, 1, 1, std::numeric_limits<double>::quiet_NaN())));
  }
}

}  // namespace
}  // namespace kintsugi::core
