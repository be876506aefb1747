// Compares sums of ExactSum with MPFR.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "exact_sum_reference.hpp"

namespace kintsugi::measure {
namespace {

TEST(ExactSum, AddsProductsOfDoublesExactly) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    ExactSum sum;
    Mpfr expected;
    for (int l = 0; l < 20; ++l) {
      const double a = any_double(random);
      const double b = any_double(random);
      sum.add_product(a, b);
      expected += Mpfr(a) * Mpfr(b);
      ASSERT_TRUE(same(sum, expected)) << "trial " << trial << ", product " << l;
    }
  }
}

TEST(ExactSum, AddsProductsOfFloatsExactly) {
  Random random(2);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<float> a(40), b(40);
    ExactSum one_by_one;
    Mpfr expected;
    for (std::size_t l = 0; l < a.size(); ++l) {
      a[l] = l % 7 == 3 ? 0 : any_float(random);
      b[l] = any_float(random);
      one_by_one.add_product(a[l], b[l]);
      expected += Mpfr(a[l]) * Mpfr(b[l]);
    }
    ExactSum all_at_once;
    all_at_once.add_products(a.data(), b.data(), 40);
    ASSERT_TRUE(same(one_by_one, expected)) << trial;
    ASSERT_TRUE(same(all_at_once, expected)) << trial;
  }
}

TEST(ExactSum, AddsExtremeProductsExactly) {
  const double doubles[] = {double_max, -double_max, double_tiny, -double_tiny, 0x1p-1022, 1, -1};
  for (const double a : doubles) {
    for (const double b : doubles) {
      ExactSum sum;
      sum.add_product(a, b);
      ASSERT_TRUE(same(sum, Mpfr(a) * Mpfr(b))) << a << " * " << b;
      sum.add_product(double_tiny, double_tiny);  // the lowest bit that a sum holds
      ASSERT_TRUE(same(sum, Mpfr(a) * Mpfr(b) + Mpfr(double_tiny) * Mpfr(double_tiny)));
    }
  }
  const float floats[] = {float_max, -float_max, float_tiny, -float_tiny, 1};
  for (const float a : floats) {
    for (const float b : floats) {
      ExactSum sum;
      sum.add_products(&a, &b, 1);
      ASSERT_TRUE(same(sum, Mpfr(a) * Mpfr(b))) << a << " * " << b;
    }
  }
}

TEST(ExactSum, CancelsDownToTheLastBit) {
  Random random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> a, b;
    ExactSum sum;
    for (int l = 0; l < 30; ++l) {
      a.push_back(any_double(random));
      b.push_back(any_double(random));
      sum.add_product(a.back(), b.back());
    }
    sum.add_product(double_tiny, -double_tiny);
    for (std::size_t l = a.size(); l-- > 0;) sum.add_product(-a[l], b[l]);
    ASSERT_TRUE(same(sum, Mpfr(double_tiny) * Mpfr(-double_tiny))) << trial;
    sum.add_product(double_tiny, double_tiny);
    ASSERT_TRUE(sum.is_zero());
    ASSERT_EQ(std::bit_cast<std::uint64_t>(sum.to_double()), 0U);
  }
}

TEST(ExactSum, AddsSumsAndIntegersExactly) {
  Random random(8);
  for (int trial = 0; trial < 200; ++trial) {
    ExactSum sum, addend;
    Mpfr expected;
    for (int l = 0; l < 12; ++l) {
      const double a = any_double(random);
      const double b = any_double(random);
      (l % 2 == 0 ? sum : addend).add_product(a, b);
      expected += Mpfr(a) * Mpfr(b);
      const std::uint64_t integer = random.bits() >> (random.bits() % 64);
      const int exponent = static_cast<int>(random.bits() % 5000) - 2500;
      addend.add_integer(integer, exponent, l % 3 == 0);
      const Mpfr high(std::ldexp(static_cast<double>(integer >> 32), 32)),
          low(static_cast<double>(integer & 0xffffffffU));
      const Mpfr term = (high + low) * power_of_two(exponent);
      l % 3 == 0 ? expected -= term : expected += term;
    }
    sum.add(addend);
    ASSERT_TRUE(same(sum, expected)) << trial;
  }
  ExactSum lowest;  // an integer may have zeros below the lowest bit that a sum holds
  lowest.add_integer(std::uint64_t{3} << 40, -ExactSum::one_position - 40, false);
  ASSERT_TRUE(same(lowest, Mpfr(3) * power_of_two(-ExactSum::one_position)));
  ExactSum nothing;
  nothing.add(ExactSum());
  nothing.add_integer(0, 0, true);
  EXPECT_TRUE(nothing.is_zero());
  ExactSum infinite;
  infinite.add(std::numeric_limits<double>::infinity());
  nothing.add(infinite);
  EXPECT_FALSE(nothing.is_finite());
}

