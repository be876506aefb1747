// Tests the values of each distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>

#include "generated_matrix.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::measure {
namespace {

TYPED_TEST(Generators, UniformNumbersFillTheirRangeAndUseTheLastBit) {
  const Matrix<TypeParam> x("uniform", Side::a, 3, 100, 1000);
  const auto [min, max] = std::minmax_element(x.values.begin(), x.values.end());
  EXPECT_GE(*min, -1);
  EXPECT_LE(*max, 1);
  EXPECT_LT(*min, -0.999);
  EXPECT_GT(*max, 0.999);
  double sum = 0, squares = 0;
  std::int64_t odd = 0;
  for (const TypeParam v : x.values) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
    using Bits = std::conditional_t<sizeof(TypeParam) == 4, std::uint32_t, std::uint64_t>;
    odd += static_cast<std::int64_t>(std::bit_cast<Bits>(v) & 1);
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.01);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.01);
  EXPECT_NEAR(static_cast<double>(odd) / 1e5, 0.5, 0.01);  // the last bit is used in every binade
  const Matrix<TypeParam> positive("uniform01", Side::b, 3, 100, 1000);
  EXPECT_GE(*std::min_element(positive.values.begin(), positive.values.end()), 0);
  EXPECT_LE(*std::max_element(positive.values.begin(), positive.values.end()), 1);
}

TYPED_TEST(Generators, GramDiagonalIsOneMatrixScaledBothWays) {
  const Matrix<TypeParam> a("gram-diagonal:100", Side::a, 1, 7, 51);
  const Matrix<TypeParam> b("gram-diagonal:100", Side::b, 1, 51, 7);
  for (std::int64_t i = 0; i < 7; ++i) {
    for (std::int64_t l = 0; l < 51; ++l) {
      const int exponent = 50 - static_cast<int>(2 * l);  // exponent of D's element
      ASSERT_EQ(std::ldexp(a(i, l), -exponent), std::ldexp(b(l, i), exponent));
    }
  }
}

TYPED_TEST(Generators, CrossedAlternatesAndNegativeGradesGrow) {
  const Matrix<TypeParam> a("crossed:30", Side::a, 1, 5, 200);
  const Matrix<TypeParam> b("crossed:30", Side::b, 1, 200, 5);
  for (std::int64_t l = 0; l < 200; ++l) {
    for (std::int64_t v = 0; v < 5; ++v) {
      ASSERT_LE(std::abs(a(v, l)), l % 2 == 0 ? 1 : 0x1p-30);
      ASSERT_LE(std::abs(b(l, v)), l % 2 == 0 ? 0x1p-60 : 1);
    }
  }
  const Matrix<TypeParam> graded("graded:-40", Side::a, 1, 40, 50);
  for (std::int64_t v = 0; v < 40; ++v) {
    TypeParam largest = 0;
    for (std::int64_t l = 0; l < 50; ++l) largest = std::max(largest, std::abs(graded(v, l)));
    EXPECT_LE(largest, std::ldexp(1.0, static_cast<int>(v)));
    EXPECT_GT(largest, std::ldexp(1.0, static_cast<int>(v) - 2));
  }
}

TYPED_TEST(Generators, NormalHasItsMoments) {
  const Matrix<TypeParam> x("normal", Side::a, 3, 100, 1000);
  double sum = 0, squares = 0, fourth = 0;
  for (const TypeParam v : x.values) {
    const double square = static_cast<double>(v) * static_cast<double>(v);
    sum += static_cast<double>(v);
    squares += square;
    fourth += square * square;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.03);
  EXPECT_NEAR(fourth / 1e5, 3, 0.2);
}

TYPED_TEST(Generators, LanguageModelIsUniformFromOneHalf) {
  const Matrix<TypeParam> x("language-model", Side::b, 3, 100, 1000);
  const auto [min, max] = std::minmax_element(x.values.begin(), x.values.end());
  EXPECT_GE(*min, 0.5);
  EXPECT_LT(*min, 0.501);
  EXPECT_GT(*max, 2.499);
  EXPECT_LE(*max, 2.5);
  double sum = 0, squares = 0;
  for (const TypeParam v : x.values) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  EXPECT_NEAR(sum / 1e5, 1.5, 0.01);
  EXPECT_NEAR(squares / 1e5, 1.5 * 1.5 + 1.0 / 3, 0.04);  // the variance of a width of 2
}

