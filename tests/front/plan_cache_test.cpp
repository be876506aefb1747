// Tests kept plans: calls with a kept plan have the bits and reports of calls with a new one, and every input
// of a plan is part of the key.
#include "front/plan_cache.hpp"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "base/threads.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {
namespace {

using core::plan_cache;
using core::PlanCache;

// Sets an environment variable for its lifetime.
class Variable {
 public:
  Variable(const std::string& name, const std::string& value) : name_(name) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_.c_str()); }

 private:
  std::string name_;
};

class PlanCacheTest : public testing::Test {
 protected:
  PlanCacheTest() { EXPECT_EQ(kintsugi_release_caches(), KINTSUGI_SUCCESS); }
};

// Returns the number of plans that the call makes and keeps.
template <class Call>
std::size_t plans_made_by(const Call& call) {
  const std::size_t before = plan_cache().size();
  call();
  return plan_cache().size() - before;
}

std::size_t plans_made_by(const GemmCase& test, kintsugi_handle handle = nullptr) {
  GemmData data(test);
  return plans_made_by([&] { data.run_well(handle); });
}

// ---------------------------------------------------------------- hits

GemmCase drawn_case(std::mt19937& random) {
  const auto below = [&](int end) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(end));
  };
  const auto one_of = [&](std::vector<std::string> names) {
    return names[static_cast<std::size_t>(below(static_cast<int>(names.size())))];
  };
  GemmCase test{.m = 1 + below(40), .n = 1 + below(40), .k = 1 + below(60)};
  test.op_a = static_cast<kintsugi_op>(below(3));
  test.op_b = static_cast<kintsugi_op>(below(3));
  test.layout = static_cast<kintsugi_layout>(below(2));
  test.pad_a = below(4), test.pad_b = below(4), test.pad_c = below(4);
  test.batch = 1 + below(3);
  test.alpha = static_cast<double>(below(4)) - 1.5, test.beta = static_cast<double>(below(3)) * 0.5;
  test.distribution = one_of({"uniform", "phi:1", "phi:4"});
  test.seed = static_cast<std::uint64_t>(below(1000));
  test.policy = one_of({"", "auto", "emulate", "native"});
  test.threads = static_cast<int>(below(3));
  if (test.policy == "emulate") test.accuracy = one_of({"", "exact", "1e-5"});
  return test;
}

// The report without times: it depends on the plan alone, and so shows a stale plan.
json without_times(json report) {
  if (report.at("error_free").is_object()) report.at("error_free").erase("seconds");
  return report;
}

TEST_F(PlanCacheTest, HitsGiveTheBitsAndTheReportOfNewPlans) {
  std::mt19937 random(20261124);
  std::vector<GemmCase> cases;
  for (int number = 0; number < 60; ++number) cases.push_back(drawn_case(random));
  const Handle handle;
  std::vector<std::vector<std::uint32_t>> bits;
  std::vector<json> reports;
  for (const GemmCase& test : cases) {
    kintsugi_release_caches();
    GemmData data(test);
    data.run_well(handle);
    bits.push_back(bits_of(data.result()));
    reports.push_back(without_times(handle.report()));
  }
  for (const int round : {1, 2}) {
    for (std::size_t c = 0; c < cases.size(); ++c) {
      GemmData data(cases[c]);
      const std::size_t plans_made = plans_made_by([&] { data.run_well(handle); });
      if (round == 2) {
        EXPECT_EQ(plans_made, 0U) << "case " << c;
      }
      EXPECT_EQ(bits_of(data.result()), bits[c]) << "case " << c;
      EXPECT_EQ(without_times(handle.report()), reports[c]) << "case " << c;
    }
  }
}

TEST_F(PlanCacheTest, TypedCallsAndHandlesSharePlans) {
  const std::vector<float> a(64, 1), b(64, 2);
  std::vector<float> c(64);
  const auto call = [&](kintsugi_handle handle) {
    ASSERT_EQ(kintsugi_sgemm(handle, KINTSUGI_ROW_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_T, 8, 8, 8, 1, a.data(),
                             8, b.data(), 8, 0, c.data(), 8),
              KINTSUGI_SUCCESS);
  };
  const Handle first;
  const Handle second;
  EXPECT_EQ(plans_made_by([&] { call(nullptr); }), 1U);
  EXPECT_EQ(plans_made_by([&] { call(first), call(second), call(nullptr); }), 0U);
  EXPECT_EQ(c, std::vector<float>(64, 16));
  ASSERT_EQ(kintsugi_set(first, "policy", "emulate"), KINTSUGI_SUCCESS);
  EXPECT_EQ(plans_made_by([&] { call(first); }), 1U);
  ASSERT_EQ(kintsugi_set(second, "policy", "emulate"), KINTSUGI_SUCCESS);
  EXPECT_EQ(plans_made_by([&] { call(second); }), 0U) << "another handle with the same settings";
  ASSERT_EQ(kintsugi_set(first, "policy", nullptr), KINTSUGI_SUCCESS);
  EXPECT_EQ(plans_made_by([&] { call(first); }), 0U);
}