// Carries are lazy: a digit overflows after many additions of one sign, in both directions and through zero.
TEST(ExactSum, CarriesAfterManyAdditions) {
  const std::int64_t count = 200'000;
  const std::vector<float> a(count, float_max);
  const std::vector<float> b(count, -std::nextafter(1.0F, 2.0F));
  ExactSum sum;
  for (int round = 1; round <= 4; ++round) {
    sum.add_products(a.data(), b.data(), count);
    ASSERT_TRUE(same(sum, Mpfr(float_max) * Mpfr(b[0]) * Mpfr(static_cast<double>(round * count))));
  }
  for (int round = 3; round >= -2; --round) {
    ExactSum minus;
    minus.add_products(a.data(), b.data(), count);
    sum.negate();
    sum.add_products(a.data(), b.data(), count);
    sum.negate();
    ASSERT_TRUE(same(sum, Mpfr(float_max) * Mpfr(b[0]) * Mpfr(static_cast<double>(round * count)))) << round;
  }
}

TEST(ExactSum, AddsFloatsAndDoublesExactly) {
  Random random(4);
  ExactSum sum;
  Mpfr expected;
  std::vector<float> a(1000), b(1000);
  for (int round = 0; round < 60; ++round) {
    for (std::size_t l = 0; l < a.size(); ++l) {
      a[l] = static_cast<float>(random.symmetric());
      b[l] = static_cast<float>(random.symmetric());
      expected += Mpfr(a[l]) * Mpfr(b[l]);
    }
    sum.add_products(a.data(), b.data(), 1000);
    const double x = any_double(random);
    sum.add(x);
    expected += Mpfr(x);
    ASSERT_TRUE(same(sum, expected)) << round;
  }
}

TEST(ExactSum, MultipliesExactly) {
  Random random(7);
  const double factors[] = {double_max, -double_tiny, 0.1, -1, 3, 0x1p-1022, 0};
  for (int trial = 0; trial < 200; ++trial) {
    ExactSum sum;
    Mpfr expected;
    for (int l = 0; l < 5; ++l) {
      const double a = trial % 5 == 0 ? double_tiny : any_double(random);
      const double b = trial % 5 == 0 ? double_tiny : trial % 5 == 1 ? double_max : any_double(random);
      sum.add_product(a, b);
      expected += Mpfr(a) * Mpfr(b);
    }
    const double factor = trial < 70 ? factors[trial % 7] : any_double(random);
    sum.multiply(factor);
    ASSERT_TRUE(same(sum, expected * Mpfr(factor))) << trial;
  }
}

TEST(ExactSum, ClearGivesAnEmptySum) {
  ExactSum sum;
  sum.add_product(double_max, double_max);
  sum.add_product(double_tiny, double_tiny);
  sum.add(infinity);
  sum.clear();
  EXPECT_TRUE(sum.is_zero());
  sum.add(-3);
  EXPECT_TRUE(same(sum, Mpfr(-3)));
}

TEST(ExactSum, SpecialValuesFollowIeee754) {
  const auto sum_of = [](std::initializer_list<std::pair<double, double>> products) {
    ExactSum sum;
    for (const auto& [a, b] : products) sum.add_product(a, b);
    return sum.to_double();
  };
  EXPECT_TRUE(std::isnan(sum_of({{nan, 0}, {1, 1}})));
  EXPECT_TRUE(std::isnan(sum_of({{infinity, 0}})));
  EXPECT_TRUE(std::isnan(sum_of({{infinity, 1}, {infinity, -1}})));
  EXPECT_EQ(sum_of({{infinity, 2}, {double_max, -double_max}}), infinity);
  EXPECT_EQ(sum_of({{1, -infinity}}), -infinity);
  const float a[] = {1, std::numeric_limits<float>::infinity(), 2};
  const float b[] = {1, -1, 2};
  ExactSum floats;
  floats.add_products(a, b, 3);
  EXPECT_EQ(floats.to_float(), -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(floats.is_finite());
  EXPECT_FALSE(floats.is_zero());
  EXPECT_EQ(floats.sign(), -1);
  floats.multiply(0);
  EXPECT_TRUE(std::isnan(floats.to_double()));
}

// Intended failure: the comparison sees a single wrong bit.
TEST(ExactSum, ComparisonSeesAWrongBit) {
  ExactSum sum;
  sum.add(1);
  EXPECT_TRUE(same(sum, Mpfr(1)));
  EXPECT_FALSE(same(sum, Mpfr(1) + Mpfr(double_tiny) * Mpfr(double_tiny)));
  EXPECT_FALSE(same(sum, Mpfr(-1)));
}

}  // namespace
}  // namespace kintsugi::measure
