// Plans, policies, workspaces, prepared operands and reports, through the C ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "plan/program.hpp"
#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Handle {
 public:
  Handle() { kintsugi_create(&handle_); }
  ~Handle() { kintsugi_destroy(handle_); }
  operator kintsugi_handle() const { return handle_; }
  json report() const {
    return text([&](char* b, size_t c, size_t* n) { return kintsugi_report(handle_, b, c, n); });
  }

  template <class Call>
  static json text(const Call& call) {
    size_t needed = 0;
    EXPECT_EQ(call(nullptr, 0, &needed), KINTSUGI_SUCCESS) << kintsugi_last_error();
    std::string buffer(needed, 'x');
    EXPECT_EQ(call(buffer.data(), buffer.size(), nullptr), KINTSUGI_SUCCESS);
    EXPECT_EQ(buffer.back(), '\0');
    buffer.pop_back();
    return json::parse(buffer);
  }

 private:
  kintsugi_handle handle_ = nullptr;
};

class PlanOf {
 public:
  explicit PlanOf(const GemmData& data) {
    const auto problem = data.problem();
    const auto options = data.options();
    status = kintsugi_plan_create(nullptr, &problem, &options, &plan);
    error = status == KINTSUGI_SUCCESS ? "" : kintsugi_last_error();
  }
  ~PlanOf() { kintsugi_plan_destroy(plan); }
  json describe() const {
    return Handle::text([&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(plan, b, c, n); });
  }
  std::size_t workspace() const {
    std::size_t bytes = 1;
    EXPECT_EQ(kintsugi_plan_workspace_size(plan, &bytes), KINTSUGI_SUCCESS);
    return bytes;
  }
  kintsugi_plan plan = nullptr;
  kintsugi_status status;
  std::string error;
};

bool has_cpu_engine() {
  GemmData data(GemmCase{.engine = "cpu"});
  return PlanOf(data).status == KINTSUGI_SUCCESS;
}

std::vector<std::string> rungs(const json& document) {
  std::vector<std::string> names;
  for (const auto& rung : document.at("rungs")) names.push_back(rung.at("scheme"));
  return names;
}

TEST(Engines, TheNamedOneRan) {
  const Handle handle;
  for (const char* engine : {"reference", "cpu"}) {
    if (std::string(engine) == "cpu" && !has_cpu_engine()) continue;
    GemmData data(GemmCase{.m = 3, .n = 4, .k = 5, .scheme = "fp16x3", .engine = engine});
    data.run_well(handle);
    EXPECT_EQ(handle.report().at("engine"), engine);
    EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"fp16x3"});
  }
}

TEST(Engines, TheEnvironmentCanForceOne) {
  ::setenv("KINTSUGI_ENGINE", "reference", 1);
  ::setenv("KINTSUGI_SCHEME", "markidis", 1);
  const Handle handle;
  GemmData data(GemmCase{.m = 3, .n = 4, .k = 5});
  const auto status = data.run(handle);
  ::unsetenv("KINTSUGI_ENGINE");
  ::unsetenv("KINTSUGI_SCHEME");
  ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(handle.report().at("engine"), "reference");
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"markidis"});
}

TEST(Engines, UnknownOnesAreErrors) {
  GemmData data(GemmCase{.engine = "warp-drive"});
  EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING);
  EXPECT_THAT(kintsugi_last_error(),
              HasSubstr("no engine \"warp-drive\"; the engines are auto, cpu, reference"));
}

TEST(Engines, SizesBeyondABlasGoToAnotherEngineOrAreRefused) {
  if (!has_cpu_engine()) GTEST_SKIP();
  GemmData data(GemmCase{.m = 2, .n = 2, .k = 2});
  auto problem = data.problem();
  problem.lda = std::int64_t{1} << 31;
  kintsugi_plan plan = nullptr;
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, nullptr, &plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_EQ(Handle::text([&](char* b, size_t c, size_t* n) {
              return kintsugi_plan_describe(plan, b, c, n);
            }).at("engine"),
            "reference");
  kintsugi_plan_destroy(plan);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.engine = "cpu";
  EXPECT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("one of these is 2147483648"));
}