// ---------------------------------------------------------------- misses

// A value other than the default for every setting that a call may have; a missing setting fails the test.
const std::map<std::string, std::string> other_values{
    {"accuracy", "1e-3"},    {"scheme", "bf16x6"},      {"engine", "reference"},  {"policy", "emulate"},
    {"accumulator", "fp32"}, {"workspace_limit", "1G"}, {"threads", "1"},         {"log", "debug"},
    {"rounding", "nearest"}, {"offload", "force"},      {"offload_memory", "1G"}, {"offload_keep", "ab"}};

template <class Visit>
void for_each_setting_of_a_call(const Visit& visit) {
  for (const core::SettingDescription& setting : core::setting_table) {
    if (core::environment_only(setting.id)) continue;
    const std::string name(setting.name);
    SCOPED_TRACE(name);
    const auto found = other_values.find(name);
    ASSERT_NE(found, other_values.end()) << "add a value that is not the default to other_values";
    visit(setting, name, found->second);
  }
}

TEST_F(PlanCacheTest, EverySettingOfAHandleMakesAnotherPlan) {
  const GemmCase test{.m = 5, .n = 6, .k = 7};
  plans_made_by(test);
  for_each_setting_of_a_call([&](const auto&, const std::string& name, const std::string& value) {
    const Handle handle;
    ASSERT_EQ(kintsugi_set(handle, name.c_str(), value.c_str()), KINTSUGI_SUCCESS);
    EXPECT_EQ(plans_made_by(test, handle), 1U);
    EXPECT_EQ(plans_made_by(test, handle), 0U);
  });
}

TEST_F(PlanCacheTest, EveryVariableOfTheEnvironmentMakesAnotherPlan) {
  const GemmCase test{.m = 5, .n = 6, .k = 7};
  plans_made_by(test);
  for_each_setting_of_a_call([&](const auto& setting, const std::string&, const std::string& value) {
    const Variable variable(core::environment_variable(setting), value);
    EXPECT_EQ(plans_made_by(test), 1U);
    EXPECT_EQ(plans_made_by(test), 0U);
  });
  EXPECT_EQ(plans_made_by(test), 0U) << "the environment is as it was";
}

TEST_F(PlanCacheTest, EveryOptionOfACallMakesAnotherPlan) {
  GemmCase test{.m = 5, .n = 6, .k = 7};
  plans_made_by(test);
  const std::vector<GemmCase> variations = [&] {
    std::vector<GemmCase> cases(7, test);
    cases[0].accuracy = "1e-3", cases[1].scheme = "bf16x6", cases[2].engine = "reference";
    cases[3].policy = "emulate", cases[4].accumulator = "fp32", cases[5].workspace_limit = 1 << 30;
    cases[6].threads = 1;
    return cases;
  }();
  for (const GemmCase& variation : variations) {
    EXPECT_EQ(plans_made_by(variation), 1U);
    EXPECT_EQ(plans_made_by(variation), 0U);
  }
}

// Equal texts from another source, or for another setting, need another plan.
TEST_F(PlanCacheTest, EverySourceOfASettingMakesAnotherPlan) {
  const GemmCase test{.m = 5, .n = 6, .k = 7};
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "policy", "emulate"), KINTSUGI_SUCCESS);
  EXPECT_EQ(plans_made_by(test, handle), 1U);
  GemmCase by_call = test;
  by_call.policy = "emulate";
  EXPECT_EQ(plans_made_by(by_call), 1U);
  const Variable variable("KINTSUGI_POLICY", "emulate");
  EXPECT_EQ(plans_made_by(test), 1U);
}

