// Sums of products in two doubles, against exact sums.
#include "arith/exact/double_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "arith/exact/exact_sum.hpp"

namespace kintsugi::core {
namespace compensated_sum {
namespace {

double draw(std::mt19937_64& random, int span) {
  const double fraction = std::ldexp(static_cast<double>(random() >> 11), -53) - 0.5;
  return std::ldexp(fraction, static_cast<int>(random() % static_cast<unsigned>(2 * span + 1)) - span);
}

struct Products {
  std::vector<double> x;
  std::vector<double> y;

  void add(double a, double b) {
    x.push_back(a);
    y.push_back(b);
  }
};

// Up to 300 products. Half of the draws end with products that cancel all but the last bits of the others, or
// all of them; some have few bits, so that ties and exact results are frequent.
Products draw_products(std::mt19937_64& random) {
  Products products;
  const auto count = static_cast<int>(random() % 300 + 1);
  const auto span = static_cast<int>(random() % 60);
  const bool has_few_bits = random() % 4 == 0;
  ExactSum sum;
  for (int p = 0; p < count; ++p) {
    double a = draw(random, span);
    double b = draw(random, span);
    if (has_few_bits) {
      a = std::rint(a * 16) + (p == 0 ? 0x1p52 : 0);
      b = std::rint(b * 16) / 2 + (p == 0 ? 1 : 0);
    }
    products.add(a, b);
    sum.add_product(a, b);
  }
  for (int step = 0; step < 6 && random() % 2 == 0; ++step) {
    const double rest = sum.to_double();
    products.add(rest, -1);
    sum.add_product(rest, -1.0);
  }
  return products;
}

// The sum by as many threads as a thread block has, added as there.
CompensatedSum by_threads(const Products& products, std::size_t threads) {
  std::vector<CompensatedSum> sums(threads);
  for (std::size_t p = 0; p < products.x.size(); ++p)
    sums[p % threads].add_product(products.x[p], products.y[p]);
  for (std::size_t step = 1; step < threads; step *= 2) {
    for (std::size_t t = 0; t + step < threads; t += 2 * step) sums[t].add(sums[t + step]);
  }
  return sums[0];
}

double exact_result(const Products& products, double alpha, double beta, double c) {
  ExactSum sum;
  sum.add_products(products.x.data(), products.y.data(), static_cast<std::int64_t>(products.x.size()));
  sum.multiply(alpha);
  if (beta != 0) sum.add_product(beta, c);
  return sum.to_double();
}

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

TEST(CompensatedSum, RoundsLikeTheExactSumIfCertain) {
  std::mt19937_64 random(81);
  int certain = 0;
  constexpr int rounds = 30000;
  for (int i = 0; i < rounds; ++i) {
    const Products products = draw_products(random);
    const CompensatedSum sum = by_threads(products, std::size_t{1} << random() % 8);
    const auto count = static_cast<std::int64_t>(products.x.size());
    const bool is_plain = random() % 2 == 0;
    const double alpha = is_plain ? 1 : random() % 3 == 0 ? -1 : draw(random, 30);
    const double beta = is_plain || random() % 3 == 0 ? 0 : random() % 2 == 0 ? 1 : draw(random, 30);
    double c = draw(random, 100);
    if (random() % 3 == 0 && beta != 0) c = -exact_result(products, alpha, 0, 0) / beta;  // cancels
    const auto rounded = sum.rounded(count, alpha, beta, c);
    certain += rounded.is_certain ? 1 : 0;
    if (rounded.is_certain)
      ASSERT_EQ(bits_of(rounded.value), bits_of(exact_result(products, alpha, beta, c))) << i;
  }
  EXPECT_GT(certain, rounds / 3);
  EXPECT_LT(certain, rounds) << "no draw was too close to decide";
}

TEST(CompensatedSum, DecidesNearlyAllRandomSums) {
  std::mt19937_64 random(82);
  int certain = 0;
  constexpr int rounds = 20;
  constexpr std::int64_t products = 100000;
  for (int i = 0; i < rounds; ++i) {
    CompensatedSum sum;
    ExactSum exact;
    for (std::int64_t p = 0; p < products; ++p) {
      const double x = draw(random, 8);
      const double y = draw(random, 8);
      sum.add_product(x, y);
      exact.add_product(x, y);
    }
    const auto rounded = sum.rounded(products, 1, 0, 0);
    certain += rounded.is_certain ? 1 : 0;
    if (rounded.is_certain) EXPECT_EQ(rounded.value, exact.to_double());
  }
  EXPECT_EQ(certain, rounds);
}

TEST(CompensatedSum, LeavesTiesExtremesAndSpecialScalars) {
  const auto rounded = [](double x, double y, double more, double alpha = 1, double beta = 0, double c = 0) {
    CompensatedSum sum;
    sum.add_product(x, y);
    sum.add_product(more, 1);
    return sum.rounded(2, alpha, beta, c);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto zero = rounded(3, 5, -15);
  EXPECT_TRUE(zero.is_certain);
  EXPECT_EQ(bits_of(zero.value), 0U) << "an exact zero is +0";
  EXPECT_TRUE(rounded(3, 5, 1).is_certain);
  EXPECT_FALSE(rounded(0x1p53, 1, 1).is_certain) << "a tie";
  EXPECT_TRUE(rounded(0x1p53, 1, 2).is_certain);
  EXPECT_FALSE(rounded(0x1p-1040, 1, 0).is_certain) << "subnormal";
  EXPECT_FALSE(rounded(0x1p1023, 1, 0).is_certain) << "near overflow";
  for (const double special : {infinity, -infinity, std::nan(""), 0x1p800, 0x1p-800}) {
    EXPECT_FALSE(rounded(3, 5, 1, special).is_certain) << special;
    EXPECT_FALSE(rounded(3, 5, 1, 1, special, 1).is_certain) << special;
    EXPECT_FALSE(rounded(3, 5, 1, 1, 1, special).is_certain) << special;
  }
  EXPECT_TRUE(rounded(3, 5, 1, 2, 0, infinity).is_certain) << "beta = 0: C is not read";
  EXPECT_EQ(rounded(3, 5, 1, 2, 0, infinity).value, 32);
}

}  // namespace
}  // namespace compensated_sum
}  // namespace kintsugi::core
