// Tests which programs the policies select, and native products, through the C ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/plan.hpp"
#include "schemes/bound.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/routes.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

TEST(Policy, AutoTakesTheNativeProductOnACpu) {
  GemmData data(GemmCase{.m = 30, .n = 40, .k = 500});
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  EXPECT_EQ(candidates(plan.describe()), std::vector<std::string>{"native"});
  EXPECT_EQ(plan.workspace(), 0U);
}

// The native sum is proved for the contract at every k (it has no second-order term).
TEST(Policy, AutoStaysNativeForLongSums) {
  for (const std::int64_t k : {10836, 20000, 1000000}) {
    GemmData data(GemmCase{.m = 1, .n = 1, .k = k});
    data.a()(0, 0) = 1e-30F;
    const Handle handle;
    data.run_well(handle);
    EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"native"}) << k;
  }
}

TEST(Policy, TheNearerOfSchemeAndNativePolicyCounts) {
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "scheme", "fp16"), KINTSUGI_SUCCESS);
  GemmData native(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference", .policy = "native"});
  native.run_well(handle);
  EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"native"});
  kintsugi_set(handle, "scheme", nullptr);
  ASSERT_EQ(kintsugi_set(handle, "policy", "native"), KINTSUGI_SUCCESS);
  GemmData scheme(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "fp16", .engine = "reference"});
  scheme.run_well(handle);
  EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"fp16"});
}

TEST(NamedSchemeAndAccuracy, AreAnErrorIfTheSchemeCannotReachTheAccuracy) {
  for (const auto& [scheme, accuracy] : {std::pair{"fp16", "exact"},
                                         {"fp16", "fp32"},
                                         {"fp16", "1e-4"},
                                         {"bf16x9", "exact"},
                                         {"fp16x3", "exact"},
                                         {"fp16x3", "1e-8"},
                                         {"tf32", "fp32"},
                                         {"int8x6", "exact"},
                                         {"ozaki2:moduli=3", "exact"},
                                         {"ozaki2:moduli=3", "fp32"}}) {
    GemmData data(
        GemmCase{.m = 3, .n = 4, .k = 5, .scheme = scheme, .engine = "reference", .accuracy = accuracy});
    EXPECT_EQ(data.run(), KINTSUGI_CONTRACT_UNREACHABLE) << scheme << " " << accuracy;
    EXPECT_THAT(kintsugi_last_error(),
                testing::AllOf(HasSubstr(scheme), HasSubstr(accuracy), HasSubstr("contradict")));
  }
}

TEST(NamedSchemeAndAccuracy, BothCountIfTheSchemeMayReachTheAccuracy) {
  for (const auto& [scheme, accuracy] : {std::pair{"fp16", "1e-3"},
                                         {"fp16x3", "fp32"},
                                         {"bf16x6", "fp32"},
                                         {"superaccumulator", "exact"},
                                         {"ozaki2", "fp32"}}) {
    GemmData data(
        GemmCase{.m = 3, .n = 4, .k = 5, .scheme = scheme, .engine = "reference", .accuracy = accuracy});
    const PlanOf plan(data);
    ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
    const auto description = plan.describe();
    EXPECT_EQ(candidates(description), std::vector<std::string>{scheme});
    EXPECT_EQ(description.at("contract").at("accuracy"), accuracy);
    EXPECT_EQ(description.at("contract").at("coefficient") == 0.0, std::string(accuracy) == "exact");
    EXPECT_THAT(description.at("words").dump(), HasSubstr(std::string("accuracy ") + accuracy));
    data.run_well();
  }
}

// Returns the largest power of two that can_meet() denies the scheme, or 0 if there is none.
double missed_accuracy(const std::string& scheme, core::OperandType type) {
  const core::Program program = core::fitted_program(*core::find_scheme(scheme), type, 1);
  for (int exponent = -1; exponent > -110; --exponent) {
    if (!core::can_meet(program, type, std::ldexp(1.0, exponent))) return std::ldexp(1.0, exponent);
  }
  return 0;
}

