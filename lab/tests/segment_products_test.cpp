// Compares the laboratory's quick products of MixPert's levels with the library's schemes, bit for bit.
#include "lab/numerics/segment_products.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/c_objects.hpp"

namespace kintsugi::lab {
namespace {

struct Level {
  const char* scheme;
  int segments_a;
  int segments_b;
};
constexpr Level levels[] = {
    {"mixpert-1", 2, 2}, {"mixpert-2", 2, 3}, {"mixpert-3", 3, 2}, {"mixpert-4", 3, 3}};

// Returns a product's elements by the quick product; none if it computes none.
std::vector<float> quickly(const Level& level, test::GemmData& data, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
  std::vector<float> a, b;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l) a.push_back(data.a()(i, l));
  for (std::int64_t l = 0; l < k; ++l)
    for (std::int64_t j = 0; j < n; ++j) b.push_back(data.b()(l, j));
  std::vector<float> c(static_cast<std::size_t>(m * n));
  if (!multiply_segments(level.segments_a, level.segments_b, m, n, k, a.data(), b.data(), c.data()))
    return {};
  return c;
}

#if defined(__x86_64__)
TEST(QuickLevels, BitsEqualTheSchemesOfRandomShapes) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "takes AVX2";
  std::mt19937 random(1);
  const auto size = [&](int most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  for (int round = 0; round < 40; ++round) {
    const Level& level = levels[round % 4];
    const std::int64_t m = size(70), n = size(70), k = size(200);
    test::GemmData data(test::GemmCase{.m = m, .n = n, .k = k, .scheme = level.scheme, .engine = "cpu"});
    // Exponents over few binades, so that no tile fails Eq. 9 from k = 8 on; below that all have the same.
    std::uniform_real_distribution<float> uniform(1, 2);
    const auto element = [&]() {
      const int exponent = k < 8 ? 0 : std::uniform_int_distribution<int>(-3, 0)(random);
      return std::ldexp(random() % 2 == 0 ? uniform(random) : -uniform(random),
                        exponent + 10 * (round % 3 - 1));
    };
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l) data.a()(i, l) = element();
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j) data.b()(l, j) = l % 7 == 3 ? 0.0F : element();
    data.run_well();
    const std::vector<float> c = quickly(level, data, m, n, k);
    ASSERT_FALSE(c.empty()) << m << " " << n << " " << k;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], data.c()(i, j))
            << level.scheme << " " << i << " " << j;
  }
}
#endif

TEST(QuickLevels, LeavesOperandsToTheSchemesThatTheyTreatOtherwise) {
  for (const float odd : {0x1p-130F, 0x1p61F, INFINITY}) {
    test::GemmData data(test::GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "mixpert-1", .engine = "cpu"});
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 2; ++j) data.a()(i, j) = data.b()(i, j) = 1;
    data.b()(1, 1) = odd;
    EXPECT_TRUE(quickly(levels[0], data, 2, 2, 2).empty()) << odd;
  }
  // One element lies 20 binades below the others of its tile, which fails Eq. 9 at k = 2.
  test::GemmData data(test::GemmCase{.m = 1, .n = 1, .k = 2, .scheme = "mixpert-1", .engine = "cpu"});
  data.a()(0, 0) = data.b()(0, 0) = data.b()(1, 0) = 1;
  data.a()(0, 1) = 0x1p-20F;
  EXPECT_TRUE(quickly(levels[0], data, 1, 1, 2).empty());
}

}  // namespace
}  // namespace kintsugi::lab