TEST_F(PlanCacheTest, EveryMemberOfAProblemMakesAnotherPlan) {
  const GemmCase test{.m = 5, .n = 5, .k = 5, .batch = 2};
  plans_made_by(test);
  std::vector<GemmCase> cases(10, test);
  cases[0].m = 4, cases[1].n = 4, cases[2].k = 4, cases[3].op_a = KINTSUGI_OP_T,
  cases[4].op_b = KINTSUGI_OP_T;
  cases[5].layout = KINTSUGI_ROW_MAJOR, cases[6].pad_a = 1, cases[7].pad_b = 1, cases[8].pad_c = 1;
  cases[9].batch = 3;
  for (const GemmCase& variation : cases) EXPECT_EQ(plans_made_by(variation), 1U);
  GemmDataOf<double> wide(test);
  EXPECT_EQ(plans_made_by([&] { wide.run_well(); }), 1U);
  GemmDataOf<std::complex<float>> complex(test);
  EXPECT_EQ(plans_made_by([&] { complex.run_well(); }), 1U);
  EXPECT_EQ(plans_made_by(test), 0U);
}

TEST_F(PlanCacheTest, ThreadsOfOpenMpMakeAnotherPlan) {
  const GemmCase test{.m = 5, .n = 6, .k = 7};
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  EXPECT_EQ(plans_made_by(test), 1U);
  omp_set_num_threads(3);
  EXPECT_EQ(plans_made_by(test), 1U);
  omp_set_num_threads(2);
  EXPECT_EQ(plans_made_by(test), 0U);
  omp_set_num_threads(before);
}

TEST_F(PlanCacheTest, TheLimitOfThreadsHoldsForPlansWhateverTheyAskFor) {
  GemmCase test{.m = 300, .n = 300, .k = 300, .accuracy = "exact", .threads = 5};
  const GemmData data(test);
  EXPECT_EQ(PlanOf(data).describe().at("threads"), 5);
  EXPECT_EQ(kintsugi_set_threads(1), 1);
  EXPECT_EQ(kintsugi_set_threads(-1), 1);
  EXPECT_EQ(PlanOf(data).describe().at("threads"), 1);
  EXPECT_EQ(core::workers_for(8, 5), 1);
  EXPECT_EQ(kintsugi_set_threads(0), omp_get_max_threads());
  EXPECT_EQ(PlanOf(data).describe().at("threads"), 5);
}

TEST_F(PlanCacheTest, AllocatorsBelongToTheirCalls) {
  GemmCase test{.m = 5, .n = 6, .k = 7, .policy = "emulate"};
  GemmData data(test);
  const kintsugi_problem problem = data.problem();
  const kintsugi_operands operands = data.operands();
  const auto allocate = [](void* user, std::size_t bytes, std::size_t alignment) {
    ++*static_cast<int*>(user);
    return std::aligned_alloc(alignment, bytes);
  };
  const auto deallocate = [](void*, void* pointer, std::size_t) { std::free(pointer); };
  int counts[2] = {};
  for (const int round : {1, 2}) {
    for (int& count : counts) {
      kintsugi_options options = data.options();
      options.allocate = allocate, options.deallocate = deallocate, options.allocator_user = &count;
      ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS);
      EXPECT_EQ(count, round);
    }
    data.run_well();
  }
  EXPECT_EQ(plan_cache().size(), 3U);
}

// ---------------------------------------------------------------- environment

std::string scheme_that_ran(const Handle& handle) { return candidates(handle.report()).at(0); }

TEST_F(PlanCacheTest, AChangedEnvironmentCountsFromTheNextCallOn) {
  const Handle handle;
  GemmData data(GemmCase{.m = 20, .n = 20, .k = 20});
  data.run_well(handle);
  const std::string by_default = scheme_that_ran(handle);
  for (const char* scheme : {"bf16x6", "fp16x3", "bf16x6"}) {
    const Variable variable("KINTSUGI_SCHEME", scheme);
    data.run_well(handle);
    EXPECT_EQ(scheme_that_ran(handle), scheme);
  }
  data.run_well(handle);
  EXPECT_EQ(scheme_that_ran(handle), by_default);
}

// putenv() puts the program's own string into the environment, and the program may write into that string.
TEST_F(PlanCacheTest, AVariableChangedInPlaceCountsToo) {
  static char text[] = "KINTSUGI_SCHEME=bf16x6";
  ::putenv(text);
  const Handle handle;
  GemmData data(GemmCase{.m = 20, .n = 20, .k = 20});
  data.run_well(handle);
  EXPECT_EQ(scheme_that_ran(handle), "bf16x6");
  text[sizeof text - 2] = '9';
  data.run_well(handle);
  EXPECT_EQ(scheme_that_ran(handle), "bf16x9");
  ::unsetenv("KINTSUGI_SCHEME");
}