TEST(Policy, AutoTakesTheNativeProductOnACpu) {
  GemmData data(GemmCase{.m = 30, .n = 40, .k = 500});
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  EXPECT_EQ(rungs(plan.describe()), std::vector<std::string>{"native"});
  EXPECT_EQ(plan.workspace(), 0U);
}

// The native sum is proved for the contract at every k (it has no second-order term).
TEST(Policy, AutoStaysNativeForLongSums) {
  for (const std::int64_t k : {10836, 20000, 1000000}) {
    GemmData data(GemmCase{.m = 1, .n = 1, .k = k});
    data.a()(0, 0) = 1e-30F;
    const Handle handle;
    data.run_well(handle);
    EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"native"}) << k;
  }
}

TEST(Policy, TheNearerOfSchemeAndNativePolicyCounts) {
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "scheme", "fp16"), KINTSUGI_SUCCESS);
  GemmData native(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference", .policy = "native"});
  native.run_well(handle);
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"native"});
  kintsugi_set(handle, "scheme", nullptr);
  ASSERT_EQ(kintsugi_set(handle, "policy", "native"), KINTSUGI_SUCCESS);
  GemmData scheme(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "fp16", .engine = "reference"});
  scheme.run_well(handle);
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"fp16"});
}

TEST(Policy, EmulateIsALadderThatEndsNatively) {
  GemmData data(GemmCase{.m = 30, .n = 40, .k = 500, .engine = "reference", .policy = "emulate"});
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  EXPECT_EQ(rungs(plan.describe()), (std::vector<std::string>{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  EXPECT_EQ(plan.describe().at("rungs")[0].at("largest_span"), 16);
  EXPECT_EQ(plan.describe().at("rungs")[1].at("largest_span"), 28);
}

TEST(Policy, TheRangesChooseTheRung) {
  const Handle handle;
  const std::pair<const char*, const char*> cases[] = {{"span:16", "fp16x3"},      {"span:17", "fp16x3-wide"},
                                                       {"span:28", "fp16x3-wide"}, {"span:29", "bf16x6"},
                                                       {"span:80", "bf16x6"},      {"span:110", "native"}};
  for (const auto& [distribution, scheme] : cases) {
    GemmData data(GemmCase{
        .m = 9, .n = 8, .k = 60, .distribution = distribution, .engine = "reference", .policy = "emulate"});
    data.run_well(handle);
    EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{scheme}) << distribution;
    EXPECT_EQ(handle.report().at("largest_span_a"), std::stoi(std::string(distribution).substr(5)));
    for (const auto& entry : entry_errors(data))
      ASSERT_LE(std::abs(entry.error), 68 * 0x1p-24 * entry.absolute);
  }
}

TEST(Policy, EachBatchEntryChoosesForItself) {
  const Handle handle;
  GemmCase test{.m = 6, .n = 5, .k = 40, .batch = 3, .engine = "reference", .policy = "emulate"};
  GemmData data(test);
  data.a(1)(0, 0) = std::ldexp(1.0F, -125);  // entry 1 spans too much for any emulation
  data.run_well(handle);
  EXPECT_EQ(rungs(handle.report()), (std::vector<std::string>{"fp16x3", "native"}));
  EXPECT_EQ(handle.report().at("rungs")[0].at("entries"), 2);
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
      names = rungs(
          Handle::text([&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(plan, b, c, n); }));
    }
    kintsugi_plan_destroy(plan);
    return std::pair(status, names);
  };
  EXPECT_EQ(plan_for("1e-3", 64, "auto").second, std::vector<std::string>{"native"});
  // At k = 10^6 the native sum is proved for 6e-2, and blocks of 64 for 1e-3.
  EXPECT_THAT(plan_for("2e-3", 1000000, "auto").second, testing::ElementsAre("bf16x3"));
  EXPECT_EQ(plan_for("2e-3", 1000000, "native").first, KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(plan_for("1e-9", 64, "emulate").first, KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_THAT(kintsugi_last_error(), testing::AllOf(HasSubstr("\"1e-9\""), HasSubstr("k = 64")));
  EXPECT_EQ(plan_for("exact", 4, "auto").first, KINTSUGI_CONTRACT_UNREACHABLE);
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

TEST(Policy, ANamedSchemeAndNativeContradict) {
  GemmData data(GemmCase{.scheme = "fp16", .policy = "native"});
  EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("contradict"));
}

TEST(Native, DoubleProductsRun) {
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
            for (const auto& entry : entry_errors(data, before)) {
              ASSERT_LE(std::abs(entry.error), 48 * 0x1p-24 * entry.absolute);
            }
          }
        }
      }
    }
  }
}