// The largest relative error of random numbers times 1, on the given side.
template <class T>
double largest_error_beside_one(const std::string& scheme, bool many_rows) {
  constexpr std::int64_t many = 3000;
  GemmDataOf<T> data(GemmCase{
      .m = many_rows ? many : 1, .n = many_rows ? 1 : many, .k = 1, .scheme = scheme, .engine = "reference"});
  std::mt19937_64 random(17);
  double largest = 0;
  for (std::int64_t i = 0; i < many; ++i) {
    const auto x = static_cast<T>(std::uniform_real_distribution<double>(1, 2)(random));
    (many_rows ? data.a()(i, 0) : data.b()(0, i)) = x;
  }
  (many_rows ? data.b()(0, 0) : data.a()(0, 0)) = 1;
  data.run_well();
  for (std::int64_t i = 0; i < many; ++i) {
    const double x = many_rows ? data.a()(i, 0) : data.b()(0, i);
    largest = std::max(largest, std::abs((many_rows ? data.c()(i, 0) : data.c()(0, i)) - x) / x);
  }
  return largest;
}

template <class T>
void expect_misses(core::OperandType type) {
  const core::Engine& reference = *core::find_engine("reference");
  int schemes_that_miss = 0;
  for (const std::string& scheme : schemes_on(reference, type)) {
    const double missed = missed_accuracy(scheme, type);
    if (missed == 0) continue;
    ++schemes_that_miss;
    EXPECT_GT(std::max(largest_error_beside_one<T>(scheme, true), largest_error_beside_one<T>(scheme, false)),
              missed)
        << scheme;
  }
  EXPECT_GE(schemes_that_miss, 4);
}

// Every scheme that is refused for an accuracy misses that accuracy for some operands.
TEST(NamedSchemeAndAccuracy, RefusedSchemesMissTheAccuracy) {
  expect_misses<float>(core::OperandType::f32);
  expect_misses<double>(core::OperandType::f64);
}

// A scheme without a named accuracy has its own bound; the accuracy of the type is no contract then.
TEST(NamedSchemeAndAccuracy, ASchemeAloneHasNoContract) {
  GemmData data(GemmCase{.m = 3, .n = 4, .k = 5, .scheme = "fp16", .engine = "reference"});
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  EXPECT_EQ(plan.describe().at("contract").at("coefficient"), 0.0);
}

TEST(NamedSchemeAndAccuracy, NearerOfTwoContradictingSettingsCounts) {
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "scheme", "fp16"), KINTSUGI_SUCCESS);
  GemmData exact(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference", .accuracy = "exact"});
  exact.run_well(handle);
  EXPECT_NE(candidates(handle.report()), std::vector<std::string>{"fp16"});
  kintsugi_set(handle, "scheme", nullptr);
  ASSERT_EQ(kintsugi_set(handle, "accuracy", "exact"), KINTSUGI_SUCCESS);
  GemmData scheme(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "fp16", .engine = "reference"});
  scheme.run_well(handle);
  EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"fp16"});
  ASSERT_EQ(kintsugi_set(handle, "scheme", "fp16"), KINTSUGI_SUCCESS);
  GemmData contradicting(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference"});
  EXPECT_EQ(contradicting.run(handle), KINTSUGI_CONTRACT_UNREACHABLE);
}

