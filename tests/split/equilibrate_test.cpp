// Tests the factors by which find_inner_factors() levels both operands along k: powers of two that are exact
// for every element.
#include "split/equilibrate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kintsugi::core {
namespace {

TEST(Equilibrate, FactorsAreExactAndLevel) {
  std::mt19937_64 random(4);
  const auto draw = [&] {
    const int exponent = static_cast<int>(random() % 2098) - 1074;
    const double x = std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52), exponent);
    return random() % 10 == 0 ? 0.0 : random() % 2 == 0 ? -x : x;
  };
  constexpr std::int64_t rows = 3, k = 500;
  std::vector<double> a(rows * k), b(rows * k);
  for (double& x : a) x = draw();
  for (double& x : b) x = draw();
  const MatrixView<const double> view_a{a.data(), rows, k, k, 1}, view_b{b.data(), rows, k, 1, rows};
  std::vector<InnerRange> range_a(k), range_b(k);
  find_inner_ranges(view_a, range_a, 2);
  find_inner_ranges(view_b, range_b, 1);
  std::vector<double> factor_a(k), factor_b(k);
  EXPECT_GT(find_inner_factors(range_a, range_b, factor_a, factor_b), 500);
  for (std::int64_t p = 0; p < k; ++p) {
    EXPECT_EQ(factor_a[p] * factor_b[p], 1);
    double largest_a = 0, largest_b = 0;
    for (std::int64_t v = 0; v < rows; ++v) {
      for (const auto& [x, factor] :
           {std::pair(view_a(v, p), factor_a[p]), std::pair(view_b(v, p), factor_b[p])}) {
        ASSERT_TRUE(std::isfinite(x * factor));
        ASSERT_EQ(x * factor / factor, x);
      }
      largest_a = std::max(largest_a, std::fabs(view_a(v, p)));
      largest_b = std::max(largest_b, std::fabs(view_b(v, p)));
    }
    if (largest_a == 0 || largest_b == 0) {
      EXPECT_EQ(factor_a[p], 1);
    }
  }
}

TEST(Equilibrate, FactorsCentreTheRatiosOfTheMaxima) {
  const std::vector<double> a{1, 0x1p40, 0x1p-30, std::numeric_limits<double>::infinity()};
  const std::vector<double> b{1, 0x1p-10, 0x1p31, 3};
  std::vector<InnerRange> range_a(4), range_b(4);
  find_inner_ranges(MatrixView<const double>{a.data(), 1, 4, 4, 1}, range_a, 1);
  find_inner_ranges(MatrixView<const double>{b.data(), 1, 4, 4, 1}, range_b, 1);
  std::vector<double> factor_a(4), factor_b(4);
  EXPECT_EQ(find_inner_factors(range_a, range_b, factor_a, factor_b), (50 + 61) / 2);
  // The exponents of the maxima of A and B differ by 0, 50 and -61; the centre of these is -6.
  EXPECT_EQ(factor_a, (std::vector<double>{0x1p-3, 0x1p-28, 0x1p28, 1}));
  EXPECT_EQ(factor_b, (std::vector<double>{0x1p3, 0x1p28, 0x1p-28, 1}));
}

template <class T>
void expect_ranges_of_single_elements() {
  constexpr std::int64_t vectors = 45, k = 70;
  std::mt19937 random(3);
  std::vector<T> x(static_cast<std::size_t>(vectors * k));
  for (T& element : x) {
    const int exponent = static_cast<int>(random() % 200) - 100;
    element = random() % 5 == 0 ? T(0)
                                : static_cast<T>(std::ldexp(static_cast<double>(1 + random() % 7), exponent));
  }
  x[3] = std::numeric_limits<T>::infinity();
  x[100] = std::numeric_limits<T>::quiet_NaN();
  x[200] = std::numeric_limits<T>::denorm_min();
  for (const MatrixView<const T>& view : {MatrixView<const T>{x.data(), vectors, k, 1, vectors},
                                          MatrixView<const T>{x.data(), vectors, k, k, 1}}) {
    std::vector<InnerRange> ranges(k);
    find_inner_ranges(view, ranges, 2);
    for (std::int64_t p = 0; p < k; ++p) {
      InnerRange expected;
      for (std::int64_t v = 0; v < vectors; ++v) {
        const T element = view(v, p);
        if (element == T(0) || !std::isfinite(element)) continue;
        expected.largest = std::max(expected.largest, exponent_of(element));
        expected.smallest = std::min(expected.smallest, exponent_of(element));
      }
      EXPECT_EQ(ranges[p].largest, expected.largest) << p;
      EXPECT_EQ(ranges[p].smallest, expected.smallest) << p;
    }
  }
}

TEST(InnerRanges, AreThoseOfSingleElementsInEveryLayout) {
  expect_ranges_of_single_elements<float>();
  expect_ranges_of_single_elements<double>();
}

}  // namespace
}  // namespace kintsugi::core
