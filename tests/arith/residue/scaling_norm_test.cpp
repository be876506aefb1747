// Scales by sums of squares in double: the integers' norms must stay below the bound.
#include "arith/residue/residue_scale.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "arith/exact/exact_sum.hpp"
#include "arith/residue/residue.hpp"
#include "arith/residue/rounding_errors.hpp"

namespace kintsugi::core {
namespace scaling_norm {
namespace {

std::vector<double> draw_vector(std::mt19937_64& random) {
  std::vector<double> x(random() % 200 + 1);
  const auto base = static_cast<int>(random() % 1900) - 1000;
  const auto span = static_cast<int>(random() % 80);
  const bool is_flat = random() % 4 == 0;  // elements of one magnitude have the largest norm
  for (double& element : x) {
    const double fraction =
        is_flat ? 1 - 0x1p-53 : std::ldexp(static_cast<double>(random() >> 11), -53) - 0.5;
    element = std::ldexp(fraction, base - static_cast<int>(random() % static_cast<unsigned>(span + 1)));
    if (is_flat) element = std::ldexp(fraction, base);
  }
  return x;
}

double sum_of_squares(const std::vector<double>& x) {
  double sum = 0;
  for (const double element : x) sum = std::fma(element, element, sum);
  return sum;
}

// True if the sum of squares of the vector's integers is at most 2^bits.
bool is_bounded(const std::vector<double>& x, int scale, int bits) {
  ExactSum sum;
  for (const double element : x) {
    const double integer = nearest_integer(times_power_of_two(element, scale));
    sum.add_product(integer, integer);
  }
  sum.add(-std::ldexp(1, bits));
  return sum.sign() <= 0;
}

TEST(ScalingNorm, BoundsTheNormsOfIntegers) {
  std::mt19937_64 random(91);
  int sharp = 0;
  constexpr int rounds = 20000;
  for (int i = 0; i < rounds; ++i) {
    const std::vector<double> x = draw_vector(random);
    VectorRange range;
    for (const double element : x) extend(range, element);
    if ((range.flags & VectorRange::all_zero) != 0) continue;
    SplitRule rule{};
    rule.sum_bits = static_cast<int>(random() % 120 + 60);
    const auto k_bits = 64 - leading_zeros(static_cast<std::uint64_t>(x.size()));
    rule.top_exponent = (rule.sum_bits - k_bits) / 2 - 1;
    const int bits = bits_of_squares(sum_of_squares(x), range, static_cast<std::int64_t>(x.size()));
    range.scale = norm_scale(range, rule, bits);
    ASSERT_TRUE(is_bounded(x, range.scale, rule.sum_bits)) << i;
    ASSERT_GE(range.largest + range.scale, rule.top_exponent) << "no smaller than by the exponent";
    for (const double element : x)
      ASSERT_LE(std::fabs(nearest_integer(times_power_of_two(element, range.scale))), largest_integer(range));
    sharp += is_bounded(x, range.scale + 1, rule.sum_bits - 1) ? 0 : 1;
  }
  EXPECT_GT(sharp, rounds / 2) << "most scales cannot be larger";
}

TEST(ScalingNorm, SpecialVectorsHaveTheLargestNorm) {
  constexpr int of_eight = 2 * (norm_digits + 1) + 4;
  VectorRange range;
  EXPECT_EQ(bits_of_squares(0, range, 8), of_eight) << "zeros";
  EXPECT_EQ(largest_integer(range), 0);
  extend(range, 1.0);
  EXPECT_LT(bits_of_squares(1, range, 8), of_eight);
  extend(range, std::numeric_limits<double>::infinity());
  EXPECT_EQ(bits_of_squares(1, range, 8), of_eight) << "an infinity";
  for (const double x : {0x1p-1074, 0x1p-500, 0x1p500, 0x1p1023}) {
    VectorRange extreme;
    extend(extreme, x);
    EXPECT_EQ(bits_of_squares(x * x, extreme, 8), of_eight) << x;
  }
}

}  // namespace
}  // namespace scaling_norm
}  // namespace kintsugi::core