TEST(Plan, DescriptionIsWholeAndCanBeReadBack) {
  GemmCase test{.m = 300,
                .n = 20,
                .k = 100,
                .op_b = KINTSUGI_OP_T,
                .layout = KINTSUGI_ROW_MAJOR,
                .pad_a = 2,
                .batch = 2,
                .scheme = "fp16x3-wide",
                .engine = "reference",
                .accumulator = "a100",
                .workspace_limit = 450000,
                .threads = 2};
  GemmData data(test);
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  const json description = plan.describe();
  kintsugi_plan again = nullptr;
  ASSERT_EQ(kintsugi_plan_read(nullptr, description.dump().c_str(), nullptr, &again), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  json second =
      Handle::text([&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(again, b, c, n); });
  json first = description;
  first.erase("settings");  // the second one's all come from the call
  second.erase("settings");
  EXPECT_EQ(first, second);
  EXPECT_LT(description.at("blocking").at("m"), 300);
  const auto operands = data.operands();
  EXPECT_EQ(kintsugi_plan_execute(nullptr, again, &operands), KINTSUGI_SUCCESS);
  kintsugi_plan_destroy(again);
}

TEST(Plan, TellsItsProblem) {
  GemmData data(GemmCase{
      .m = 3, .n = 4, .k = 5, .op_a = KINTSUGI_OP_C, .layout = KINTSUGI_ROW_MAJOR, .pad_c = 2, .batch = 2});
  const PlanOf plan(data);
  const kintsugi_problem made = data.problem();
  kintsugi_problem told = KINTSUGI_PROBLEM_INIT;
  ASSERT_EQ(kintsugi_plan_problem(plan.plan, &told), KINTSUGI_SUCCESS);
  EXPECT_EQ(std::memcmp(&made, &told, sizeof(made)), 0);
  told.struct_size = 3;
  EXPECT_EQ(kintsugi_plan_problem(plan.plan, &told), KINTSUGI_INVALID_ARGUMENT);
}

// What the description leaves at its default stays there, whatever handle and environment say.
TEST(Plan, ReadBackIsNotSteeredFromElsewhere) {
  GemmData data(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference"});
  const PlanOf plan(data);
  const Handle handle;
  kintsugi_set(handle, "scheme", "fp16");
  kintsugi_plan again = nullptr;
  ASSERT_EQ(kintsugi_plan_read(handle, plan.describe().dump().c_str(), nullptr, &again), KINTSUGI_SUCCESS);
  EXPECT_EQ(rungs(Handle::text(
                [&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(again, b, c, n); })),
            std::vector<std::string>{"native"});
  kintsugi_plan_destroy(again);
}

TEST(Plan, MistakesInADescriptionAreTold) {
  GemmData data(GemmCase{.m = 2, .n = 2, .k = 2});
  const PlanOf plan(data);
  const std::pair<const char*, json> mistakes[] = {{"type", "int4"},     {"layout", "diagonal"}, {"m", 2.9},
                                                   {"op_a", 4294967296}, {"batch_kind", 3},      {"n", -1}};
  for (const auto& [name, value] : mistakes) {
    json description = plan.describe();
    description["problem"][name] = value;
    kintsugi_plan again = nullptr;
    EXPECT_EQ(kintsugi_plan_read(nullptr, description.dump().c_str(), nullptr, &again),
              KINTSUGI_INVALID_ARGUMENT)
        << name;
  }
}

TEST(Plan, OtherTextsAreNotRead) {
  kintsugi_plan plan = nullptr;
  for (const char* text : {"", "{}", "[1]", "{\"format\":\"kintsugi.plan\",\"format_version\":2}",
                           "{\"format\":\"kintsugi.plan\",\"format_version\":1}", "not json"}) {
    EXPECT_EQ(kintsugi_plan_read(nullptr, text, nullptr, &plan), KINTSUGI_INVALID_ARGUMENT) << text;
    EXPECT_EQ(plan, nullptr);
  }
}

TEST(Plan, SettingsOfHandleAndCallGoInOrder) {
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "scheme", "markidis"), KINTSUGI_SUCCESS);
  GemmData by_handle(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference"});
  by_handle.run_well(handle);
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"markidis"});
  GemmData by_call(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "fp16", .engine = "reference"});
  by_call.run_well(handle);
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"fp16"});
  ASSERT_EQ(kintsugi_set(handle, "scheme", nullptr), KINTSUGI_SUCCESS);
  by_handle.run_well(handle);
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"native"});
}