TYPED_TEST(Generators, PhiHasItsMomentsAndStaysFinite) {
  const Matrix<TypeParam> narrow("phi:0", Side::a, 1, 10, 10000);
  for (const TypeParam x : narrow.values) ASSERT_LE(std::fabs(x), 0.5);
  const Matrix<TypeParam> wide("phi:2", Side::a, 1, 10, 10000);
  double logs = 0, squares = 0;
  for (const TypeParam x : wide.values) {
    const double log = std::log(std::fabs(static_cast<double>(x)));
    logs += log;
    squares += log * log;
  }
  // log|rand - 0.5| has mean -1 - log 2 and variance 1; phi * randn adds variance 4.
  const double mean = logs / 1e5;
  EXPECT_NEAR(mean, -1 - std::log(2), 0.03);
  EXPECT_NEAR(squares / 1e5 - mean * mean, 5, 0.1);
  const Matrix<TypeParam> huge("phi:500", Side::a, 1, 10, 1000);
  for (const TypeParam x : huge.values) ASSERT_TRUE(std::isfinite(x));
}

TYPED_TEST(Generators, TypesHaveEveryExponentOfTheirRange) {
  const struct {
    const char* form;
    Side side;
    int first, last;
  } cases[] = {{"type1", Side::a, -15, 14},   {"type1", Side::b, -15, 14},  {"type2", Side::a, -15, 14},
               {"type2", Side::b, -35, -15},  {"type3", Side::a, -35, -15}, {"type3", Side::b, -35, -15},
               {"type4", Side::a, -100, -35}, {"type4", Side::b, -100, 14}};
  for (const auto& c : cases) {
    const Matrix<TypeParam> x(c.form, c.side, 7, 100, 100);
    std::map<int, int> seen;
    std::int64_t negative = 0;
    for (const TypeParam v : x.values) {
      seen[std::ilogb(v)] += 1;
      negative += v < 0 ? 1 : 0;
    }
    EXPECT_EQ(seen.begin()->first, c.first) << c.form;
    EXPECT_EQ(seen.rbegin()->first, c.last) << c.form;
    EXPECT_EQ(std::ssize(seen), c.last - c.first + 1);
    EXPECT_NEAR(static_cast<double>(negative), 5000, 300);
  }
}

TYPED_TEST(Generators, OffsetsScaleTheRange) {
  const Matrix<TypeParam> any_sign("offset:-10", Side::a, 1, 50, 50);
  const Matrix<TypeParam> positive("offset-nonnegative:10", Side::a, 1, 50, 50);
  const auto [min, max] = std::minmax_element(any_sign.values.begin(), any_sign.values.end());
  EXPECT_GE(*min, -0x1p-10);
  EXPECT_LE(*max, 0x1p-10);
  EXPECT_LT(*min, -0x1p-11);
  const auto [low, high] = std::minmax_element(positive.values.begin(), positive.values.end());
  EXPECT_GE(*low, 0);
  EXPECT_LE(*high, 1024);
  EXPECT_GT(*high, 1000);
}

TYPED_TEST(Generators, SpanGivesEveryVectorThatDynamicRange) {
  for (const int dynamic_range : {0, 1, 17, 40, 253}) {
    for (const std::int64_t length : {2, 3, 64}) {
      const std::string form = "span:" + std::to_string(dynamic_range);
      const Matrix<TypeParam> a(form, Side::a, 11, 20, length);
      const Matrix<TypeParam> b(form, Side::b, 11, length, 20);
      for (std::int64_t v = 0; v < 20; ++v) {
        int low[2] = {9999, 9999}, high[2] = {-9999, -9999};
        for (std::int64_t l = 0; l < length; ++l) {
          const TypeParam values[2] = {a(v, l), b(l, v)};
          for (int side = 0; side < 2; ++side) {
            ASSERT_TRUE(std::isnormal(values[side]));
            low[side] = std::min(low[side], std::ilogb(values[side]));
            high[side] = std::max(high[side], std::ilogb(values[side]));
          }
        }
        ASSERT_EQ(high[0] - low[0], dynamic_range);
        ASSERT_EQ(high[1] - low[1], dynamic_range);
      }
    }
  }
}

TYPED_TEST(Generators, GradesScaleRowsOrInnerIndices) {
  const Matrix<TypeParam> rows("graded:40", Side::a, 1, 80, 500);
  const Matrix<TypeParam> inner("graded-inner:40", Side::b, 1, 80, 500);
  for (std::int64_t i = 0; i < 80; ++i) {
    TypeParam row = 0, element = 0;
    for (std::int64_t l = 0; l < 500; ++l) {
      row = std::max(row, std::fabs(rows(i, l)));
      element = std::max(element, std::fabs(inner(i, l)));
    }
    const auto scale = static_cast<TypeParam>(
        std::ldexp(1.0, -static_cast<int>(std::round(static_cast<double>(i) * 40 / 80))));
    EXPECT_LE(row, scale);
    EXPECT_GT(row, scale * TypeParam{0.9F});
    EXPECT_LE(element, scale);
    EXPECT_GT(element, scale * TypeParam{0.9F});
  }
}

