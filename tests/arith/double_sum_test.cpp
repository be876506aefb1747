// Sums of doubles that are rounded once, against exact integers.
#include "arith/exact/double_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <type_traits>
#include <vector>

#include "arith/exact/exact_sum.hpp"
#include "arith/residue/integer_update.hpp"

namespace kintsugi::core {
namespace {

double draw_double(std::mt19937_64& random, int least_exponent, int exponents) {
  const std::uint64_t bits = random() >> 11;
  const double significand =
      static_cast<double>(random() % 3 == 0 ? bits & ~std::uint64_t{0} << random() % 53 : bits);
  const int exponent = least_exponent + static_cast<int>(random() % static_cast<unsigned>(exponents));
  return std::ldexp(random() % 2 == 0 ? significand : -significand, exponent);
}

// Terms whose exponents are among `exponents` numbers, some of which cancel.
std::vector<double> draw_terms(std::mt19937_64& random, int exponents) {
  std::vector<double> terms(1 + random() % 64);
  for (double& term : terms)
    term = random() % 8 == 0 ? 0 : draw_double(random, -exponents / 2 - 52, exponents);
  if (random() % 2 == 0) {
    for (std::size_t i = 0; i + 1 < terms.size(); i += 2) terms[i + 1] = -terms[i];
    std::shuffle(terms.begin(), terms.end(), random);
  }
  return terms;
}

template <class T>
void expect_certain_sums_right(unsigned seed) {
  std::mt19937_64 random(seed);
  constexpr int draws = 60000;
  for (int draw = 0; draw < draws; ++draw) {
    const bool fits_into_three = random() % 2 == 0;  // the sum
    const std::vector<double> terms = draw_terms(random, fits_into_three ? 40 : 1200);
    const int exponent = static_cast<int>(random() % 301) - 150;
    DoubleSum sum;
    ExactSum exact;
    for (const double term : terms) {
      sum.add(term);
      exact.add(term);
    }
    exact.multiply(std::ldexp(1.0, exponent));
    const auto found = sum.rounded<T>(exponent);
    const T expected = std::is_same_v<T, float> ? exact.to_float() : static_cast<T>(exact.to_double());
    ASSERT_TRUE(found.is_certain || !fits_into_three) << "draw " << draw;
    if (!found.is_certain) continue;
    ASSERT_EQ(found.value, expected) << "draw " << draw;
    if (expected != 0 || std::is_same_v<T, double>)
      ASSERT_EQ(std::signbit(found.value), std::signbit(expected)) << "draw " << draw;
  }
}

TEST(DoubleSum, RoundsOnceToDoubleWhereItIsCertain) { expect_certain_sums_right<double>(1); }
TEST(DoubleSum, RoundsOnceToFloatWhereItIsCertain) { expect_certain_sums_right<float>(2); }

TEST(DoubleSum, IsCertainOfExactSumsAndTies) {
  DoubleSum zero;
  zero.add(0x1p300);
  zero.add(1);
  zero.add(-0x1p300);
  zero.add(-1);
  EXPECT_TRUE(zero.rounded<double>(0).is_certain);
  EXPECT_EQ(zero.rounded<double>(0).value, 0);
  DoubleSum tie;
  tie.add(0x1p53);
  tie.add(1);
  EXPECT_TRUE(tie.rounded<double>(0).is_certain);
  EXPECT_EQ(tie.rounded<double>(0).value, 0x1p53);
  DoubleSum above;
  above.add(0x1p53);
  above.add(1);
  above.add(0x1p-300);
  EXPECT_FALSE(above.rounded<double>(0).is_certain && above.rounded<double>(0).value == 0x1p53);
}

TEST(DoubleSum, IsNotCertainOfSubnormalResults) {
  DoubleSum sum;
  sum.add(0x1p-60);
  EXPECT_FALSE(sum.rounded<double>(-1000).is_certain);
  EXPECT_TRUE(sum.rounded<double>(-900).is_certain);
}

// An integer of up to 64 * Limbs - 2 bits with any pattern of ones.
template <int Limbs>
ExactNumber<Limbs> draw_number(std::mt19937_64& random) {
  ExactNumber<Limbs> x;
  for (auto& limb : x.magnitude.limb) limb = random() % 4 == 0 ? 0 : random() >> random() % 64;
  x.magnitude.limb[Limbs - 1] >>= 2;
  x.negative = random() % 2 == 0;
  return x;
}

template <int Limbs>
void expect_updates_right(unsigned seed) {
  std::mt19937_64 random(seed);
  int certain = 0;
  constexpr int draws = 40000;
  for (int draw = 0; draw < draws; ++draw) {
    ExactNumber<Limbs> x = draw_number<Limbs>(random);
    const int exponent = static_cast<int>(random() % 801) - 400;
    const double alpha = random() % 3 == 0 ? -1 : draw_double(random, -80, 60);
    const double beta = random() % 3 == 0 ? 1 : draw_double(random, -80, 60);
    x.exponent = exponent;
    double old = draw_double(random, exponent - 52, 64 * Limbs + 40);
    if (random() % 4 == 0) old = -(alpha / beta) * rounded<double>(x);
    DoubleSum sum;
    add_multiple(sum, x, alpha);
    sum.add_product(beta, std::ldexp(old, -exponent));
    const auto found = sum.rounded<double>(exponent);
    if (!found.is_certain) continue;
    ++certain;
    ASSERT_EQ(found.value, exact_epilogue<double>(x, alpha, beta, &old)) << "draw " << draw;
  }
  EXPECT_GE(certain, 0.99 * draws);
}

TEST(DoubleSum, HasTheExactUpdateOfAnInteger) {
  expect_updates_right<2>(3);
  expect_updates_right<3>(4);
  expect_updates_right<6>(5);
}

}  // namespace
}  // namespace kintsugi::core
