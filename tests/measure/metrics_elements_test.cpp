// Tests which elements a measurement reads: views, samples, threads, wrong shapes, a reference that is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "metrics_case.hpp"

namespace kintsugi::measure {
namespace {

TYPED_TEST(Metrics, ErrorsDoNotDependOnTransposes) {
  auto x = Case<TypeParam>::random(6, 5, 9, "uniform", 21);
  x.compute();
  const ErrorReport plain = x.check();
  // The same product as C^T = B^T A^T.
  Product<TypeParam> product = x.product();
  std::swap(product.a, product.b);
  product.a = product.a.transposed();
  product.b = product.b.transposed();
  product.c0 = product.c0.transposed();
  const ErrorReport transposed_report =
      measure_errors<TypeParam>(product, x.view(x.c, x.m, x.n).transposed());
  EXPECT_EQ(transposed_report.max_relative, plain.max_relative);
  EXPECT_EQ(transposed_report.max_componentwise, plain.max_componentwise);
  EXPECT_EQ(transposed_report.max_ulp, plain.max_ulp);
}

TYPED_TEST(Metrics, ElementsAndErrorsDoNotDependOnThreads) {
  auto x = Case<TypeParam>::random(50, 41, 13, "phi:1", 2);
  x.compute();
  std::vector<ElementError> one_thread, three_threads;
  std::int64_t last = 0, calls = 0;
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, 50 * 41);
    last = done;
    ++calls;
  };
  const ErrorReport a = x.check({.threads = 1, .elements = &one_thread});
  const ErrorReport b = x.check({.threads = 3, .progress = progress, .elements = &three_threads});
  EXPECT_EQ(last, 50 * 41);
  EXPECT_GT(calls, 1);
  EXPECT_EQ(a.frobenius_relative, b.frobenius_relative);
  EXPECT_EQ(a.mean_relative, b.mean_relative);
  ASSERT_EQ(one_thread.size(), 50U * 41U);
  ASSERT_EQ(three_threads.size(), one_thread.size());
  double largest = 0;
  for (std::size_t e = 0; e < one_thread.size(); ++e) {
    ASSERT_EQ(one_thread[e].i, three_threads[e].i);
    ASSERT_EQ(one_thread[e].error, three_threads[e].error);
    ASSERT_EQ(one_thread[e].computed, static_cast<double>(x.c[one_thread[e].i * x.n + one_thread[e].j]));
    ASSERT_EQ(one_thread[e].error, exact_error(x.product(), one_thread[e].i, one_thread[e].j,
                                               x.c[one_thread[e].i * x.n + one_thread[e].j]));
    largest = std::max(largest, std::fabs(one_thread[e].error) / one_thread[e].absolute);
  }
  EXPECT_EQ(largest, a.max_componentwise);
}

TYPED_TEST(Metrics, SamplesAreRepeatableAndHaveTheCorners) {
  auto x = Case<TypeParam>::random(101, 67, 4, "uniform", 4);
  x.compute();
  x.c.back() += 1;  // the last element is a corner, which every sample has
  std::vector<ElementError> elements;
  const CheckOptions options{.work_limit = 1000, .max_elements = 200, .seed = 5, .elements = &elements};
  const ErrorReport report = x.check(options);
  EXPECT_GE(report.elements_checked, 200);
  EXPECT_LE(report.elements_checked, 215);
  EXPECT_EQ(report.elements_total, 101 * 67);
  EXPECT_FALSE(report.all_checked());
  EXPECT_NEAR(report.largest_error, 1, 1e-5);
  std::set<std::pair<std::int64_t, std::int64_t>> sampled;
  for (const ElementError& element : elements) sampled.insert({element.i, element.j});
  EXPECT_EQ(std::ssize(sampled), report.elements_checked);
  EXPECT_EQ(x.check(options).mean_relative, report.mean_relative);
  CheckOptions other_seed = options;
  other_seed.seed = 6;
  EXPECT_NE(x.check(other_seed).mean_relative, report.mean_relative);
  EXPECT_TRUE(x.check({.work_limit = 0, .max_elements = 101 * 67}).all_checked());
}

TEST(MetricsShapes, EmptyOnesHaveNoErrorAndWrongOnesThrow) {
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

// A reference that is computed once and measures several results gives the report and elements of a direct
// check.
TYPED_TEST(Metrics, AKeptReferenceGivesTheSameReports) {
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
      const ErrorReport one_thread = x.check(options, true);
      const ErrorReport other_seed =
          reference.measure(x.view(x.c, x.m, x.n), x.view(x.native, x.m, x.n), &kept);
      EXPECT_EQ(one_thread.frobenius_relative, other_seed.frobenius_relative);
      EXPECT_EQ(one_thread.max_relative, other_seed.max_relative);
      EXPECT_EQ(one_thread.mean_relative, other_seed.mean_relative);
      EXPECT_EQ(one_thread.max_componentwise, other_seed.max_componentwise);
      EXPECT_EQ(one_thread.max_ulp, other_seed.max_ulp);
      EXPECT_EQ(one_thread.correctly_rounded_fraction, other_seed.correctly_rounded_fraction);
      EXPECT_EQ(one_thread.le_gemm_max_error, other_seed.le_gemm_max_error);
      EXPECT_EQ(one_thread.le_gemm_mred, other_seed.le_gemm_mred);
      EXPECT_EQ(one_thread.elements_checked, other_seed.elements_checked);
      EXPECT_EQ(one_thread.elements_total, other_seed.elements_total);
      EXPECT_EQ(one_thread.contract_bound, other_seed.contract_bound);
      EXPECT_EQ(one_thread.within_contract_bound, other_seed.within_contract_bound);
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
}  // namespace kintsugi::measure
