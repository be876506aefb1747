// Compares the errors that docs/TERMS.md defines with a slow computation in MPFR, and tests their special
// cases.
#include "tools/measure/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "metrics_case.hpp"
#include "tests/support/mpfr_value.hpp"

namespace kintsugi::measure {
namespace {

using testing::Mpfr;

// The errors by their definitions, computed in MPFR.
struct MpfrErrors {
  double frobenius, max_relative, mean_relative, max_componentwise, max_ulp, correct;
};

template <class T>
MpfrErrors mpfr_errors(const Case<T>& x) {
  MpfrErrors expected{};
  Mpfr error_square, exact_square, relative_sum;
  for (std::int64_t e = 0; e < x.m * x.n; ++e) {
    Mpfr dot, absolute;
    for (std::int64_t l = 0; l < x.k; ++l) {
      const Mpfr term = Mpfr(x.a[e / x.n * x.k + l]) * Mpfr(x.b[l * x.n + e % x.n]);
      dot += term;
      absolute += magnitude(term);
    }
    const Mpfr exact = Mpfr(x.alpha) * dot + Mpfr(x.beta) * Mpfr(x.c0[e]);
    absolute = Mpfr(std::fabs(x.alpha)) * absolute + magnitude(Mpfr(x.beta) * Mpfr(x.c0[e]));
    const Mpfr error = Mpfr(x.c[e]) - exact;
    error_square += error * error;
    exact_square += exact * exact;
    const double relative = ratio(error, exact);
    expected.max_relative = std::max(expected.max_relative, relative);
    relative_sum += Mpfr(relative);
    expected.max_componentwise = std::max(expected.max_componentwise, ratio(error, absolute));
    const T rounded = sizeof(T) == 4 ? exact.to_float() : static_cast<T>(exact.to_double());
    expected.correct += rounded == x.c[e] ? 1 : 0;
    const long exponent =
        std::max<long>(mpfr_get_exp(exact.get()) - 1, std::numeric_limits<T>::min_exponent - 1);
    const Mpfr unit = testing::power_of_two(exponent - std::numeric_limits<T>::digits + 1);
    expected.max_ulp = std::max(expected.max_ulp, ratio(error, unit));
  }
  const double elements = static_cast<double>(x.m * x.n);
  expected.frobenius = std::sqrt(ratio(error_square, exact_square));
  expected.mean_relative = relative_sum.to_double() / elements;
  expected.correct /= elements;
  return expected;
}

void expect_close(double got, double expected, double tolerance) {
  EXPECT_NEAR(got, expected, std::fabs(expected) * tolerance);
}

template <class T>
void expect_agreement(const Case<T>& x) {
  const MpfrErrors expected = mpfr_errors(x);
  const ErrorReport report = x.check();
  expect_close(report.frobenius_relative, expected.frobenius, 1e-14);
  expect_close(report.max_relative, expected.max_relative, 1e-15);
  expect_close(report.mean_relative, expected.mean_relative, 1e-14);
  // The denominator is raised by at most (k + 8) 2^-52.
  expect_close(report.max_componentwise, expected.max_componentwise, static_cast<double>(x.k + 10) * 0x1p-52);
  EXPECT_LE(report.max_componentwise, expected.max_componentwise * (1 + 1e-15));
  expect_close(report.max_ulp, expected.max_ulp, 1e-15);
  EXPECT_EQ(report.correctly_rounded_fraction, expected.correct);
  EXPECT_TRUE(std::isnan(report.le_gemm_max_error));
  EXPECT_TRUE(std::isnan(report.le_gemm_mred));
  EXPECT_TRUE(report.all_checked());
  EXPECT_EQ(report.elements_total, x.m * x.n);
}

TYPED_TEST(Metrics, AgreeWithMpfr) {
  std::uint64_t seed = 1;
  for (const char* values :
       {"uniform", "uniform01", "phi:2", "type2", "cancellation:12", "graded:40", "subnormal-mixed"}) {
    for (const auto& [alpha, beta] : {std::pair{1.0, 0.0}, {0.75, -0.5}, {-1.0, 1.0}}) {
      auto x = Case<TypeParam>::random(19, 7, 23, values, ++seed);
      x.alpha = alpha;
      x.beta = beta;
      x.compute();
      SCOPED_TRACE(values);
      expect_agreement(x);
    }
  }
}

TYPED_TEST(Metrics, CorrectlyRoundedProductErrsByAtMostHalfAnUlp) {
  auto x = Case<TypeParam>::random(33, 17, 50, "phi:1", 3);
  exact_product<TypeParam>(x.product(), {x.c.data(), x.m, x.n, x.n, 1});
  const ErrorReport report = x.check();
  EXPECT_EQ(report.correctly_rounded_fraction, 1);
  EXPECT_LE(report.max_ulp, 0.5);
  EXPECT_GT(report.max_ulp, 0.4);
  EXPECT_TRUE(report.within_contract_bound);
  x.c[5] = std::nextafter(x.c[5], TypeParam{100});
  EXPECT_LT(x.check().correctly_rounded_fraction, 1);
  EXPECT_GE(x.check().max_ulp, 0.5);
}

TYPED_TEST(Metrics, ContractBoundFailsForALargeError) {
  auto x = Case<TypeParam>::random(4, 4, 16, "uniform", 5);
  x.compute();
  EXPECT_TRUE(x.check().within_contract_bound);
  x.c[7] += static_cast<TypeParam>(100 * x.check().contract_bound);
  EXPECT_FALSE(x.check().within_contract_bound);
}

TYPED_TEST(Metrics, ZeroReferencesAreCountedApart) {
  Case<TypeParam> x(1, 3, 2);
  x.a = {1, 1};
  x.b = {1, 1, 2, -1, 0, 0};  // R = 0, 1, 2
  x.c = {0, 1, 2};
  ErrorReport report = x.check();
  EXPECT_EQ(report.zero_references, 1);
  EXPECT_EQ(report.nonzero_at_zero_reference, 0);
  EXPECT_EQ(report.max_relative, 0);
  EXPECT_EQ(report.mean_relative, 0);
  EXPECT_EQ(report.correctly_rounded_fraction, 1);
  x.c = {static_cast<TypeParam>(0.5), 1, 3};
  report = x.check();
  EXPECT_EQ(report.zero_references, 1);
  EXPECT_EQ(report.nonzero_at_zero_reference, 1);
  EXPECT_EQ(report.max_relative, infinity);
  EXPECT_EQ(report.mean_relative, 0.25);  // mean of 0 and 0.5; the zero reference is left out
  EXPECT_NEAR(report.max_componentwise, 0.5, 1e-14);
  EXPECT_EQ(report.largest_error, 1);
  EXPECT_NEAR(report.frobenius_relative, std::sqrt(1.25 / 5), 1e-15);
}

TYPED_TEST(Metrics, AZeroReferenceMatrixAllowsOnlyZeros) {
  Case<TypeParam> x(2, 2, 3);
  ErrorReport report = x.check();
  EXPECT_EQ(report.frobenius_relative, 0);
  EXPECT_EQ(report.zero_references, 4);
  EXPECT_EQ(report.correctly_rounded_fraction, 1);
  EXPECT_TRUE(report.within_contract_bound);
  x.c[3] = 1;
  report = x.check();
  EXPECT_EQ(report.frobenius_relative, infinity);
  EXPECT_EQ(report.max_componentwise, infinity);
  EXPECT_FALSE(report.within_contract_bound);
}

TYPED_TEST(Metrics, LeGemmErrorsAreThoseAgainstTheNativeResult) {
  Case<TypeParam> x(1, 4, 1);
  x.a = {1};
  x.b = {1, 2, 0, 4};
  x.c = {1, 2, 0, 5};
  x.native = {1, 3, 0, 5};
  // Eq. 19: |2 - 3| / (2 + 3). Eq. 20: |3 - 2| / 3 over the three elements with S not 0.
  EXPECT_NEAR(x.check({}, true).le_gemm_max_error, 0.2, 1e-16);
  EXPECT_NEAR(x.check({}, true).le_gemm_mred, 1.0 / 9, 1e-16);
  x.native[0] = -1;
  EXPECT_EQ(x.check({}, true).le_gemm_max_error, 1);
  EXPECT_NEAR(x.check({}, true).le_gemm_mred, 7.0 / 9, 1e-15);
  x.c[2] = 1;  // S is 0 here, so Eq. 20 leaves the element out
  EXPECT_EQ(x.check({}, true).le_gemm_max_error, 1);
  EXPECT_NEAR(x.check({}, true).le_gemm_mred, 7.0 / 9, 1e-15);
  x.c[2] = 0;
  x.native[0] = static_cast<TypeParam>(nan);
  EXPECT_EQ(x.check({}, true).le_gemm_max_error, infinity);
  EXPECT_EQ(x.check({}, true).le_gemm_mred, infinity);
  x.c[0] = x.native[0];
  EXPECT_NEAR(x.check({}, true).le_gemm_max_error, 0.2, 1e-16);
  EXPECT_NEAR(x.check({}, true).le_gemm_mred, 1.0 / 9, 1e-16);
}

// R is far below the smallest double; ratios are still those of the exact numbers.
TEST(MetricsRange, RatiosAreExactBelowTheSmallestDouble) {
  Case<double> x(1, 1, 1);
  x.a = {0x1p-700};
  x.b = {0x1p-700};
  x.c = {0};
  std::vector<ElementError> elements;
  const ErrorReport report = x.check({.elements = &elements});
  ASSERT_EQ(elements.size(), 1U);
  EXPECT_EQ(elements[0].relative, 1);
  EXPECT_EQ(report.max_relative, 1);
  EXPECT_EQ(report.frobenius_relative, 1);
  EXPECT_EQ(report.zero_references, 0);
  EXPECT_EQ(report.correctly_rounded_fraction, 1);
  EXPECT_LT(report.max_ulp, 1e-90);
  x.b = {0x1p-374};  // R is the smallest subnormal
  EXPECT_EQ(x.check().max_ulp, 1);
  EXPECT_EQ(x.check().correctly_rounded_fraction, 0);
  EXPECT_EQ(x.check().max_componentwise, 0.5);  // the bound there is raised to the next subnormal
}

}  // namespace
}  // namespace kintsugi::measure