TEST(Policy, EmulateIsAFallbackChainThatEndsWithNative) {
  GemmData data(GemmCase{.m = 30, .n = 40, .k = 500, .engine = "reference", .policy = "emulate"});
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  EXPECT_EQ(candidates(plan.describe()),
            (std::vector<std::string>{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  EXPECT_EQ(plan.describe().at("candidates")[0].at("largest_dynamic_range"), 16);
  EXPECT_EQ(plan.describe().at("candidates")[1].at("largest_dynamic_range"), 28);
}

TEST(Policy, DynamicRangesSelectTheCandidate) {
  const Handle handle;
  const std::pair<const char*, const char*> cases[] = {{"span:16", "fp16x3"},      {"span:17", "fp16x3-wide"},
                                                       {"span:28", "fp16x3-wide"}, {"span:29", "bf16x6"},
                                                       {"span:80", "bf16x6"},      {"span:110", "native"}};
  for (const auto& [distribution, scheme] : cases) {
    GemmData data(GemmCase{
        .m = 9, .n = 8, .k = 60, .distribution = distribution, .engine = "reference", .policy = "emulate"});
    data.run_well(handle);
    EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{scheme}) << distribution;
    EXPECT_EQ(handle.report().at("largest_dynamic_range_a"), std::stoi(std::string(distribution).substr(5)));
    for (const auto& element : element_errors(data))
      ASSERT_LE(std::abs(element.error), 68 * 0x1p-24 * element.absolute);
  }
}

TEST(Policy, EachBatchItemHasItsOwnSelection) {
  const Handle handle;
  GemmCase test{.m = 6, .n = 5, .k = 40, .batch = 3, .engine = "reference", .policy = "emulate"};
  GemmData data(test);
  data.a(1)(0, 0) = std::ldexp(1.0F, -125);  // item 1 has too wide a range for any emulation
  data.run_well(handle);
  EXPECT_EQ(candidates(handle.report()), (std::vector<std::string>{"fp16x3", "native"}));
  EXPECT_EQ(handle.report().at("candidates")[0].at("items"), 2);
  test.batch = 1;
  GemmData alone(test);
  alone.run_well();
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(data.c(0)(i, 2), alone.c()(i, 2));
}

TEST(Policy, TolerancesAreContracts) {
  const auto plan_for = [](const char* accuracy, std::int64_t k, const char* policy) {
    GemmData data(GemmCase{.m = 3, .n = 3, .k = k});
    const auto problem = data.problem();
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.accuracy = accuracy;
    options.policy = policy;
    options.engine = "reference";
    kintsugi_plan plan = nullptr;
    const auto status = kintsugi_plan_create(nullptr, &problem, &options, &plan);
    std::vector<std::string> names;
    if (status == KINTSUGI_SUCCESS) {
      names = candidates(
          Handle::text([&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(plan, b, c, n); }));
    }
    kintsugi_plan_destroy(plan);
    return std::pair(status, names);
  };
  EXPECT_EQ(plan_for("1e-3", 64, "auto").second, std::vector<std::string>{"native"});
  // At k = 10^6 the native sum is proved for 6e-2, blocks of 64 in segments for 2e-5.
  EXPECT_THAT(plan_for("2e-3", 1000000, "auto").second,
              testing::ElementsAre("fp16x3", "fp16x3-wide", "bf16x3"));
  EXPECT_EQ(plan_for("2e-3", 1000000, "native").first, KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(plan_for("1e-9", 64, "emulate").first, KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_THAT(kintsugi_last_error(), testing::AllOf(HasSubstr("\"1e-9\""), HasSubstr("k = 64")));
  EXPECT_THAT(plan_for("exact", 4, "auto").second,
              testing::ElementsAre("ozaki2:moduli=8", "ozaki2:moduli=10", "ozaki2:moduli=11",
                                   "ozaki2:moduli=15", "superaccumulator"));
  EXPECT_EQ(plan_for("exact", 4, "native").first, KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(plan_for("fp64", 4, "auto").first, KINTSUGI_CONTRACT_UNREACHABLE);
}

TEST(Policy, UnreachableOnTheDataLeavesCUntouched) {
  GemmCase test{.m = 3, .n = 3, .k = 1000000, .batch = 2, .engine = "reference"};
  GemmData data(test);
  data.a(1)(0, 0) = std::ldexp(1.0F, -100);
  const auto before = bits_of(data.raw_c());
  const auto problem = data.problem();
  kintsugi_options options = data.options();
  options.accuracy = "2e-3";
  const auto operands = data.operands();
  EXPECT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("rows of A span up to 99 binades"));
  EXPECT_EQ(bits_of(data.raw_c()), before);
}

// A named accumulator restricts the formats: a V100 has neither bf16 nor int8.
TEST(Policy, ANamedAccumulatorRestrictsTheFormats) {
  const auto plan_for = [](const char* accumulator) {
    const PlanOf plan(GemmData(
        GemmCase{.k = 1024, .engine = "reference", .accumulator = accumulator, .policy = "emulate"}));
    return candidates(plan.describe());
  };
  EXPECT_THAT(plan_for("v100"), testing::ElementsAre("fp16x3", "fp16x3-wide", "native"));
  EXPECT_THAT(plan_for("amx-bf16"), testing::ElementsAre("bf16x6", "native"));
  EXPECT_THAT(plan_for("int32"),
              testing::ElementsAre("int8x6", "ozaki2:moduli=8:scale=norm", "ozaki2:moduli=10:scale=norm",
                                   "ozaki2:moduli=16", "native"));
}

// With k = 0 the plan is made although no bound can be divided by k.
TEST(Policy, EmulateTakesAnEmptySum) {
  for (const char* accuracy : {"fp32", "1e-3", "exact"}) {
    GemmData data(
        GemmCase{.m = 2, .n = 2, .k = 0, .engine = "reference", .policy = "emulate", .accuracy = accuracy});
    data.run_well();
    for (const float x : data.result()) EXPECT_EQ(x, 0);
  }
}

TEST(Policy, ANamedSchemeAndNativeContradict) {
  GemmData data(GemmCase{.scheme = "fp16", .policy = "native"});
  EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("contradict"));
}

TEST(Native, DoubleProductsAreExactForSmallIntegers) {
  for (const char* engine : {"reference", "auto"}) {
    for (const auto layout : {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR}) {
      for (const auto op : {KINTSUGI_OP_N, KINTSUGI_OP_T}) {
        const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
        double c[] = {1, 1, 1, 1};
        kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
        problem.m = problem.n = 2;
        problem.k = 3;
        problem.layout = layout;
        problem.op_a = problem.op_b = op;
        problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
        const bool unit_down_a = (layout == KINTSUGI_COLUMN_MAJOR) == (op == KINTSUGI_OP_N);
        problem.lda = unit_down_a ? 2 : 3;
        problem.ldb = unit_down_a ? 3 : 2;
        problem.ldc = 2;
        kintsugi_options options = KINTSUGI_OPTIONS_INIT;
        options.engine = engine;
        const double alpha = 2, beta = 1;
        kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
        operands.alpha = &alpha;
        operands.a = a;
        operands.b = b;
        operands.beta = &beta;
        operands.c = c;
        ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS)
            << kintsugi_last_error();
        for (int i = 0; i < 2; ++i) {
          for (int j = 0; j < 2; ++j) {
            double sum = 0;
            for (int p = 0; p < 3; ++p) {
              sum += a[unit_down_a ? i + 2 * p : i * 3 + p] * b[unit_down_a ? p + 3 * j : p * 2 + j];
            }
            EXPECT_EQ(c[layout == KINTSUGI_COLUMN_MAJOR ? i + 2 * j : i * 2 + j], 2 * sum + 1);
          }
        }
      }
    }
  }
}

TEST(Native, EnginesAgreeWithinTheBoundOnEveryLayout) {
  for (const auto layout : {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR}) {
    for (const auto op_a : {KINTSUGI_OP_N, KINTSUGI_OP_T}) {
      for (const auto op_b : {KINTSUGI_OP_N, KINTSUGI_OP_T}) {
        for (const std::int64_t n : {1, 6}) {
          for (const std::int64_t m : {1, 5}) {
            GemmCase test{.m = m,
                          .n = n,
                          .k = 40,
                          .op_a = op_a,
                          .op_b = op_b,
                          .layout = layout,
                          .alpha = 0.5F,
                          .beta = -2};
            test.pad_c = m;
            test.policy = "native";
            GemmData data(test);
            const auto before = data.raw_c();
            data.run_well();
            for (const auto& element : element_errors(data, before)) {
              ASSERT_LE(std::abs(element.error), 48 * 0x1p-24 * element.absolute);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
