// Tests calls on double-double matrices through the C ABI: bits, batches, prepared operands, plans and
// errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "double_double_case.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

TEST(DoubleDoubleGemm, BitsDoNotDependOnEngineThreadsOrLimit) {
  if (!has_cpu_engine()) GTEST_SKIP() << "needs two engines";
  for (const char* distribution : a_part_of({"phi:1", "cancellation:80", "span:300"})) {
    for (const auto& [policy, accuracy] :
         {std::pair{"native", "dd"}, std::pair{"emulate", "dd"}, std::pair{"auto", "exact"}}) {
      GemmCase test{.m = 150,
                    .n = thorough ? 131 : 40,
                    .k = 70,
                    .alpha = 0.3,
                    .beta = -1.7,
                    .distribution = distribution,
                    .engine = "cpu",
                    .policy = policy,
                    .accuracy = accuracy,
                    .threads = 1};
      PairData unlimited(test);
      unlimited.run_well();
      std::vector<GemmCase> variations(3, test);
      variations[0].threads = 3;
      variations[1].engine = "reference";
      variations[2].workspace_limit = static_cast<std::int64_t>(PlanOf(unlimited).workspace() * 9 / 10);
      for (const GemmCase& variation : variations) {
        PairData data(variation);
        data.run_well();
        EXPECT_EQ(bits_of(data.result()), bits_of(unlimited.result()))
            << distribution << policy << variation.engine << variation.threads << variation.workspace_limit;
      }
    }
  }
}

// The powers of two multiply both words of an element.
TEST(DoubleDoubleGemm, PowersOfTwoAlongKChangeNoBits) {
  GemmCase test{.m = 130, .n = 20, .k = 30, .engine = engines_here().back(), .accuracy = "exact"};
  PairData plain(test), scaled(test);
  for (std::int64_t p = 0; p < 30; ++p) {
    const int d = static_cast<int>(p * 7 % 30 * 20) - 290;
    const auto times = [](DoubleDouble& x, int e) { x = {std::ldexp(x.hi, e), std::ldexp(x.lo, e)}; };
    for (std::int64_t i = 0; i < 130; ++i) times(scaled.a()(i, p), d);
    for (std::int64_t j = 0; j < 20; ++j) times(scaled.b()(p, j), -d);
  }
  const auto [candidate, recomputed] = run_checked(plain);
  const auto [scaled_candidate, scaled_recomputed] = run_checked(scaled);
  EXPECT_EQ(scaled_candidate, candidate);
  EXPECT_LE(scaled_recomputed, recomputed + 130);
  EXPECT_EQ(bits_of(scaled.result()), bits_of(plain.result()));
}

TEST(DoubleDoubleGemm, BatchesByPointersHaveTheBitsOfStridedOnes) {
  for (const char* policy : {"native", "emulate"}) {
    GemmCase test{.m = 7, .n = 5, .k = 9, .batch = 3, .beta = 0.5, .policy = policy};
    PairData strided(test), pointers(test);
    strided.run_well();
    kintsugi_problem problem = pointers.problem();
    problem.batch_kind = KINTSUGI_BATCH_POINTERS;
    std::vector<const void*> a, b;
    std::vector<void*> c;
    for (std::int64_t t = 0; t < 3; ++t) {
      a.push_back(pointers.a(t).data);
      b.push_back(pointers.b(t).data);
      c.push_back(pointers.c(t).data);
    }
    kintsugi_operands operands = pointers.operands();
    operands.a = a.data(), operands.b = b.data(), operands.c = c.data();
    const kintsugi_options options = pointers.options();
    ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(bits_of(pointers.result()), bits_of(strided.result()));
  }
}

TEST(DoubleDoubleGemm, PreparedOperandsChangeNoBits) {
  for (const char* policy : {"native", "emulate"}) {
    GemmCase test{
        .m = 20, .n = 13, .k = 30, .op_b = KINTSUGI_OP_T, .distribution = "phi:1", .policy = policy};
    PairData plain(test), prepared(test);
    plain.run_well();
    const PlanOf plan(prepared);
    kintsugi_prepared a = nullptr, b = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, prepared.raw_a().data(), &a),
              KINTSUGI_SUCCESS);
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_B, prepared.raw_b().data(), &b),
              KINTSUGI_SUCCESS);
    kintsugi_operands operands = prepared.operands();
    operands.a = operands.b = nullptr;
    operands.prepared_a = a, operands.prepared_b = b;
    EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(bits_of(prepared.result()), bits_of(plain.result())) << policy;
    kintsugi_prepared_destroy(a);
    kintsugi_prepared_destroy(b);
  }
}

TEST(DoubleDoubleGemm, DescriptionsSayTheTypeAndAreReadBack) {
  PairData data(GemmCase{.m = 4, .n = 3, .k = 2, .engine = "reference", .policy = "emulate"});
  const PlanOf plan(data);
  const json description = plan.describe();
  EXPECT_EQ(description.at("problem").at("type"), "dd");
  EXPECT_EQ(description.at("contract").at("accuracy"), "dd");
  EXPECT_DOUBLE_EQ(description.at("contract").at("coefficient"), 10 * 0x1p-104);
  kintsugi_plan again = nullptr;
  ASSERT_EQ(kintsugi_plan_read(nullptr, description.dump().c_str(), nullptr, &again), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  ASSERT_EQ(kintsugi_plan_problem(again, &problem), KINTSUGI_SUCCESS);
  EXPECT_EQ(problem.type_a, KINTSUGI_DD);
  EXPECT_EQ(problem.type_scalar, KINTSUGI_DD);
  kintsugi_plan_destroy(again);
}

TEST(DoubleDoubleGemm, DeviceMemoryAndMixedTypesAreRefused) {
  PairData data(GemmCase{.m = 2, .n = 2, .k = 2});
  kintsugi_problem problem = data.problem();
  problem.memory = KINTSUGI_DEVICE;
  kintsugi_plan plan = nullptr;
  EXPECT_EQ(kintsugi_plan_create(nullptr, &problem, nullptr, &plan), KINTSUGI_ENGINE_UNAVAILABLE);
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("cuda: it does not multiply dd operands"));
  PairData mixed(GemmCase{.m = 2, .n = 2, .k = 2});
  problem = mixed.problem();
  problem.type_c = KINTSUGI_F64;
  EXPECT_EQ(kintsugi_plan_create(nullptr, &problem, nullptr, &plan), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("type_a = dd, type_b = dd, type_c = f64"));
}

TEST(DoubleDoubleGemm, DdgemmHasTheBitsOfGemm) {
  PairData data(GemmCase{.m = 6, .n = 4, .k = 5, .alpha = 2, .beta = -1, .distribution = "phi:1"});
  PairData variation(data.test());
  data.run_well();
  const auto pair = [](DoubleDouble* x) { return reinterpret_cast<kintsugi_dd*>(x); };
  const kintsugi_dd alpha{2, 0}, beta{-1, 0};
  const kintsugi_problem p = variation.problem();
  ASSERT_EQ(kintsugi_ddgemm(nullptr, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, 6, 4, 5, &alpha,
                            pair(variation.a().data), p.lda, pair(variation.b().data), p.ldb, &beta,
                            pair(variation.c().data), p.ldc),
            KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_EQ(bits_of(variation.result()), bits_of(data.result()));
}

}  // namespace
}  // namespace kintsugi::test
