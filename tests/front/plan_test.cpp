// Tests plans, batches, threads, logs and descriptions through the C ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

TEST(Engines, TheNamedEngineRuns) {
  const Handle handle;
  for (const char* engine : {"reference", "cpu"}) {
    if (std::string(engine) == "cpu" && !has_cpu_engine()) continue;
    GemmData data(GemmCase{.m = 3, .n = 4, .k = 5, .scheme = "fp16x3", .engine = engine});
    data.run_well(handle);
    EXPECT_EQ(handle.report().at("engine"), engine);
    EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"fp16x3"});
  }
}

TEST(Engines, TheEnvironmentSelectsEngineAndScheme) {
  ::setenv("KINTSUGI_ENGINE", "reference", 1);
  ::setenv("KINTSUGI_SCHEME", "markidis", 1);
  const Handle handle;
  GemmData data(GemmCase{.m = 3, .n = 4, .k = 5});
  const auto status = data.run(handle);
  ::unsetenv("KINTSUGI_ENGINE");
  ::unsetenv("KINTSUGI_SCHEME");
  ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(handle.report().at("engine"), "reference");
  EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"markidis"});
}

TEST(Engines, UnknownNamesAreErrors) {
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

TEST(Plan, IsReadBackFromItsDescription) {
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

TEST(Plan, GivesItsProblemBack) {
  GemmData data(GemmCase{
      .m = 3, .n = 4, .k = 5, .op_a = KINTSUGI_OP_C, .layout = KINTSUGI_ROW_MAJOR, .pad_c = 2, .batch = 2});
  const PlanOf plan(data);
  const kintsugi_problem given = data.problem();
  kintsugi_problem returned = KINTSUGI_PROBLEM_INIT;
  ASSERT_EQ(kintsugi_plan_problem(plan.plan, &returned), KINTSUGI_SUCCESS);
  EXPECT_EQ(std::memcmp(&given, &returned, sizeof(given)), 0);
  returned.struct_size = 128;  // size of a caller's struct that has no members prepared_a and prepared_b
  returned.prepared_b = 77;
  ASSERT_EQ(kintsugi_plan_problem(plan.plan, &returned), KINTSUGI_SUCCESS);
  EXPECT_EQ(returned.struct_size, 128U);
  EXPECT_EQ(returned.prepared_b, 77);
  returned.struct_size = 3;
  EXPECT_EQ(kintsugi_plan_problem(plan.plan, &returned), KINTSUGI_INVALID_ARGUMENT);
}

// A setting that the description has at its default keeps the default, whatever handle and environment have.
TEST(Plan, ReadBackIgnoresHandleAndEnvironment) {
  GemmData data(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference"});
  const PlanOf plan(data);
  const Handle handle;
  kintsugi_set(handle, "scheme", "fp16");
  kintsugi_plan again = nullptr;
  ASSERT_EQ(kintsugi_plan_read(handle, plan.describe().dump().c_str(), nullptr, &again), KINTSUGI_SUCCESS);
  EXPECT_EQ(candidates(Handle::text(
                [&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(again, b, c, n); })),
            std::vector<std::string>{"native"});
  kintsugi_plan_destroy(again);
}

TEST(Plan, WrongValuesInADescriptionAreErrors) {
  GemmData data(GemmCase{.m = 2, .n = 2, .k = 2});
  const PlanOf plan(data);
  const std::pair<const char*, json> faults[] = {{"type", "int4"},     {"layout", "diagonal"}, {"m", 2.9},
                                                 {"op_a", 4294967296}, {"batch_kind", 3},      {"n", -1}};
  for (const auto& [name, value] : faults) {
    json description = plan.describe();
    description["problem"][name] = value;
    kintsugi_plan again = nullptr;
    EXPECT_EQ(kintsugi_plan_read(nullptr, description.dump().c_str(), nullptr, &again),
              KINTSUGI_INVALID_ARGUMENT)
        << name;
  }
}

// Version 1 has other names for some members of candidates; none of these is read back.
TEST(Plan, DescriptionsOfVersion1AreRead) {
  GemmData data(GemmCase{.m = 3, .n = 4, .k = 5, .scheme = "fp16x3", .engine = "reference"});
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  json description = plan.describe();
  EXPECT_EQ(description.at("format_version"), 3);
  description["format_version"] = 1;
  for (json& candidate : description.at("candidates")) {
    candidate["largest_span"] = candidate.at("largest_dynamic_range");
    candidate.erase("largest_dynamic_range");
  }
  kintsugi_plan again = nullptr;
  ASSERT_EQ(kintsugi_plan_read(nullptr, description.dump().c_str(), nullptr, &again), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  kintsugi_plan_destroy(again);
}

TEST(Plan, OtherTextsAreErrors) {
  kintsugi_plan plan = nullptr;
  for (const char* text : {"", "{}", "[1]", "{\"format\":\"kintsugi.plan\",\"format_version\":4}",
                           "{\"format\":\"kintsugi.plan\",\"format_version\":1}", "not json"}) {
    EXPECT_EQ(kintsugi_plan_read(nullptr, text, nullptr, &plan), KINTSUGI_INVALID_ARGUMENT) << text;
    EXPECT_EQ(plan, nullptr);
  }
}

TEST(Plan, SettingsOfACallAreNearerThanThoseOfItsHandle) {
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "scheme", "markidis"), KINTSUGI_SUCCESS);
  GemmData by_handle(GemmCase{.m = 2, .n = 2, .k = 2, .engine = "reference"});
  by_handle.run_well(handle);
  EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"markidis"});
  GemmData by_call(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "fp16", .engine = "reference"});
  by_call.run_well(handle);
  EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"fp16"});
  ASSERT_EQ(kintsugi_set(handle, "scheme", nullptr), KINTSUGI_SUCCESS);
  by_handle.run_well(handle);
  EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"native"});
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

