#include "tools/measure/reference/reference_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/status.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::measure {
namespace {

using core::MatrixView;
using ::testing::HasSubstr;

const std::vector<Arithmetic>& arithmetics() {
  static const std::vector<Arithmetic> all{parse_arithmetic("long-double"), parse_arithmetic("double-double"),
                                           parse_arithmetic("float128"),    parse_arithmetic("mpfr:53"),
                                           parse_arithmetic("mpfr:113"),    parse_arithmetic("mpfr:2048")};
  return all;
}

TEST(ReferenceLoop, TextsAreReadBack) {
  for (const char* text : {"long-double", "double-double", "float128", "mpfr:53", "mpfr:10000"})
    EXPECT_EQ(to_text(parse_arithmetic(text)), text);
  for (const char* text : {"", "quad", "mpfr", "mpfr:", "mpfr:52", "mpfr:10001", "mpfr:113x"}) {
    try {
      parse_arithmetic(text);
      FAIL() << text;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), core::Status::bad_setting);
      EXPECT_THAT(error.what(), HasSubstr(std::string("'") + text + "'"));
      EXPECT_THAT(error.what(), HasSubstr("mpfr:P with P from 53 to 10000"));
    }
  }
}

// With p bits 1 + 2^-(p - 1) - 1 gives 2^-(p - 1), and 1 + 2^-p - 1 gives 0, since the tie goes to even.
TEST(ReferenceLoop, SumsHaveTheNamedNumberOfBits) {
  for (const Arithmetic& arithmetic : arithmetics()) {
    if (arithmetic.kind == ArithmeticKind::double_double) continue;  // its low part may lie anywhere below
    const double other_factor =
        std::ldexp(1.0, 1 - arithmetic.significand_bits / 2 - arithmetic.significand_bits % 2);
    const double factor = std::ldexp(1.0, -(arithmetic.significand_bits / 2));
    for (const double half : {1.0, 0.5}) {
      const std::vector<double> a{1, factor * half, 1};
      const std::vector<double> b{1, other_factor, -1};
      double c = 7;
      reference_loop<double>(arithmetic, {a.data(), 1, 3, 3, 1}, {b.data(), 3, 1, 1, 1}, {&c, 1, 1, 1, 1}, 1);
      const double expected = half == 1 ? factor * other_factor : 0;
      EXPECT_EQ(c, expected) << to_text(arithmetic);
    }
  }
}

// 1 + 2^-100 - 1 would be 0 in double. The second sum is slightly above a tie of float; rounding it to double
// first would give the tie.
TEST(ReferenceLoop, DoubleDoubleKeepsTheLowPart) {
  const Arithmetic arithmetic = parse_arithmetic("double-double");
  const std::vector<double> a{1, 0x1p-50, 1};
  const std::vector<double> b{1, 0x1p-50, -1};
  double c = 7;
  reference_loop<double>(arithmetic, {a.data(), 1, 3, 3, 1}, {b.data(), 3, 1, 1, 1}, {&c, 1, 1, 1, 1}, 1);
  EXPECT_EQ(c, 0x1p-100);
  const std::vector<float> x{1, 0x1p-12F, 0x1p-40F};
  const std::vector<float> y{1, 0x1p-12F, 0x1p-40F};
  float z = 7;
  reference_loop<float>(arithmetic, {x.data(), 1, 3, 3, 1}, {y.data(), 3, 1, 1, 1}, {&z, 1, 1, 1, 1}, 1);
  EXPECT_EQ(z, 1 + 0x1p-23F);
}

template <class T>
void expect_errors_within_the_bound(const char* distribution) {
  constexpr std::int64_t m = 5, n = 7, k = 67;
  std::vector<T> a(m * k), b(k * n), c(m * n), by_three_threads(m * n);
  const MatrixView<T> view_a{a.data(), m, k, 1, m};  // column-major
  const MatrixView<T> view_b{b.data(), k, n, n, 1};
  fill(parse_distribution(distribution), Side::a, 3, view_a);
  fill(parse_distribution(distribution), Side::b, 3, view_b);
  Product<T> product;
  product.a = {a.data(), m, k, 1, m};
  product.b = {b.data(), k, n, n, 1};
  for (const Arithmetic& arithmetic : arithmetics()) {
    reference_loop<T>(arithmetic, product.a, product.b, {c.data(), m, n, n, 1}, 1);
    reference_loop<T>(arithmetic, product.a, product.b, {by_three_threads.data(), m, n, n, 1}, 3);
    EXPECT_EQ(c, by_three_threads) << "threads change nothing";
    std::vector<ElementError> elements;
    CheckOptions options;
    options.elements = &elements;
    measure_errors<T>(product, {c.data(), m, n, n, 1}, {}, options);
    for (const ElementError& element : elements) {
      const double before_rounding = reference_loop_bound(arithmetic, k) * element.absolute;
      const double rounding =
          std::ldexp(std::fabs(element.exact) + before_rounding, -std::numeric_limits<T>::digits);
      EXPECT_LE(std::fabs(element.error), before_rounding + rounding)
          << to_text(arithmetic) << ' ' << distribution;
    }
  }
}

TEST(ReferenceLoop, ErrorsAreWithinTheBound) {
  for (const char* distribution : {"uniform", "phi:2", "cancellation:60"}) {
    expect_errors_within_the_bound<float>(distribution);
    expect_errors_within_the_bound<double>(distribution);
  }
}

TEST(ReferenceLoop, TheBoundGrowsWithKAndShrinksWithTheBits) {
  EXPECT_EQ(reference_loop_bound({ArithmeticKind::mpfr, 53}, 0), 0);
  EXPECT_NEAR(reference_loop_bound({ArithmeticKind::mpfr, 53}, 1024), 0x1p-43, 0x1p-80);
  EXPECT_NEAR(reference_loop_bound({ArithmeticKind::float128, 113}, 1024), 0x1p-103, 0x1p-150);
}

}  // namespace
}  // namespace kintsugi::measure
