// The errors of FACTS section 4 against a slow computation in MPFR, and the rules at the edges.
#include "lab/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "lab/generators.hpp"
#include "lab/random.hpp"
#include "mpfr_value.hpp"

namespace kintsugi::lab {
namespace {

using core::MatrixView;
using testing::Mpfr;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

// A product with all of its matrices, row-major.
template <class T>
struct Case {
  std::int64_t m, n, k;
  std::vector<T> a, b, c0, c, native;
  double alpha = 1;
  double beta = 0;

  Case(std::int64_t rows, std::int64_t columns, std::int64_t inner)
      : m(rows), n(columns), k(inner), a(m * k), b(k * n), c0(m * n), c(m * n), native(m * n) {}

  static MatrixView<const T> view(const std::vector<T>& x, std::int64_t rows, std::int64_t columns) {
    return {x.data(), rows, columns, columns, 1};
  }
  Product<T> product() const { return {view(a, m, k), view(b, k, n), alpha, beta, view(c0, m, n)}; }
  ErrorReport check(const CheckOptions& options = {}, bool with_native = false) const {
    return measure_errors<T>(product(), view(c, m, n),
                             with_native ? view(native, m, n) : MatrixView<const T>{}, options);
  }

  // Computed in T, term by term.
  void compute() {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
        c[i * n + j] = static_cast<T>(alpha) * sum + static_cast<T>(beta) * c0[i * n + j];
      }
    }
  }

  static Case random(std::int64_t rows, std::int64_t columns, std::int64_t inner, const char* distribution,
                     std::uint64_t seed) {
    Case result(rows, columns, inner);
    const Distribution values = parse_distribution(distribution);
    fill<T>(values, Side::a, seed, {result.a.data(), rows, inner, inner, 1});
    fill<T>(values, Side::b, seed, {result.b.data(), inner, columns, columns, 1});
    fill<T>(parse_distribution("uniform"), Side::a, seed + 77, {result.c0.data(), rows, columns, columns, 1});
    return result;
  }
};

// The definitions once more, as slowly and plainly as can be.
struct Slow {
  double frobenius, max_relative, mean_relative, max_componentwise, max_ulp, correct;
};

template <class T>
Slow slow_errors(const Case<T>& x) {
  Slow slow{};
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
    slow.max_relative = std::max(slow.max_relative, relative);
    relative_sum += Mpfr(relative);
    slow.max_componentwise = std::max(slow.max_componentwise, ratio(error, absolute));
    const T rounded = sizeof(T) == 4 ? exact.to_float() : static_cast<T>(exact.to_double());
    slow.correct += rounded == x.c[e] ? 1 : 0;
    const long exponent =
        std::max<long>(mpfr_get_exp(exact.get()) - 1, std::numeric_limits<T>::min_exponent - 1);
    const Mpfr unit = testing::power_of_two(exponent - std::numeric_limits<T>::digits + 1);
    slow.max_ulp = std::max(slow.max_ulp, ratio(error, unit));
  }
  const double elements = static_cast<double>(x.m * x.n);
  slow.frobenius = std::sqrt(ratio(error_square, exact_square));
  slow.mean_relative = relative_sum.to_double() / elements;
  slow.correct /= elements;
  return slow;
}

void expect_close(double got, double expected, double tolerance) {
  EXPECT_NEAR(got, expected, std::fabs(expected) * tolerance);
}

template <class T>
void expect_agreement(const Case<T>& x) {
  const Slow slow = slow_errors(x);
  const ErrorReport report = x.check();
  expect_close(report.frobenius_relative, slow.frobenius, 1e-14);
  expect_close(report.max_relative, slow.max_relative, 1e-15);
  expect_close(report.mean_relative, slow.mean_relative, 1e-14);
  // Its denominator is raised by at most (k + 8) 2^-52.
  expect_close(report.max_componentwise, slow.max_componentwise, static_cast<double>(x.k + 10) * 0x1p-52);
  EXPECT_LE(report.max_componentwise, slow.max_componentwise * (1 + 1e-15));
  expect_close(report.max_ulp, slow.max_ulp, 1e-15);
  EXPECT_EQ(report.correctly_rounded_fraction, slow.correct);
  EXPECT_TRUE(std::isnan(report.le_gemm_max_error));
  EXPECT_TRUE(std::isnan(report.le_gemm_mred));
  EXPECT_TRUE(report.all_checked());
  EXPECT_EQ(report.elements_total, x.m * x.n);
}

