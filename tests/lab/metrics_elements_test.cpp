// Elements that a measurement reads: views, samples, threads, wrong shapes, a reference that is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "metrics_case.hpp"

namespace kintsugi::lab {
namespace {

TYPED_TEST(Metrics, StridesAndTransposes) {
  auto x = Case<TypeParam>::random(6, 5, 9, "uniform", 21);
  x.compute();
  const ErrorReport plain = x.check();
  // The numbers of the case as C^T = B^T A^T.
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

// Report and elements do not depend on how many results are measured.
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
