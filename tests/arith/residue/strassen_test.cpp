// One step of Strassen's algorithm: halves of dimensions, operands and sums of products.
#include "arith/residue/strassen.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

namespace kintsugi::core {
namespace {

using Quadrants = std::array<std::array<std::int64_t, 2>, 2>;

TEST(Strassen, EveryIndexHasItsOwnPlaceInAHalf) {
  for (std::int64_t n = 1; n < 100; ++n) {
    std::set<std::pair<std::int64_t, std::int64_t>> places;
    for (std::int64_t i = 0; i < n; ++i) {
      EXPECT_LT(index_in_half(i), strassen_half(n));
      places.emplace(half_of(i), index_in_half(i));
    }
    EXPECT_EQ(static_cast<std::int64_t>(places.size()), n);
    EXPECT_LT(2 * strassen_half(n), n + 2 * strassen_group);
  }
}

TEST(Strassen, SevenProductsGiveTheProductOfQuadrants) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> draw(-1000, 1000);
  const auto drawn = [&] { return Quadrants{{{draw(random), draw(random)}, {draw(random), draw(random)}}}; };
  for (int i = 0; i < 1000; ++i) {
    const Quadrants a = drawn();
    const Quadrants b = drawn();
    const auto left = left_operands(a[0][0], a[0][1], a[1][0], a[1][1]);
    const auto right = right_operands(b[0][0], b[0][1], b[1][0], b[1][1]);
    std::array<std::int64_t, strassen_products> p{};
    for (int q = 0; q < strassen_products; ++q) p[q] = left[q] * right[q];
    const auto element = [&](int row, int column) {
      return a[row][0] * b[0][column] + a[row][1] * b[1][column];
    };
    EXPECT_EQ(p[0] + p[1], element(0, 0));
    EXPECT_EQ(p[0] + p[5] + p[4] + p[2], element(0, 1));
    EXPECT_EQ(p[0] + p[5] + p[6] + p[3], element(1, 0));
    EXPECT_EQ(p[0] + p[5] + p[6] + p[4], element(1, 1));
  }
}

}  // namespace
}  // namespace kintsugi::core
