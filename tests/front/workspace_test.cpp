// Tests workspaces, allocators and prepared operands through the C ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "tests/support/c_objects.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

class Workspace : public testing::Test {
 protected:
  GemmCase test_{.m = 200, .n = 150, .k = 33, .scheme = "fp16x3", .engine = "reference", .threads = 2};
};

TEST_F(Workspace, QueriedSizeIsEnoughAndIsNotOverrun) {
  GemmData expected(test_);
  expected.run_well();
  for (const std::int64_t limit : {0, 380000, 350000}) {
    test_.workspace_limit = limit;
    GemmData data(test_);
    const PlanOf plan(data);
    ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
    const std::size_t bytes = plan.workspace();
    EXPECT_EQ(bytes % 256, 0U);
    if (limit > 0) {
      EXPECT_LE(bytes, static_cast<std::size_t>(limit));
    }
    auto* memory = static_cast<unsigned char*>(std::aligned_alloc(256, bytes + 256));
    std::memset(memory, 0x5a, bytes + 256);
    auto operands = data.operands();
    operands.workspace = memory;
    operands.workspace_size = bytes;
    ASSERT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(std::count(memory + bytes, memory + bytes + 256, 0x5a), 256);
    EXPECT_EQ(bits_of(data.result()), bits_of(expected.result()));
    std::free(memory);
  }
}

TEST_F(Workspace, TooSmallUnalignedOrNullIsAnError) {
  GemmData data(test_);
  const PlanOf plan(data);
  auto* memory = static_cast<unsigned char*>(std::aligned_alloc(256, plan.workspace() + 256));
  auto operands = data.operands();
  operands.workspace = memory;
  operands.workspace_size = plan.workspace() - 256;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_WORKSPACE_TOO_SMALL);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr(std::to_string(plan.workspace() - 256)));
  operands.workspace = memory + 16;
  operands.workspace_size = plan.workspace();
  EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_INVALID_ARGUMENT);
  operands.workspace = nullptr;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_INVALID_ARGUMENT);
  for (const float x : data.result()) ASSERT_TRUE(is_poison(x));
  std::free(memory);
}

TEST_F(Workspace, ALimitBelowTheSmallestBlockIsAnError) {
  test_.workspace_limit = 1000;
  GemmData data(test_);
  EXPECT_EQ(data.run(), KINTSUGI_WORKSPACE_TOO_SMALL);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("1000 bytes is too small for m = 200"));
}

struct CountingAllocator {
  std::size_t largest_granted = SIZE_MAX;
  int live = 0;
  std::vector<std::size_t> granted;

  static void* allocate(void* user, std::size_t bytes, std::size_t alignment) {
    auto* self = static_cast<CountingAllocator*>(user);
    if (bytes > self->largest_granted) return nullptr;
    self->granted.push_back(bytes);
    ++self->live;
    return std::aligned_alloc(alignment, bytes);
  }
  static void deallocate(void* user, void* pointer, std::size_t) {
    --static_cast<CountingAllocator*>(user)->live;
    std::free(pointer);
  }
};

TEST_F(Workspace, AFailedAllocationTakesASmallerBlockWithTheSameBits) {
  GemmData expected(test_);
  expected.run_well();
  CountingAllocator allocator;
  for (const int attempt : {0, 1, 2}) {
    // All bytes are granted first, then one byte less than the first request, then too few for any block.
    allocator.largest_granted = attempt == 0 ? SIZE_MAX : attempt == 1 ? allocator.granted[0] - 1 : 1000;
    GemmData data(test_);
    const auto problem = data.problem();
    auto options = data.options();
    options.allocate = CountingAllocator::allocate;
    options.deallocate = CountingAllocator::deallocate;
    options.allocator_user = &allocator;
    const auto operands = data.operands();
    const auto status = kintsugi_gemm(nullptr, &problem, &options, &operands);
    EXPECT_EQ(allocator.live, 0);
    if (attempt == 2) {
      EXPECT_EQ(status, KINTSUGI_OUT_OF_MEMORY);
      EXPECT_TRUE(is_poison(data.c()(0, 0)));
    } else {
      ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
      EXPECT_EQ(bits_of(data.result()), bits_of(expected.result()));
    }
  }
  ASSERT_EQ(allocator.granted.size(), 2U);
  EXPECT_GT(allocator.granted[0], allocator.granted[1]);
}

class Prepare : public testing::TestWithParam<std::tuple<std::string, std::string, std::int64_t>> {
 protected:
  static GemmCase test_with(std::int64_t limit) {
    const auto& [engine, scheme, batch] = GetParam();
    const bool native = scheme == "native";
    return {.m = 150,
            .n = 20,
            .k = 70,
            .op_a = KINTSUGI_OP_T,
            .layout = KINTSUGI_ROW_MAJOR,
            .pad_b = 3,
            .batch = batch,
            .beta = 0.5F,
            .distribution = "special:0.0002",
            .scheme = native ? "" : scheme,
            .engine = engine,
            .policy = native ? "native" : "",
            .workspace_limit = native ? 0 : limit};
  }
};

