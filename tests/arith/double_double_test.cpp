// Double-double results: the one rounding of exact numbers, against MPFR; sums of products, against their
// bound.
#include "arith/double_double.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "arith/pair_sum.hpp"
#include "tests/support/pair_reference.hpp"

namespace kintsugi::test {
namespace {

using core::ExactNumber;
using core::ExactSum;
using core::WideInteger;

template <int Limbs>
Mpfr value_of(const ExactNumber<Limbs>& x) {
  Mpfr value;
  for (int l = 0; l < Limbs; ++l) {
    const std::uint64_t limb = x.magnitude.limb[l];
    value += (Mpfr(static_cast<double>(limb >> 32)) * power_of_two(32) +
              Mpfr(static_cast<double>(limb & 0xffffffffU))) *
             power_of_two(x.exponent + 64 * l);
  }
  return x.negative ? Mpfr(-1.0) * value : value;
}

// Draws hi of 53 random bits, `gap` equal bits, lo of 53 bits, and then a tie, one unit above or below it, or
// nothing.
ExactNumber<6> draw_number(std::mt19937_64& random, int exponent) {
  ExactNumber<6> x;
  const int gap = static_cast<int>(random() % 120);
  const auto put = [&](std::uint64_t bits, int shift) {
    x.magnitude.add_multiple(WideInteger<6>::shifted(WideInteger<1>{{bits}}, shift), 1);
  };
  put((random() >> 11) | (std::uint64_t{1} << 52), 320);
  if (random() % 3 == 0 && gap <= 64) put(gap == 0 ? 0 : ~std::uint64_t{0} >> (64 - gap), 320 - gap);
  if (random() % 5 != 0) put(random() >> 11, 320 - gap - 53);
  if (random() % 2 == 0) put(1, 320 - gap - 54);
  if (random() % 3 == 0) put(1, 320 - gap - 54 - static_cast<int>(random() % 60));
  if (random() % 3 == 0) x.magnitude.subtract({{1}});
  x.exponent = exponent - x.magnitude.length();
  x.negative = random() % 2 == 0;
  return x;
}

void expect_pair(const DoubleDouble& computed, const Mpfr& exact, int draw) {
  const DoubleDouble expected = rounded_pair(exact);
  ASSERT_EQ(computed.hi, expected.hi) << draw;
  ASSERT_EQ(computed.lo, expected.lo) << draw;
  if (!std::isfinite(computed.hi)) return;
  ASSERT_EQ(computed.hi, computed.hi + computed.lo) << "is not normal";
}

TEST(DoubleDouble, ExactNumbersAreRoundedOnce) {
  std::mt19937_64 random(31);
  constexpr int exponents[] = {0, 1, -1074, -1073, -1050, -1022, -1021, -1000, -968, 1023, 1024, 1025};
  for (int draw = 0; draw < 20000; ++draw) {
    const ExactNumber<6> x = draw_number(random, exponents[draw % 12]);
    expect_pair(rounded_to_pair(x), value_of(x), draw);
    ExactSum sum;
    for (int l = 0; l < 6; ++l) sum.add_integer(x.magnitude.limb[l], x.exponent + 64 * l, x.negative);
    expect_pair(rounded_to_pair(sum), value_of(x), draw);
  }
}

DoubleDouble draw_pair(std::mt19937_64& random, int spread) {
  const auto word = [&](int exponent) {
    const double fraction = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    return std::ldexp(random() % 2 == 0 ? fraction : -fraction, exponent);
  };
  const int exponent = static_cast<int>(random() % (2 * static_cast<unsigned>(spread) + 1)) - spread;
  const int below = random() % 4 == 0 ? static_cast<int>(random() % 400) : 0;
  return core::normalized({word(exponent), random() % 5 == 0 ? 0 : word(exponent - 54 - below)});
}

TEST(DoubleDouble, EpilogueIsRoundedOnce) {
  std::mt19937_64 random(32);
  for (int draw = 0; draw < 20000; ++draw) {
    const int spread = draw % 3 == 0 ? 700 : draw % 3 == 1 ? 300 : 10;
    const ExactNumber<6> x = draw_number(random, static_cast<int>(random() % 200) - 100);
    const DoubleDouble alpha = random() % 4 == 0 ? 1 : draw_pair(random, spread / 3);
    DoubleDouble beta = random() % 4 == 0 ? 1 : draw_pair(random, spread / 3);
    DoubleDouble c = draw_pair(random, spread);
    if (draw % 5 == 0) {  // cancels all but what lies below
      c = core::rounded_to_pair(ExactNumber<6>{x.magnitude, x.exponent, !x.negative});
      beta = alpha;
    }
    const Mpfr exact = value_of(x) * exact_value(alpha) + exact_value(beta) * exact_value(c);
    expect_pair(core::exact_epilogue(x, alpha, beta, &c), exact, draw);
  }
}

TEST(DoubleDouble, SpecialValuesFollowIeee754) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ExactNumber<1> one{{{1}}, 0, false};
  const DoubleDouble c(-inf, 7), finite(3, 1e-20);
  EXPECT_EQ(core::exact_epilogue(one, 1, 1, &c), DoubleDouble(-inf));
  EXPECT_EQ(core::exact_epilogue(one, inf, 1, &finite), DoubleDouble(inf));
  EXPECT_TRUE(std::isnan(core::exact_epilogue(one, inf, 1, &c).hi));
  EXPECT_TRUE(std::isnan(core::exact_epilogue(ExactNumber<1>{}, inf, 0, nullptr).hi));
  EXPECT_TRUE(std::isnan(core::scaled_element(nan, finite, core::RoundingMode::nearest).hi));
  EXPECT_EQ(core::scaled_element(2, c, core::RoundingMode::nearest), DoubleDouble(-inf));
  EXPECT_EQ(core::normalized({inf, nan}), DoubleDouble(inf));
  EXPECT_EQ(core::normalized({1, 1}), DoubleDouble(2));
}

// The error is at most (3 k + 14) u^2 |a||b|, u = 2^-53, also where sums cancel.
TEST(PairSum, KeepsItsBound) {
  std::mt19937_64 random(33);
  for (int draw = 0; draw < 400; ++draw) {
    core::ScalarPairSum sum{0, 0};
    Mpfr exact, magnitudes;
    const int k = 1 + draw % 40;
    for (int p = 0; p < k; ++p) {
      DoubleDouble x = draw_pair(random, draw % 2 == 0 ? 0 : 20);
      DoubleDouble y = draw_pair(random, draw % 2 == 0 ? 0 : 20);
      if (draw % 3 == 0 && p % 2 == 1 && std::isfinite(sum.hi)) x = -sum.hi, y = 1;  // cancels the sum so far
      sum.add_product(x.hi, x.lo, y.hi, y.lo);
      const Mpfr product = exact_value(x) * exact_value(y);
      exact += product;
      magnitudes += magnitude(product);
    }
    EXPECT_EQ(sum.hi, sum.hi + sum.lo) << draw;
    EXPECT_LE(ratio(exact_value({sum.hi, sum.lo}) - exact, magnitudes), (3 * k + 14) * 0x1p-106) << draw;
  }
}

}  // namespace
}  // namespace kintsugi::test