class Workspace : public testing::Test {
 protected:
  GemmCase test_{.m = 200, .n = 150, .k = 33, .scheme = "fp16x3", .engine = "reference", .threads = 2};
};

TEST_F(Workspace, OfTheQueriedSizeIsEnoughAndIsNotOverrun) {
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

TEST_F(Workspace, TooSmallOrCrookedIsAnError) {
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
    // First everything is granted, then a byte less than was wanted before, then hardly anything.
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

class Prepare : public testing::TestWithParam<std::tuple<std::string, std::string, std::int64_t>> {};

TEST_P(Prepare, GivesTheBitsOfThePlainCall) {
  const auto& [engine, scheme, batch] = GetParam();
  if (engine == "cpu" && !has_cpu_engine()) GTEST_SKIP();
  GemmCase test{.m = 150,
                .n = 20,
                .k = 70,
                .op_a = KINTSUGI_OP_T,
                .layout = KINTSUGI_ROW_MAJOR,
                .pad_b = 3,
                .batch = batch,
                .beta = 0.5F,
                .distribution = "special:0.0002",
                .scheme = scheme,
                .engine = engine};
  if (scheme == "native") {
    test.scheme.clear();
    test.policy = "native";
  }
  for (const std::int64_t limit : {0, 600000}) {
    test.workspace_limit = scheme == "native" ? 0 : limit;
    GemmData plain(test), data(test);
    plain.run_well();
    const PlanOf plan(data);
    ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
    kintsugi_prepared a = nullptr, b = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, data.raw_a().data(), &a), KINTSUGI_SUCCESS);
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_B, data.raw_b().data(), &b), KINTSUGI_SUCCESS);
    const auto before = data.raw_c();
    for (const bool both : {false, true}) {
      data.raw_c() = before;
      auto operands = data.operands();
      operands.a = nullptr;
      operands.prepared_a = a;
      if (both) {
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
    const PlanOf other(data);
    auto operands = data.operands();
    operands.prepared_a = a;
    EXPECT_EQ(kintsugi_plan_execute(nullptr, other.plan, &operands), KINTSUGI_INVALID_ARGUMENT);
    return std::string(kintsugi_last_error());
  };
  EXPECT_THAT(refused({.m = 7, .n = 4, .k = 6, .scheme = "fp16x3", .engine = "reference"}),
              HasSubstr("prepared with 5 vectors of length 6"));
  EXPECT_THAT(refused({.m = 5, .n = 4, .k = 6, .scheme = "fp16", .engine = "reference"}),
              HasSubstr("prepared for fp16x3; this plan runs fp16"));
  if (has_cpu_engine()) {
    EXPECT_THAT(refused({.m = 5, .n = 4, .k = 6, .scheme = "fp16x3", .engine = "cpu"}),
                HasSubstr("on engine cpu"));
  }
  // Another n is no other operand A.
  GemmData wider(GemmCase{.m = 5, .n = 9, .k = 6, .scheme = "fp16x3", .engine = "reference"});
  GemmData check(GemmCase{.m = 5, .n = 9, .k = 6, .scheme = "fp16x3", .engine = "reference"});
  check.raw_a() = small.raw_a();
  check.run_well();
  const PlanOf other(wider);
  auto operands = wider.operands();
  operands.prepared_a = a;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, other.plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(bits_of(wider.result()), bits_of(check.result()));
  kintsugi_prepared_destroy(a);
}