TEST_F(PlanCacheTest, UnknownVariablesUnderStrictFailInEveryCall) {
  GemmData data(GemmCase{.m = 4, .n = 4, .k = 4});
  data.run_well();
  const Variable strict("KINTSUGI_STRICT", "1");
  data.run_well();
  const Variable unknown("KINTSUGI_SHCEME", "fp16x3");
  for (const int round : {1, 2}) {
    EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING) << round;
    EXPECT_NE(std::string(kintsugi_last_error()).find("KINTSUGI_SHCEME"), std::string::npos);
  }
}

// ---------------------------------------------------------------- failures

TEST_F(PlanCacheTest, FailuresAreNotKept) {
  for (const auto& [test, status] : std::vector<std::pair<GemmCase, kintsugi_status>>{
           {{.m = 4, .n = 4, .k = 4, .scheme = "fp16x4"}, KINTSUGI_BAD_SETTING},
           {{.m = 4, .n = 4, .k = 4, .scheme = "fp16x3", .accuracy = "exact"}, KINTSUGI_CONTRACT_UNREACHABLE},
           {{.m = 4, .n = 4, .k = 4, .engine = "reverence"}, KINTSUGI_BAD_SETTING},
           {{.m = 300, .n = 300, .k = 4, .scheme = "fp16x3", .workspace_limit = 64},
            KINTSUGI_WORKSPACE_TOO_SMALL}}) {
    for (const int round : {1, 2}) {
      GemmData data(test);
      EXPECT_EQ(data.run(), status) << round << ": " << kintsugi_last_error();
    }
    EXPECT_EQ(plan_cache().size(), 0U);
  }
}

// A kept plan does not vouch for the pointers, queue and reserved members of a call.
TEST_F(PlanCacheTest, ArgumentsAreCheckedInEveryCall) {
  GemmData data(GemmCase{.m = 4, .n = 4, .k = 4});
  data.run_well();
  kintsugi_problem problem = data.problem();
  kintsugi_options options = data.options();
  kintsugi_operands operands = data.operands();
  const auto status = [&] { return kintsugi_gemm(nullptr, &problem, &options, &operands); };
  operands.a = nullptr;
  EXPECT_EQ(status(), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_STREQ(kintsugi_last_error(), "a is null");
  operands = data.operands();
  options.reserved = 1;
  EXPECT_EQ(status(), KINTSUGI_INVALID_ARGUMENT);
  options = data.options();
  options.queue.kind = KINTSUGI_QUEUE_CUDA;
  EXPECT_EQ(status(), KINTSUGI_INVALID_ARGUMENT);
  options = data.options();
  problem.lda = 3;
  EXPECT_EQ(status(), KINTSUGI_INVALID_ARGUMENT);
  problem.lda = 4;
  EXPECT_EQ(status(), KINTSUGI_SUCCESS);
}

// ---------------------------------------------------------------- size, forks

TEST_F(PlanCacheTest, KeepsAtMostItsMaximumOfPlans) {
  std::vector<float> a(2048, 1), b(1, 1), c(2048);
  for (const int round : {1, 2}) {
    for (int m = 1; m <= static_cast<int>(PlanCache::max_plans) + 200; ++m) {
      ASSERT_EQ(kintsugi_sgemm(nullptr, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, m, 1, 1,
                               static_cast<float>(round), a.data(), m, b.data(), 1, 0, c.data(), m),
                KINTSUGI_SUCCESS);
      ASSERT_EQ(c[static_cast<std::size_t>(m) - 1], static_cast<float>(round));
    }
    EXPECT_EQ(plan_cache().size(), PlanCache::max_plans);
  }
}

// A child makes new plans, since it has other threads and engines.
TEST_F(PlanCacheTest, AForkedChildMakesNewPlans) {
  const GemmCase test{.m = 40, .n = 30, .k = 20, .policy = "emulate", .threads = 3};
  GemmData data(test);
  data.run_well();
  const auto expected = bits_of(data.result());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10U);
    GemmData in_child(test);
    const std::size_t before = plan_cache().size();
    if (in_child.run() != KINTSUGI_SUCCESS) ::_exit(1);
    ::_exit(bits_of(in_child.result()) == expected && plan_cache().size() == before + 1 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PlanCacheTest, AReportOutlivesThePlanOfItsCall) {
  const Handle handle;
  GemmData data(GemmCase{.m = 20, .n = 20, .k = 20, .scheme = "bf16x6"});
  data.run_well(handle);
  kintsugi_release_caches();
  EXPECT_EQ(scheme_that_ran(handle), "bf16x6");
}

}  // namespace
}  // namespace kintsugi::test