TEST_P(Prepare, GivesTheBitsOfThePlainCall) {
  if (std::get<0>(GetParam()) == "cpu" && !has_cpu_engine()) GTEST_SKIP();
  for (const std::int64_t limit : {0, 700000}) {
    const GemmCase test = test_with(limit);
    GemmData plain(test), data(test);
    plain.run_well();
    const PlanOf plan(data);
    ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
    kintsugi_prepared a = nullptr, b = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, data.raw_a().data(), &a), KINTSUGI_SUCCESS);
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_B, data.raw_b().data(), &b), KINTSUGI_SUCCESS);
    const auto before = data.raw_c();
    for (const bool with_b : {false, true}) {
      data.raw_c() = before;
      auto operands = data.operands();
      operands.a = nullptr;
      operands.prepared_a = a;
      if (with_b) {
        operands.b = nullptr;
        operands.prepared_b = b;
      }
      ASSERT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      EXPECT_EQ(bits_of(data.result()), bits_of(plain.result()));
    }
    auto swapped = data.operands();
    swapped.prepared_a = b;
    EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &swapped), KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("prepared as B is given as A"));
    kintsugi_prepared_destroy(a);
    kintsugi_prepared_destroy(b);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Prepare,
                         testing::Combine(testing::Values("reference", "cpu"),
                                          testing::Values("fp16x3", "markidis", "native"),
                                          testing::Values(1, 2)));

TEST(Prepared, MustFitThePlan) {
  GemmData small(GemmCase{.m = 5, .n = 4, .k = 6, .scheme = "fp16x3", .engine = "reference"});
  const PlanOf plan(small);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, small.raw_a().data(), &a), KINTSUGI_SUCCESS);
  const auto refused = [&](const GemmCase& test) {
    GemmData data(test);
    const PlanOf other_plan(data);
    auto operands = data.operands();
    operands.prepared_a = a;
    EXPECT_EQ(kintsugi_plan_execute(nullptr, other_plan.plan, &operands), KINTSUGI_INVALID_ARGUMENT);
    return std::string(kintsugi_last_error());
  };
  EXPECT_THAT(refused({.m = 7, .n = 4, .k = 6, .scheme = "fp16x3", .engine = "reference"}),
              HasSubstr("prepared with fp32 elements, 5 vectors of length 6"));
  // A plan with another n takes the same operand A.
  GemmData wider(GemmCase{.m = 5, .n = 9, .k = 6, .scheme = "fp16x3", .engine = "reference"});
  GemmData check(GemmCase{.m = 5, .n = 9, .k = 6, .scheme = "fp16x3", .engine = "reference"});
  check.raw_a() = small.raw_a();
  check.run_well();
  const PlanOf other_plan(wider);
  auto operands = wider.operands();
  operands.prepared_a = a;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, other_plan.plan, &operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_EQ(bits_of(wider.result()), bits_of(check.result()));
  kintsugi_prepared_destroy(a);
}

// Whatever the range of B, bits and candidate are those of the call without a prepared A.
TEST(Prepared, FollowsTheFallbackChain) {
  const Handle handle;
  const std::pair<int, const char*> cases[] = {
      {0, "fp16x3"}, {-25, "fp16x3-wide"}, {-60, "bf16x6"}, {-120, "native"}};
  GemmCase test{.m = 5, .n = 4, .k = 60, .engine = "reference", .policy = "emulate"};
  GemmData data(test);
  const PlanOf plan(data);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, data.raw_a().data(), &a), KINTSUGI_SUCCESS);
  for (const auto& [exponent, scheme] : cases) {
    data.b()(3, 2) = std::ldexp(1.0F, exponent);
    data.run_well();
    const auto expected = bits_of(data.result());
    auto operands = data.operands();
    operands.a = nullptr;
    operands.prepared_a = a;
    ASSERT_EQ(kintsugi_plan_execute(handle, plan.plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
    EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{scheme});
    EXPECT_EQ(bits_of(data.result()), expected) << scheme;
  }
  kintsugi_prepared_destroy(a);
}

// Another scheme or engine than the operand was prepared for splits its copy again.
TEST(Prepared, ServesOtherPlans) {
  GemmData data(GemmCase{.m = 5, .n = 4, .k = 6, .scheme = "fp16x3", .engine = "reference"});
  const PlanOf plan(data);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, data.raw_a().data(), &a), KINTSUGI_SUCCESS);
  for (const char* engine : {"reference", "cpu"}) {
    for (const char* scheme : {"markidis", "bf16x9"}) {
      if (std::string(engine) == "cpu" && !has_cpu_engine()) continue;
      GemmData other_data(GemmCase{.m = 5, .n = 4, .k = 6, .scheme = scheme, .engine = engine});
      other_data.run_well();
      const auto expected = bits_of(other_data.result());
      const PlanOf other_plan(other_data);
      auto operands = other_data.operands();
      operands.a = nullptr;
      operands.prepared_a = a;
      ASSERT_EQ(kintsugi_plan_execute(nullptr, other_plan.plan, &operands), KINTSUGI_SUCCESS);
      EXPECT_EQ(bits_of(other_data.result()), expected) << scheme << " on " << engine;
    }
  }
  kintsugi_prepared_destroy(a);
}

}  // namespace
}  // namespace kintsugi::test