TEST(Prepared, ALadderFallsBackToTheNativeProduct) {
  const Handle handle;
  GemmData data(GemmCase{.m = 5, .n = 4, .k = 60, .engine = "reference", .policy = "emulate"});
  const PlanOf plan(data);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, data.raw_a().data(), &a), KINTSUGI_SUCCESS);
  auto operands = data.operands();
  operands.a = nullptr;
  operands.prepared_a = a;
  ASSERT_EQ(kintsugi_plan_execute(handle, plan.plan, &operands), KINTSUGI_SUCCESS);
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"bf16x6"});
  data.b()(3, 2) = std::ldexp(1.0F, -120);
  ASSERT_EQ(kintsugi_plan_execute(handle, plan.plan, &operands), KINTSUGI_SUCCESS);
  EXPECT_EQ(rungs(handle.report()), std::vector<std::string>{"native"});
  for (const auto& entry : entry_errors(data))
    ASSERT_LE(std::abs(entry.error), 68 * 0x1p-24 * entry.absolute);
  kintsugi_prepared_destroy(a);
}

TEST(Batch, PointerArraysAreFollowed) {
  GemmCase test{.m = 4, .n = 3, .k = 9, .batch = 3, .scheme = "fp16x3", .engine = "reference"};
  GemmData strided(test), pointers(test);
  strided.run_well();
  const void* a[] = {pointers.a(0).data, pointers.a(1).data, pointers.a(2).data};
  const void* b[] = {pointers.b(0).data, pointers.b(1).data, pointers.b(2).data};
  void* c[] = {pointers.c(0).data, pointers.c(1).data, pointers.c(2).data};
  auto problem = pointers.problem();
  problem.batch_kind = KINTSUGI_BATCH_POINTERS;
  const auto options = pointers.options();
  auto operands = pointers.operands();
  operands.a = a;
  operands.b = b;
  operands.c = c;
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(bits_of(pointers.result()), bits_of(strided.result()));
  kintsugi_plan plan = nullptr;
  kintsugi_prepared prepared = nullptr;
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS);
  b[1] = nullptr;
  EXPECT_EQ(kintsugi_prepare(nullptr, plan, KINTSUGI_B, b, &prepared), KINTSUGI_INVALID_ARGUMENT);
  kintsugi_plan_destroy(plan);
  EXPECT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_STREQ(kintsugi_last_error(), "b[1] is null");
}

TEST(Batch, AStrideOfZeroReusesAnInput) {
  GemmCase test{.m = 4, .n = 3, .k = 9, .batch = 3, .scheme = "fp16x3", .engine = "reference"};
  GemmData data(test);
  auto problem = data.problem();
  problem.stride_a = 0;
  const auto options = data.options();
  const auto operands = data.operands();
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS);
  GemmData copied(test);
  for (std::int64_t t = 1; t < 3; ++t) {
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t p = 0; p < 9; ++p) copied.a(t)(i, p) = copied.a(0)(i, p);
    }
  }
  copied.run_well();
  EXPECT_EQ(bits_of(data.result()), bits_of(copied.result()));
  kintsugi_prepared prepared = nullptr;
  kintsugi_plan plan = nullptr;
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS);
  ASSERT_EQ(kintsugi_prepare(nullptr, plan, KINTSUGI_A, data.raw_a().data(), &prepared), KINTSUGI_SUCCESS);
  auto with_prepared = data.operands();
  with_prepared.prepared_a = prepared;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, plan, &with_prepared), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(bits_of(data.result()), bits_of(copied.result()));
  kintsugi_prepared_destroy(prepared);
  kintsugi_plan_destroy(plan);
}

