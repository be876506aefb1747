// Sums of an integer and an old element in doubles, against the exact epilogue.
#include "arith/residue/integer_update.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/arith/residue/drawn_updates.hpp"

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

TEST(IntegerUpdate, IsTheExactSumRoundedOnce) {
  std::mt19937_64 random(31);
  for (int draw = 0; draw < 400000 && !testing::Test::HasFailure(); ++draw) {
    const ExactNumber<2> x = draw_integer(random);
    const double alpha = random() % 2 == 0 ? 1 : -1;
    const double unit = alpha * power_of_two(x.exponent);
    const IntegerParts integer = overlapping_parts(random, x);
    expect_bits(rounded_product(integer, unit), exact_epilogue<double>(x, alpha, 0, nullptr), x, alpha, 0);
    const double old = draw_old(random, x, alpha);
    const CertainlyRounded<double> sum = rounded_update(integer, unit, 1 / unit, old);
    ASSERT_TRUE(sum.is_certain);
    expect_bits(sum.value, exact_epilogue<double>(x, alpha, 1, &old), x, alpha, old);
  }
}

TEST(IntegerUpdate, KeepsOldElementsThatAreNotFinite) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double low : {0, 5}) {
    const IntegerParts integer{0, 0, low};
    EXPECT_EQ(rounded_update(integer, 1, 1, infinity).value, infinity);
    EXPECT_EQ(rounded_update(integer, 1, 1, -infinity).value, -infinity);
    EXPECT_TRUE(std::isnan(rounded_update(integer, 1, 1, std::numeric_limits<double>::quiet_NaN()).value));
  }
}

}  // namespace
}  // namespace kintsugi::core
