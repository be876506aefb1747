// Tests which products are summed exactly, without slices.
#include <gtest/gtest.h>

#include <array>

#include "engines/registry.hpp"
#include "planner/candidates.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {
namespace {

Plan plan_of(const char* engine, std::int64_t m, std::int64_t n, std::int64_t k, const char* setting,
             const char* value, const char* scheme = nullptr) {
  Problem problem{.m = m, .n = n, .k = k, .lda = m, .ldb = k, .ldc = m, .type = OperandType::f64};
  problem.layout = Layout::column_major;
  SettingLayer call;
  call.set(find_setting(setting), value, "test");
  if (scheme != nullptr) call.set(find_setting("scheme"), scheme, "test");
  return make_plan_on(problem, Settings(call, {}, {}, {}), *find_engine(engine));
}

bool sums_all_exactly(const Plan& plan) {
  return plan.candidates.size() == 1 &&
         plan.candidates.front().program.recombination == Recombination::exact_sums;
}

TEST(ExactChoice, SmallProductsAreSummedWhereThereAreKernels) {
  const bool has_kernels = find_engine("cpu")->host()->sum_kernels() != nullptr;
  for (const std::int64_t n : {8, 16, 32, 64})
    EXPECT_EQ(sums_all_exactly(plan_of("cpu", n, n, n, "accuracy", "exact")), has_kernels) << n;
  // Without vector kernels of int8, residues take longer than sums at every size.
  const bool has_fast_residues = find_engine("cpu")->relative_rate(FormatId::int8) >= 1;
  if (has_fast_residues) EXPECT_FALSE(sums_all_exactly(plan_of("cpu", 512, 512, 512, "accuracy", "exact")));
  EXPECT_FALSE(sums_all_exactly(plan_of("reference", 8, 8, 8, "accuracy", "exact")));
}

// Under `emulate` the program decides the bits, so the shape alone decides on the program.
TEST(ExactChoice, ShortSidesAreSummedByEveryEngine) {
  for (const char* engine : {"cpu", "reference"}) {
    for (const auto& [m, n, k] :
         {std::array<std::int64_t, 3>{3, 2, 524288}, {524288, 3, 2}, {1000, 1000, 1}, {1, 1000, 1000}}) {
      EXPECT_TRUE(sums_all_exactly(plan_of(engine, m, n, k, "policy", "emulate")))
          << m << " " << n << " " << k;
      EXPECT_TRUE(sums_all_exactly(plan_of(engine, m, n, k, "accuracy", "exact")))
          << m << " " << n << " " << k;
    }
    EXPECT_FALSE(sums_all_exactly(plan_of(engine, 5, 5, 5, "policy", "emulate")));
  }
}

TEST(ExactChoice, ReproducibleProductsOfShortSidesHaveNoSlices) {
  const auto first = [](std::int64_t n, const char* scheme) {
    return plan_of("cpu", 3, n, 100000, "accuracy", "reproducible", scheme).candidates.front().program;
  };
  for (const char* scheme : {static_cast<const char*>(nullptr), "int52"})
    EXPECT_EQ(first(2, scheme).recombination, Recombination::exact_sums);
  EXPECT_EQ(first(2, "ozaki2").recombination, Recombination::residues);
  EXPECT_NE(
      plan_of("cpu", 100, 100, 100, "accuracy", "reproducible").candidates.front().program.recombination,
      Recombination::exact_sums);
}

}  // namespace
}  // namespace kintsugi::core