TYPED_TEST(Generators, DiagonalScalesCancelInTheProduct) {
  const Matrix<TypeParam> a("diagonal:100", Side::a, 1, 40, 101);
  const Matrix<TypeParam> b("diagonal:100", Side::b, 1, 101, 40);
  for (std::int64_t l = 0; l < 101; ++l) {
    TypeParam left = 0, right = 0;
    for (std::int64_t v = 0; v < 40; ++v) {
      left = std::max(left, std::fabs(a(v, l)));
      right = std::max(right, std::fabs(b(l, v)));
    }
    EXPECT_LE(left, std::ldexp(1.0, 50 - static_cast<int>(l)));
    EXPECT_LE(right, std::ldexp(1.0, static_cast<int>(l) - 50));
    EXPECT_LE(left * right, 1);
    EXPECT_GT(left * right, 0.6);
  }
}

TYPED_TEST(Generators, CancellationHasTheNamedDepth) {
  for (const std::int64_t k : {2, 3, 64, 65}) {
    Matrix<TypeParam> a("cancellation:15", Side::a, 5, 10, k);
    Matrix<TypeParam> b("cancellation:15", Side::b, 5, k, 10);
    const MatrixView<TypeParam> left = a.view(), right = b.view();
    const Product<TypeParam> product{{left.data, 10, k, k, 1}, {right.data, k, 10, 10, 1}};
    double ratio = 0;
    for (std::int64_t e = 0; e < 100; ++e) {
      const ExactElement element = exact_element(product, e / 10, e % 10);
      EXPECT_NE(element.value, 0);
      EXPECT_LE(std::fabs(element.value), 0x1p-14 * element.absolute);
      ratio = std::max(ratio, std::fabs(element.value) / element.absolute);
    }
    EXPECT_GT(ratio, 0x1p-19);
  }
  Matrix<TypeParam> a("cancellation:100", Side::a, 5, 4, 32);
  Matrix<TypeParam> b("cancellation:100", Side::b, 5, 32, 4);
  const Product<TypeParam> product{{a.values.data(), 4, 32, 32, 1}, {b.values.data(), 32, 4, 4, 1}};
  EXPECT_EQ(exact_element(product, 2, 3).value, 0);
}

TYPED_TEST(Generators, SubnormalsAndSpecialsHaveTheirShares) {
  const Matrix<TypeParam> all("subnormal", Side::a, 1, 50, 50);
  for (const TypeParam x : all.values) ASSERT_EQ(std::fpclassify(x), FP_SUBNORMAL);
  const Matrix<TypeParam> mixed("subnormal-mixed", Side::a, 1, 50, 50);
  const auto subnormal = std::count_if(mixed.values.begin(), mixed.values.end(),
                                       [](TypeParam x) { return std::fpclassify(x) == FP_SUBNORMAL; });
  EXPECT_NEAR(static_cast<double>(subnormal), 1250, 150);
  const Matrix<TypeParam> special("special:0.2", Side::b, 1, 100, 100);
  int seen[5] = {};
  for (const TypeParam x : special.values) {
    if (std::isnan(x)) ++seen[0];
    if (std::isinf(x)) ++seen[x > 0 ? 1 : 2];
    if (x == 0) ++seen[std::signbit(x) ? 4 : 3];
  }
  for (const int count : seen) EXPECT_NEAR(count, 400, 100);
}

TYPED_TEST(Generators, IntegersAndPowersOfTwoFillTheirRange) {
  const Matrix<TypeParam> integers("integer:8", Side::a, 1, 50, 50);
  std::set<TypeParam> values(integers.values.begin(), integers.values.end());
  EXPECT_EQ(values.size(), 17U);
  EXPECT_EQ(*values.begin(), -8);
  EXPECT_EQ(*values.rbegin(), 8);
  for (const TypeParam x : values) EXPECT_EQ(x, std::trunc(x));
  const Matrix<TypeParam> constant("power-of-two:-3", Side::a, 1, 3, 3);
  for (const TypeParam x : constant.values) EXPECT_EQ(x, 0.125);
  const Matrix<TypeParam> powers("powers-of-two:6", Side::a, 1, 50, 50);
  values = {powers.values.begin(), powers.values.end()};
  EXPECT_EQ(values.size(), 26U);
  EXPECT_EQ(*values.rbegin(), 64);
}

}  // namespace
}  // namespace kintsugi::measure