// OpenBLAS has one number of threads for the whole program: concurrent native products must not change that
// of an emulated product's calls, and so its bits.
TEST(Threads, ConcurrentNativeProductsDoNotChangeTheBits) {
  if (!has_cpu_engine()) GTEST_SKIP();
  GemmCase test{.m = 256, .n = 256, .k = 300, .scheme = "fp16x3", .engine = "cpu", .threads = 2};
  GemmData expected(test);
  expected.run_well();
  std::atomic<bool> done = false;
  std::thread native_caller([&] {
    GemmData native(
        GemmCase{.m = 200, .n = 200, .k = 200, .engine = "cpu", .policy = "native", .threads = 2});
    while (!done) native.run();
  });
  for (int repeat = 0; repeat < (thorough ? 20 : 3); ++repeat) {
    GemmData data(test);
    data.run_well();
    EXPECT_EQ(bits_of(data.result()), bits_of(expected.result())) << repeat;
  }
  done = true;
  native_caller.join();
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

TEST(Log, UnknownVariablesAreNamedOnce) {
  ::setenv("KINTSUGI_POLICYY", "native", 1);
  std::vector<std::string> lines;
  const Handle handle;
  kintsugi_set_log(
      handle,
      [](void* user, kintsugi_log_level level, const char* message) {
        EXPECT_EQ(level, KINTSUGI_LOG_ERROR);
        static_cast<std::vector<std::string>*>(user)->push_back(message);
      },
      &lines);
  GemmData data(GemmCase{.m = 3, .n = 4, .k = 5, .engine = "reference"});
  data.run_well(handle);
  EXPECT_TRUE(lines.empty()) << "the log level is off";
  kintsugi_set(handle, "log", "error");
  data.run_well(handle);
  data.run_well(handle);
  ::unsetenv("KINTSUGI_POLICYY");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("KINTSUGI_POLICYY names no setting (did you mean KINTSUGI_POLICY?)"));
}

// Once C is written the call has succeeded, even if the sink throws.
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
  EXPECT_EQ(Handle::text(kintsugi_describe_engines).at("engines").size(), core::all_engines().size());
  EXPECT_EQ(
      Handle::text([](char* b, size_t c, size_t* n) { return kintsugi_describe_settings(nullptr, b, c, n); })
          .at("settings")[0]
          .at("name"),
      "accuracy");
}

// Small emulations take fewer threads than asked for; native products take all.
TEST(Plans, SmallEmulationsHaveFewerThreads) {
  if (!has_cpu_engine()) GTEST_SKIP() << "no OpenBLAS";
  const auto threads = [](std::int64_t n, const char* scheme) {
    GemmData data(GemmCase{.m = n, .n = n, .k = n, .scheme = scheme, .engine = "cpu", .threads = 4});
    return PlanOf(data).describe().at("threads").get<int>();
  };
  EXPECT_EQ(threads(8, "fp16x3"), 1);
  EXPECT_EQ(threads(300, "fp16x3"), 4);
  EXPECT_EQ(threads(8, "native"), 4);
}

}  // namespace
}  // namespace kintsugi::test
