// Test whether all numbers within a deviation of an integer round alike, against wide integers.
#include "arith/residue/integer_update.hpp"

#include <gtest/gtest.h>

#include <random>

#include "recombine/element_check.hpp"

namespace kintsugi::core {
namespace certain_rounding {
namespace {

using Integer = WideInteger<3>;

double signed_piece(std::mt19937_64& random, int bits, int unit) {
  const auto magnitude = static_cast<double>(random() >> (64 - bits)) * power_of_two(unit);
  return random() % 2 == 0 ? magnitude : -magnitude;
}

// Parts as large as WideIntegerParts allows, some of them 0, or opposite ones that nearly cancel.
WideIntegerParts draw_parts(std::mt19937_64& random) {
  WideIntegerParts x{signed_piece(random, 1 + static_cast<int>(random() % 38), 120),
                     signed_piece(random, 1 + static_cast<int>(random() % 39), 80),
                     signed_piece(random, 1 + static_cast<int>(random() % 41), 40),
                     signed_piece(random, 1 + static_cast<int>(random() % 47), 0)};
  if (random() % 3 == 0) x.top = 0;
  if (random() % 4 == 0) x.upper = 0;
  if (random() % 5 == 0) x.middle = 0;
  if (random() % 5 == 0) x.lowest = 0;
  if (random() % 8 == 0) {
    x.upper = random() % 2 == 0 ? 0x1p119 : -0x1p119;
    x.top = random() % 2 == 0 ? 0x1p120 : -0x1p120;
  }
  if (random() % 8 == 0) x.lowest = random() % 2 == 0 ? 1 : -1;
  return x;
}

ExactNumber<3> number_of(const WideIntegerParts& x) {
  Integer sum;
  for (const double part : {x.top, x.upper, x.middle, x.lowest}) {
    const format_detail::Parts parts = format_detail::take_apart(part);
    const Integer magnitude =
        Integer::shifted(WideInteger<1>{{parts.significand}}, part == 0 ? 0 : parts.exponent - 52);
    if (parts.negative) {
      sum.subtract(magnitude);
    } else {
      sum.add_multiple(magnitude, 1);
    }
  }
  return signed_number(sum, 0);
}

// Half of the last place of x, at least 1/4.
double half_place(const ExactNumber<3>& x) {
  return std::ldexp(0.5, std::max(x.magnitude.length() - 53, -1));
}

// A deviation of any size, or one that nearly reaches the end of the interval whose numbers round alike.
float draw_deviation(std::mt19937_64& random, const ExactNumber<3>& x) {
  if (random() % 6 == 0) return 0;
  if (random() % 3 == 0)
    return static_cast<float>(half_place(x) * (1 - 1.0 / static_cast<double>(random() % 4000 + 1)));
  return static_cast<float>(
      std::ldexp(static_cast<double>(random() % 1000), static_cast<int>(random() % 110)));
}

bool round_alike(const ExactNumber<3>& x, float deviation) {
  const auto offset = check_detail::integer_above<3>(static_cast<double>(deviation));
  return rounded<double>(check_detail::moved(x, offset, true)) ==
         rounded<double>(check_detail::moved(x, offset, false));
}

TEST(CertainRounding, AcceptsOnlyWhatAllNumbersRoundTo) {
  std::mt19937_64 random(71);
  int accepted = 0;
  int could_accept = 0;
  for (int i = 0; i < 2000000; ++i) {
    const WideIntegerParts x = draw_parts(random);
    const ExactNumber<3> number = number_of(x);
    const float deviation = draw_deviation(random, number);
    // Deviations below 1 round up to 1 in wide integers; they cannot show more.
    const bool alike = deviation == 0 || round_alike(number, deviation);
    double result = 0;
    const bool is_certain = round_if_certain(x, deviation, result);
    accepted += is_certain ? 1 : 0;
    could_accept += alike ? 1 : 0;
    if (!is_certain) continue;
    ASSERT_EQ(result, rounded<double>(number)) << i;
    if (deviation >= 1) {
      const auto whole = static_cast<float>(std::floor(deviation));
      ASSERT_TRUE(round_alike(number, whole)) << i << " deviation " << deviation;
    }
  }
  EXPECT_GT(accepted, 0.9 * could_accept);
}

TEST(CertainRounding, LeavesTiesAndZerosToTheExactCheck) {
  double result = 0;
  EXPECT_TRUE(round_if_certain({0, 0, 0x1p60, 0}, 0, result));
  EXPECT_EQ(result, 0x1p60);
  EXPECT_TRUE(round_if_certain({0, 0, 0x1p60, -63}, 0, result)) << "a quarter of the place above 2^60 is 64";
  EXPECT_FALSE(round_if_certain({0, 0, 0x1p60, -64}, 0, result)) << "a tie below 2^60";
  EXPECT_FALSE(round_if_certain({0, 0, 0x1p60, -32}, 40, result));
  const double odd = 0x1p60 + 0x1p50;
  EXPECT_TRUE(round_if_certain({0, 0, odd, 127}, 0, result));
  EXPECT_FALSE(round_if_certain({0, 0, odd, 128}, 0, result)) << "a tie";
  EXPECT_FALSE(round_if_certain({0, 0, odd, 100}, 29, result));
  EXPECT_TRUE(round_if_certain({0, 0, odd, -100}, 27, result));
  EXPECT_EQ(result, odd);
  EXPECT_FALSE(round_if_certain({0, 0, 0, 0}, 0, result));
  EXPECT_FALSE(round_if_certain({0x1p157, 0, 0, 0}, std::numeric_limits<float>::infinity(), result));
  EXPECT_FALSE(round_if_certain({0x1p157, 0, 0, 0}, std::numeric_limits<float>::quiet_NaN(), result));
}

RoundingErrors draw_errors(std::mt19937_64& random) {
  if (random() % 10 == 0) return {};
  const double largest = std::ldexp(1, static_cast<int>(random() % 90));
  const double errors = random() % 3 == 0 ? 0 : static_cast<double>(random() % 9000) / 3;
  const double share = static_cast<double>(random() % 10000 + 1) / 10000;
  return {errors, largest * share * (random() % 2 == 0 ? 1 : 8192), largest};
}

TEST(CertainRounding, FloatDeviationsAreNoSmaller) {
  std::mt19937_64 random(72);
  for (int i = 0; i < 1000000; ++i) {
    const RoundingErrors a = draw_errors(random);
    const RoundingErrors b = draw_errors(random);
    const double unit = std::ldexp(1, static_cast<int>(random() % 40) - 20);
    const double exact = largest_deviation(a, b) * unit;
    const auto above = static_cast<double>(deviation_above(FloatBound::of(a, unit), FloatBound::of(b, unit)));
    ASSERT_GE(above, exact) << i;
    ASSERT_GE(certain_detail::double_above(static_cast<float>(above)), above) << i;
    // The floats are nearly as sharp where min(E_a, E_b) / 2 is small.
    if (exact > 0x1p20 * unit * std::max(a.errors, b.errors)) ASSERT_LE(above, exact * 1.0001) << i;
    if (a.errors == 0 && b.errors == 0) ASSERT_EQ(above, 0) << i;
  }
}

// The deviation of random products from the products of their integers.
TEST(CertainRounding, DeviationsBoundTheErrorsOfProducts) {
  std::mt19937_64 random(73);
  const auto draw = [&](double range) {
    return std::ldexp(static_cast<double>(random() >> 11), -53) *
           std::exp2(static_cast<double>(random() % 100) / 100 * range);
  };
  for (int i = 0; i < 20000; ++i) {
    RoundingErrors errors[2];
    double product = 0;  // of numbers, less that of integers; |numbers| < 2^20, so double is exact enough
    const double range = static_cast<double>(random() % 20);
    const auto integers_share = random() % 4;
    for (int p = 0; p < 20; ++p) {
      double x[2];
      double integer[2];
      for (int side = 0; side < 2; ++side) {
        x[side] = draw(range) * (random() % 2 == 0 ? 1 : -1);
        if (random() % 4 < integers_share) x[side] = std::rint(x[side]);
        integer[side] = std::rint(x[side]);
        errors[side].errors += std::fabs(x[side] - integer[side]);
        errors[side].magnitudes += std::fabs(integer[side]);
        errors[side].largest = std::max(errors[side].largest, std::fabs(integer[side]));
      }
      product += x[0] * x[1] - integer[0] * integer[1];
    }
    ASSERT_LE(std::fabs(product), largest_deviation(errors[0], errors[1]) + 0x1p-8) << i;
  }
}

}  // namespace
}  // namespace certain_rounding
}  // namespace kintsugi::core
