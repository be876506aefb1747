// Tests split-n on FP64 operands: bounds, bits, special values, prepared operands.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/number_kind.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

using DoubleData = GemmDataOf<double>;

class Doubles : public testing::TestWithParam<std::string> {
 protected:
  GemmCase base(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return {.m = m, .n = n, .k = k, .scheme = GetParam(), .engine = "reference"};
  }
};

TEST_P(Doubles, StayWithinTheBound) {
  std::mt19937 random(3);
  const double scalars[] = {1, -1, 0.75, 1e-20, -3e7};
  const auto pick = [&](const auto& list) { return list[random() % std::size(list)]; };
  int covered = 0;
  for (const char* distribution : {"uniform", "uniform01", "phi:1", "type1", "type3", "type4", "offset:-300",
                                   "graded:40", "cancellation:40", "subnormal-mixed", "integer:1000000"}) {
    for (const std::int64_t k : {1, 3, 65, 200}) {
      if (!thorough && k == 200) continue;
      GemmCase test = base(11, 7, k);
      test.distribution = distribution;
      test.alpha = pick(scalars);
      test.beta = random() % 2 == 0 ? 0 : pick(scalars);
      test.layout = static_cast<kintsugi_layout>(random() % 2);
      test.op_a = static_cast<kintsugi_op>(random() % 3);
      test.op_b = static_cast<kintsugi_op>(random() % 3);
      test.pad_a = random() % 3;
      DoubleData data(test);
      const Allowance<double> allowed(*core::find_scheme(GetParam()), *core::find_engine("reference"),
                                      constant(data.a()), constant(data.b()));
      if (allowed.overflows()) continue;
      const std::vector<double> before = data.raw_c();
      data.run_well();
      ++covered;
      for (const auto& element : element_errors(data, before)) {
        ASSERT_LE(std::abs(element.error), allowed(element, test.alpha))
            << distribution << " k = " << k << " alpha " << test.alpha << " beta " << test.beta;
      }
    }
  }
  EXPECT_GT(covered, 8);
}

TEST_P(Doubles, ThreadsBlocksAndPreparedOperandsKeepTheBits) {
  GemmCase test = base(200, thorough ? 140 : 8, thorough ? 70 : 5);
  test.threads = 1;
  DoubleData unlimited(test);
  unlimited.run_well();
  const auto expected = bits_of(unlimited.result());
  test.threads = 3;
  DoubleData threaded(test);
  threaded.run_well();
  EXPECT_EQ(bits_of(threaded.result()), expected);
  const PlanOf plan(unlimited);
  std::size_t full = 0;
  kintsugi_plan_workspace_size(plan.plan, &full);
  test.threads = 1;
  test.workspace_limit = static_cast<std::int64_t>(full * 9 / 10);
  DoubleData blocked(test);
  blocked.run_well();
  EXPECT_EQ(bits_of(blocked.result()), expected);
  kintsugi_prepared a = nullptr, b = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, unlimited.raw_a().data(), &a), KINTSUGI_SUCCESS);
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_B, unlimited.raw_b().data(), &b), KINTSUGI_SUCCESS);
  for (double& x : unlimited.raw_c()) x = poison_of<double>();
  auto operands = unlimited.operands();
  operands.a = operands.b = nullptr;
  operands.prepared_a = a;
  operands.prepared_b = b;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(bits_of(unlimited.result()), expected);
  kintsugi_prepared_destroy(a);
  kintsugi_prepared_destroy(b);
}

TEST_P(Doubles, SpecialValuesFollowTheTable) {
  DoubleData data(base(4, 3, 20));
  data.a()(0, 4) = std::numeric_limits<double>::quiet_NaN();
  data.a()(1, 5) = infinity;
  for (std::int64_t j = 0; j < 3; ++j) data.b()(5, j) = j == 2 ? 0 : 0.5 - static_cast<double>(j);
  data.a()(2, 3) = infinity;
  data.a()(2, 7) = -infinity;
  for (std::int64_t j = 0; j < 3; ++j) data.b()(3, j) = data.b()(7, j) = 2;
  data.run_well();
  for (std::int64_t j = 0; j < 3; ++j) {
    EXPECT_TRUE(std::isnan(data.c()(0, j)));
    EXPECT_TRUE(std::isnan(data.c()(2, j)));
    EXPECT_TRUE(std::isfinite(data.c()(3, j)));
  }
  EXPECT_EQ(data.c()(1, 0), infinity);
  EXPECT_EQ(data.c()(1, 1), -infinity);
  EXPECT_TRUE(std::isnan(data.c()(1, 2)));
}

TEST_P(Doubles, SmallIntegersAreExact) {
  for (const std::int64_t k : {1, 64, 129}) {
    GemmCase test = base(9, 6, k);
    test.distribution = "integer:30";
    DoubleData data(test);
    data.run_well();
    for (const auto& element : element_errors(data)) ASSERT_EQ(element.error, 0) << "k = " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(SplitN, Doubles,
                         testing::Values("split-n", "split-n:a=5:b=5:scale=11:block=64",
                                         "split-n:format=bf16:a=7:b=3:scale=8:terms=12",
                                         "split-n:format=fp32:a=3:b=2",
                                         "split-n:format=tf32:a=5:b=5:scale=12:block=16"),
                         [](const auto& test) {
                           std::string name;
                           for (const char c : test.param)
                             name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace kintsugi::test