template <class T>
class Metrics : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Metrics, Types);

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

TYPED_TEST(Metrics, CorrectlyRoundedProductHasNoWorseThanHalfAnUlp) {
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

TYPED_TEST(Metrics, ContractBoundIsSeenToFail) {
  auto x = Case<TypeParam>::random(4, 4, 16, "uniform", 5);
  x.compute();
  EXPECT_TRUE(x.check().within_contract_bound);
  x.c[7] += static_cast<TypeParam>(100 * x.check().contract_bound);
  EXPECT_FALSE(x.check().within_contract_bound);
}

TYPED_TEST(Metrics, ZeroReferences) {
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
  EXPECT_EQ(report.mean_relative, 0.25);  // of 0 and 0.5, the zero left out
  EXPECT_NEAR(report.max_componentwise, 0.5, 1e-14);
  EXPECT_EQ(report.largest_error, 1);
  EXPECT_NEAR(report.frobenius_relative, std::sqrt(1.25 / 5), 1e-15);
}

TYPED_TEST(Metrics, AllZero) {
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

TYPED_TEST(Metrics, NotANumberInCIsNeverSkipped) {
  for (const double wrong : {nan, infinity, -infinity}) {
    auto x = Case<TypeParam>::random(5, 5, 5, "uniform", 9);
    x.compute();
    x.c[12] = static_cast<TypeParam>(wrong);
    const ErrorReport report = x.check();
    EXPECT_EQ(report.max_relative, infinity);
    EXPECT_EQ(report.mean_relative, infinity);
    EXPECT_EQ(report.max_componentwise, infinity);
    EXPECT_EQ(report.max_ulp, infinity);
    EXPECT_EQ(report.frobenius_relative, infinity);
    EXPECT_EQ(report.largest_error, infinity);
    EXPECT_EQ(report.special_mismatches, 1);
    EXPECT_FALSE(report.within_contract_bound);
    EXPECT_LT(report.correctly_rounded_fraction, 1);
  }
}

TYPED_TEST(Metrics, NotANumberAtAZeroReferenceCountsBothWays) {
  Case<TypeParam> x(1, 2, 1);
  x.c = {static_cast<TypeParam>(nan), 0};
  const ErrorReport report = x.check();
  EXPECT_EQ(report.zero_references, 2);
  EXPECT_EQ(report.nonzero_at_zero_reference, 1);
  EXPECT_EQ(report.max_relative, infinity);
}

TYPED_TEST(Metrics, SpecialReferences) {
  const auto inf = static_cast<TypeParam>(infinity);
  Case<TypeParam> x(2, 2, 2);
  x.a = {inf, 1, 1, 1};
  x.b = {1, 0, 1, 1};  // R = inf, NaN; 2, 1
  x.c = {inf, static_cast<TypeParam>(nan), 2, 1};
  ErrorReport report = x.check();
  EXPECT_EQ(report.special_references, 2);
  EXPECT_EQ(report.special_mismatches, 0);
  EXPECT_EQ(report.max_relative, 0);
  EXPECT_EQ(report.correctly_rounded_fraction, 1);
  EXPECT_TRUE(report.within_contract_bound);
  x.c[0] = -inf;
  report = x.check();
  EXPECT_EQ(report.special_mismatches, 1);
  EXPECT_EQ(report.max_ulp, infinity);
  x.c[0] = inf;
  x.c[1] = 7;
  EXPECT_EQ(x.check().special_mismatches, 1);
  EXPECT_EQ(x.check().max_componentwise, infinity);
}

TYPED_TEST(Metrics, OverflowThatIsRight) {
  const TypeParam most = std::numeric_limits<TypeParam>::max();
  Case<TypeParam> x(1, 1, 1);
  x.a = {most};
  x.b = {2};
  x.c = {static_cast<TypeParam>(infinity)};
  ErrorReport report = x.check();
  EXPECT_EQ(report.overflowed_references, 1);
  EXPECT_EQ(report.special_mismatches, 0);
  EXPECT_EQ(report.max_relative, 0);
  EXPECT_EQ(report.correctly_rounded_fraction, 1);
  x.c = {-x.c[0]};
  EXPECT_EQ(x.check().max_relative, infinity);
  x.c = {most};
  report = x.check();
  EXPECT_EQ(report.max_relative, 0.5);
  EXPECT_EQ(report.correctly_rounded_fraction, 0);
}

// R far below the smallest double: ratios are still those of the exact numbers.
TEST(MetricsRange, BelowDouble) {
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

TYPED_TEST(Metrics, NativeResult) {
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
  x.c[2] = 1;  // where S = 0: left out of Eq. 20 alone
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

TYPED_TEST(Metrics, StridesAndTransposes) {
  auto x = Case<TypeParam>::random(6, 5, 9, "uniform", 21);
  x.compute();
  const ErrorReport plain = x.check();
  // The same numbers as C^T = B^T A^T.
  Product<TypeParam> product = x.product();
  std::swap(product.a, product.b);
  product.a = product.a.transposed();
  product.b = product.b.transposed();
  product.c0 = product.c0.transposed();
  const ErrorReport turned = measure_errors<TypeParam>(product, x.view(x.c, x.m, x.n).transposed());
  EXPECT_EQ(turned.max_relative, plain.max_relative);
  EXPECT_EQ(turned.max_componentwise, plain.max_componentwise);
  EXPECT_EQ(turned.max_ulp, plain.max_ulp);
}

TYPED_TEST(Metrics, ElementsAndThreads) {
  auto x = Case<TypeParam>::random(50, 41, 13, "phi:1", 2);
  x.compute();
  std::vector<ElementError> one, three;
  std::int64_t last = 0, calls = 0;
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, 50 * 41);
    last = done;
    ++calls;
  };
  const ErrorReport a = x.check({.threads = 1, .elements = &one});
  const ErrorReport b = x.check({.threads = 3, .progress = progress, .elements = &three});
  EXPECT_EQ(last, 50 * 41);
  EXPECT_GT(calls, 1);
  EXPECT_EQ(a.frobenius_relative, b.frobenius_relative);
  EXPECT_EQ(a.mean_relative, b.mean_relative);
  ASSERT_EQ(one.size(), 50U * 41U);
  ASSERT_EQ(three.size(), one.size());
  double largest = 0;
  for (std::size_t e = 0; e < one.size(); ++e) {
    ASSERT_EQ(one[e].i, three[e].i);
    ASSERT_EQ(one[e].error, three[e].error);
    ASSERT_EQ(one[e].computed, static_cast<double>(x.c[one[e].i * x.n + one[e].j]));
    ASSERT_EQ(one[e].error, exact_error(x.product(), one[e].i, one[e].j, x.c[one[e].i * x.n + one[e].j]));
    largest = std::max(largest, std::fabs(one[e].error) / one[e].absolute);
  }
  EXPECT_EQ(largest, a.max_componentwise);
}

TYPED_TEST(Metrics, Samples) {
  auto x = Case<TypeParam>::random(101, 67, 4, "uniform", 4);
  x.compute();
  x.c.back() += 1;  // a corner, always looked at
  std::vector<ElementError> elements;
  const CheckOptions options{.work_limit = 1000, .max_elements = 200, .seed = 5, .elements = &elements};
  const ErrorReport report = x.check(options);
  EXPECT_GE(report.elements_checked, 200);
  EXPECT_LE(report.elements_checked, 215);
  EXPECT_EQ(report.elements_total, 101 * 67);
  EXPECT_FALSE(report.all_checked());
  EXPECT_NEAR(report.largest_error, 1, 1e-5);
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  for (const ElementError& element : elements) places.insert({element.i, element.j});
  EXPECT_EQ(std::ssize(places), report.elements_checked);
  EXPECT_EQ(x.check(options).mean_relative, report.mean_relative);
  CheckOptions other = options;
  other.seed = 6;
  EXPECT_NE(x.check(other).mean_relative, report.mean_relative);
  EXPECT_TRUE(x.check({.work_limit = 0, .max_elements = 101 * 67}).all_checked());
}

TEST(MetricsShapes, EmptyAndWrong) {
  const Case<double> empty(0, 5, 3);
  EXPECT_EQ(empty.check().elements_checked, 0);
  EXPECT_EQ(empty.check().correctly_rounded_fraction, 1);
  Case<double> no_inner(2, 2, 0);
  no_inner.beta = 3;
  no_inner.c0 = {1, 2, 3, 4};
  no_inner.c = {3, 6, 9, 12};
  EXPECT_EQ(no_inner.check().correctly_rounded_fraction, 1);
  EXPECT_EQ(no_inner.check().frobenius_relative, 0);
  const Case<double> x(2, 3, 4);
  Product<double> product = x.product();
  product.b.rows = 5;
  EXPECT_THROW(measure_errors<double>(product, x.view(x.c, 2, 3)), core::Error);
  product = x.product();
  product.beta = 1;
  product.c0 = {};
  EXPECT_THROW(measure_errors<double>(product, x.view(x.c, 2, 3)), core::Error);
  product.beta = 0;
  EXPECT_NO_THROW(measure_errors<double>(product, x.view(x.c, 2, 3)));
}

// The same report and the same elements, for as many results as are measured.
TYPED_TEST(Metrics, ReferenceComputedOnce) {
  for (const std::int64_t max_elements : {64, 10000}) {
    Case<TypeParam> x = Case<TypeParam>::random(33, 40, 21, "phi:2", 5);
    x.alpha = 0.75;
    x.beta = -2;
    x.native = x.c0;
    std::vector<ElementError> direct;
    std::vector<ElementError> kept;
    const CheckOptions options{.work_limit = 0, .max_elements = max_elements, .seed = 3, .elements = &direct};
    const ExactReference<TypeParam> reference(x.product(), x.m, x.n, options);
    for (int result = 0; result < 2; ++result) {
      const ErrorReport one = x.check(options, true);
      const ErrorReport other = reference.measure(x.view(x.c, x.m, x.n), x.view(x.native, x.m, x.n), &kept);
      EXPECT_EQ(one.frobenius_relative, other.frobenius_relative);
      EXPECT_EQ(one.max_relative, other.max_relative);
      EXPECT_EQ(one.mean_relative, other.mean_relative);
      EXPECT_EQ(one.max_componentwise, other.max_componentwise);
      EXPECT_EQ(one.max_ulp, other.max_ulp);
      EXPECT_EQ(one.correctly_rounded_fraction, other.correctly_rounded_fraction);
      EXPECT_EQ(one.le_gemm_max_error, other.le_gemm_max_error);
      EXPECT_EQ(one.le_gemm_mred, other.le_gemm_mred);
      EXPECT_EQ(one.elements_checked, other.elements_checked);
      EXPECT_EQ(one.elements_total, other.elements_total);
      EXPECT_EQ(one.contract_bound, other.contract_bound);
      EXPECT_EQ(one.within_contract_bound, other.within_contract_bound);
      ASSERT_EQ(direct.size(), kept.size());
      for (std::size_t e = 0; e < kept.size(); ++e) {
        EXPECT_EQ(direct[e].i, kept[e].i);
        EXPECT_EQ(direct[e].j, kept[e].j);
        EXPECT_EQ(direct[e].error, kept[e].error);
      }
      x.compute();
    }
    EXPECT_THROW(reference.measure(x.view(x.c, 40, 33)), core::Error);
  }
}

}  // namespace
}  // namespace kintsugi::lab
