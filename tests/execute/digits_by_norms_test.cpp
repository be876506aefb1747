// Tests that norms let int8x6 compute FP32 products only where these keep the contract, and are as accurate
// as native ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {
namespace {

constexpr std::int64_t m = 9, n = 7;

struct Result {
  bool by_digits;
  double error;  // largest |C - AB| / |A||B|, in u
};

// Multiplies under the policy emulate. draw() returns an element.
template <class Draw>
Result multiply(std::int64_t k, const Draw& draw) {
  Problem problem;
  problem.m = problem.lda = problem.ldc = m;
  problem.n = n;
  problem.k = problem.ldb = k;
  SettingLayer call;
  call.set(find_setting("policy"), "emulate", "test");
  const Plan plan = make_plan_on(problem, Settings(call, {}, {}, {}), *find_engine("cpu"));
  std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), c(m * n);
  for (auto* matrix : {&a, &b}) {
    for (float& x : *matrix) x = static_cast<float>(draw());
  }
  Operands operands;
  operands.alpha = 1.0F;
  operands.beta = 0.0F;
  operands.a = a.data();
  operands.b = b.data();
  operands.c = c.data();
  Report report;
  execute(plan, operands, report);
  Result result{.by_digits = report.items[0] == 1 && plan.candidates[0].scheme_name() == "int8x6",
                .error = 0};
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      long double exact = 0, magnitude = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        const double product = static_cast<double>(a[static_cast<std::size_t>(i + p * m)]) *
                               static_cast<double>(b[static_cast<std::size_t>(p + j * k)]);
        exact += product;
        magnitude += std::abs(product);
      }
      const long double error = std::abs(c[static_cast<std::size_t>(i + j * m)] - exact);
      result.error = std::max(result.error, static_cast<double>(error / magnitude * 0x1p24L));
    }
  }
  return result;
}

bool begins_with_digits() {
  Problem problem;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = 64;
  SettingLayer call;
  call.set(find_setting("policy"), "emulate", "test");
  return find_engine("cpu")->unavailable_reason().empty() &&
         make_plan_on(problem, Settings(call, {}, {}, {}), *find_engine("cpu")).candidates[0].scheme_name() ==
             "int8x6";
}

TEST(DigitsByNorms, TakeUniformElementsAndAreAsAccurateAsNative) {
  if (!begins_with_digits()) GTEST_SKIP() << "on this CPU FP32 does not begin with int8x6";
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  for (const std::int64_t k : {1024, 4096}) {
    const Result result = multiply(k, [&] { return uniform(random); });
    EXPECT_TRUE(result.by_digits) << k;
    EXPECT_LT(result.error, 2) << k;  // native: 0.4 to 1.3 (lab/results/log/2026-11-29-cpu-fused-products.md)
  }
}

TEST(DigitsByNorms, RefuseElementsOfWideRange) {
  if (!begins_with_digits()) GTEST_SKIP() << "on this CPU FP32 does not begin with int8x6";
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  for (const double phi : {1.0, 2.0, 4.0}) {
    const Result result = multiply(1024, [&] { return normal(random) * std::exp(phi * normal(random)); });
    EXPECT_FALSE(result.by_digits) << phi;
    EXPECT_LE(result.error, 1024 + 8) << phi;
  }
}

// The products that int8x6 leaves out all have one sign here, and their digits are the largest.
TEST(DigitsByNorms, KeepTheContractWhereLostProductsAddUp) {
  if (!begins_with_digits()) GTEST_SKIP() << "on this CPU FP32 does not begin with int8x6";
  std::mt19937 random(3);
  int by_digits = 0;
  for (int number = 0; number < 200; ++number) {
    const std::int64_t k = 1 + static_cast<std::int64_t>(random() % 300);
    const double top = 64 + static_cast<double>(random() % 62);
    const bool has_zeros = random() % 3 == 0;
    const Result result = multiply(k, [&] {
      if (has_zeros && random() % 8 == 0) return 0.0;
      return top + 127.0 / 256 + 127.0 / 65536;
    });
    EXPECT_LE(result.error, static_cast<double>(k + 8)) << k << " " << top;
    by_digits += result.by_digits ? 1 : 0;
  }
  EXPECT_GT(by_digits, 20);
}

}  // namespace
}  // namespace kintsugi::core
