// Tests errors of results and references that are infinite or NaN.
#include <gtest/gtest.h>

#include <limits>

#include "metrics_case.hpp"

namespace kintsugi::measure {
namespace {

TYPED_TEST(Metrics, SpecialValuesInCAreInfiniteErrors) {
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

TYPED_TEST(Metrics, NanAtAZeroReferenceIsAnInfiniteError) {
  Case<TypeParam> x(1, 2, 1);
  x.c = {static_cast<TypeParam>(nan), 0};
  const ErrorReport report = x.check();
  EXPECT_EQ(report.zero_references, 2);
  EXPECT_EQ(report.nonzero_at_zero_reference, 1);
  EXPECT_EQ(report.max_relative, infinity);
}

TYPED_TEST(Metrics, SpecialReferencesMustBeMatched) {
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

TYPED_TEST(Metrics, OverflowOfTheExactResultIsNoError) {
  const TypeParam max = std::numeric_limits<TypeParam>::max();
  Case<TypeParam> x(1, 1, 1);
  x.a = {max};
  x.b = {2};
  x.c = {static_cast<TypeParam>(infinity)};
  ErrorReport report = x.check();
  EXPECT_EQ(report.overflowed_references, 1);
  EXPECT_EQ(report.special_mismatches, 0);
  EXPECT_EQ(report.max_relative, 0);
  EXPECT_EQ(report.correctly_rounded_fraction, 1);
  x.c = {-x.c[0]};
  EXPECT_EQ(x.check().max_relative, infinity);
  x.c = {max};
  report = x.check();
  EXPECT_EQ(report.max_relative, 0.5);
  EXPECT_EQ(report.correctly_rounded_fraction, 0);
}

}  // namespace
}  // namespace kintsugi::measure