TEST(Batch, EmptyProblemsTouchNothing) {
  for (const auto& [m, n, batch] : {std::tuple{0, 3, 1}, {3, 0, 1}, {3, 3, 0}}) {
    GemmCase test{.m = m, .n = n, .k = 4, .batch = batch};
    GemmData data(test);
    const auto problem = data.problem();
    auto operands = data.operands();
    operands.a = operands.b = nullptr;
    operands.c = nullptr;
    EXPECT_EQ(kintsugi_gemm(nullptr, &problem, nullptr, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  }
}

TEST(Threads, ShareAPlan) {
  GemmCase test{.m = 60, .n = 50, .k = 70, .scheme = "fp16x3", .threads = 2};
  GemmData expected(test);
  expected.run_well();
  const PlanOf plan(expected);
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint32_t>> results(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        GemmData data(test);
        const auto operands = data.operands();
        if (kintsugi_plan_execute(nullptr, plan.plan, &operands) != KINTSUGI_SUCCESS) return;
        results[t] = bits_of(data.result());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, bits_of(expected.result()));
}

// OpenBLAS has one number of threads for the program: native products beside an emulated one must not
// divide its calls, which would change their bits.
TEST(Threads, NativeProductsBesideDoNotChangeTheBits) {
  if (!has_cpu_engine()) GTEST_SKIP();
  GemmCase test{.m = 256, .n = 256, .k = 300, .scheme = "fp16x3", .engine = "cpu", .threads = 2};
  GemmData expected(test);
  expected.run_well();
  std::atomic<bool> done = false;
  std::thread beside([&] {
    GemmData native(
        GemmCase{.m = 200, .n = 200, .k = 200, .engine = "cpu", .policy = "native", .threads = 2});
    while (!done) native.run();
  });
  for (int repeat = 0; repeat < 20; ++repeat) {
    GemmData data(test);
    data.run_well();
    EXPECT_EQ(bits_of(data.result()), bits_of(expected.result())) << repeat;
  }
  done = true;
  beside.join();
}

TEST(Log, LinesGoToTheSink) {
  std::vector<std::string> lines;
  const Handle handle;
  const auto sink = [](void* user, kintsugi_log_level, const char* message) {
    static_cast<std::vector<std::string>*>(user)->push_back(message);
  };
  ASSERT_EQ(kintsugi_set_log(handle, sink, &lines), KINTSUGI_SUCCESS);
  GemmData data(GemmCase{.m = 3, .n = 4, .k = 5, .engine = "reference"});
  data.run_well(handle);
  EXPECT_TRUE(lines.empty());
  kintsugi_set(handle, "log", "info");
  data.run_well(handle);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("m = 3, n = 4, k = 5"));
  kintsugi_set(handle, "log", "debug");
  data.run_well(handle);
  EXPECT_EQ(lines.size(), 3U);
  kintsugi_set(handle, "log", "error");
  auto operands = data.operands();
  operands.a = nullptr;
  const auto problem = data.problem();
  EXPECT_EQ(kintsugi_gemm(handle, &problem, nullptr, &operands), KINTSUGI_INVALID_ARGUMENT);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[3], "a is null");
}

// Once C is written the call has succeeded, whatever the sink or the environment do then.
TEST(Log, CannotMakeACallFail) {
  const Handle handle;
  kintsugi_set(handle, "log", "info");
  ASSERT_EQ(kintsugi_set_log(
                handle, [](void*, kintsugi_log_level, const char*) { throw 1; }, nullptr),
            KINTSUGI_SUCCESS);
  GemmData data(GemmCase{.m = 3, .n = 4, .k = 5, .engine = "reference"});
  data.run_well(handle);
}

TEST(Descriptions, AreCutWhereTheBufferEnds) {
  size_t needed = 0;
  ASSERT_EQ(kintsugi_describe_schemes(nullptr, 0, &needed), KINTSUGI_SUCCESS);
  std::vector<char> buffer(20, 'x');
  ASSERT_EQ(kintsugi_describe_schemes(buffer.data(), 10, nullptr), KINTSUGI_SUCCESS);
  EXPECT_EQ(buffer[9], '\0');
  EXPECT_EQ(buffer[10], 'x');
  EXPECT_EQ(kintsugi_describe_schemes(nullptr, 10, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(Handle::text(kintsugi_describe_schemes).at("schemes").size(), core::all_schemes().size());
  EXPECT_EQ(Handle::text(kintsugi_describe_engines).at("engines").size(), 2U);
  EXPECT_EQ(
      Handle::text([](char* b, size_t c, size_t* n) { return kintsugi_describe_settings(nullptr, b, c, n); })
          .at("settings")[0]
          .at("name"),
      "accuracy");
}

}  // namespace
}  // namespace kintsugi::test
