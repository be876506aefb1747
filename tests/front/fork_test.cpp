// Tests the library in the child of a fork: after calls with several threads, and while other threads call.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/routes.hpp"

namespace kintsugi::test {
namespace {

// Returns what `body` returns in a child process, or -1 if a signal ended the child; an alarm ends a child
// that hangs.
int status_in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(static_cast<unsigned>(60));  // a busy machine under the sanitizers takes more than 5 s
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns 0 if a call gives `expected`, 1 if it fails, 2 if its bits differ.
template <class T>
int status_of_call(const GemmCase& test, const std::vector<T>& expected) {
  GemmDataOf<T> data(test);
  if (data.run() != KINTSUGI_SUCCESS) return 1;
  return bits_of(data.result()) == bits_of(expected) ? 0 : 2;
}

template <class T>
std::vector<T> result_of(const GemmCase& test) {
  GemmDataOf<T> data(test);
  data.run_well();
  return data.result();
}

constexpr int several = 3;

// GCC 12's address sanitizer does not release its allocator's lock in a child of a process with several
// threads at work.
#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitizer_may_hang = true;
#else
constexpr bool sanitizer_may_hang = false;
#endif

// A native product's bits depend on the number of threads: a child computes as one thread does.
template <class T>
void every_route_works(core::OperandType type) {
  int number = 0;
  for (const Route& route : all_routes(type)) {
    if (!thorough && number++ % 4 != 0) continue;
    GemmCase test =
        route.applied({.m = thorough ? 150 : 50, .n = thorough ? 140 : 40, .k = 33, .threads = several});
    result_of<T>(test);  // starts the threads
    GemmCase alone = test;
    alone.threads = 1;
    const auto expected = result_of<T>(alone);
    EXPECT_EQ(status_in_child([&] { return status_of_call(test, expected); }), 0) << route.name();
  }
}

TEST(Fork, EveryRouteWorksInAChild) {
  every_route_works<float>(core::OperandType::f32);
  every_route_works<double>(core::OperandType::f64);
}

GemmCase short_case(std::uint64_t seed = 1) {
  return {.m = 140, .n = 150, .k = 40, .seed = seed, .scheme = "ozaki2", .threads = several};
}

TEST(Fork, ChildrenOfChildrenWork) {
  const GemmCase test = short_case();
  const auto expected = result_of<float>(test);
  const auto grandchild = [&] { return status_in_child([&] { return status_of_call(test, expected); }); };
  EXPECT_EQ(status_in_child([&] { return 4 * status_of_call(test, expected) + grandchild(); }), 0);
  EXPECT_EQ(status_of_call(test, expected), 0) << "in the parent";
}

TEST(Fork, APlanOfTheParentRunsInAChild) {
  GemmData data(short_case());
  const auto expected = result_of<float>(data.test());
  const auto problem = data.problem();
  const auto options = data.options();
  kintsugi_plan plan = nullptr;
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS);
  const int status = status_in_child([&] {
    const auto operands = data.operands();
    if (kintsugi_plan_execute(nullptr, plan, &operands) != KINTSUGI_SUCCESS) return 1;
    return bits_of(data.result()) == bits_of(expected) ? 0 : 2;
  });
  kintsugi_plan_destroy(plan);
  EXPECT_EQ(status, 0);
}

TEST(Fork, AChildMayEndByExit) {
  const GemmCase test = short_case();
  const auto expected = result_of<float>(test);
  EXPECT_EQ(status_in_child([&]() -> int { std::exit(status_of_call(test, expected)); }), 0);
}

// Locks that these threads hold when the process forks must not stay locked in the child: those of schemes,
// of the environment, and of OpenBLAS's number of threads, for which native products with other numbers wait.
TEST(Fork, WorksWhileOtherThreadsCall) {
  if (sanitizer_may_hang) GTEST_SKIP() << "a thread may hold the sanitizer's own allocator lock at the fork";
  const GemmCase test = short_case();
  const auto expected = result_of<float>(test);
  const GemmCase native{.m = 64, .n = 64, .k = 64, .policy = "native", .threads = 1};
  const auto expected_native = result_of<float>(native);
  std::atomic<bool> done = false;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      std::mt19937 random(static_cast<unsigned>(caller));
      while (!done) {
        GemmCase test_of_caller{.m = 64, .n = 64, .k = 64, .policy = "native", .threads = 1 + caller % 2};
        if (caller >= 2) {
          test_of_caller.policy = {};
          test_of_caller.scheme = "ozaki2:moduli=" + std::to_string(10 + random() % 30);
        }
        GemmData(test_of_caller).run();
      }
    });
  }
  for (int repeat = 0; repeat < 60; ++repeat) {
    EXPECT_EQ(status_in_child([&] {
                GemmCase more_threads = native;
                more_threads.threads = several;
                return 4 * status_of_call(test, expected) + status_of_call(more_threads, expected_native);
              }),
              0)
        << repeat;
  }
  done = true;
  for (auto& caller : callers) caller.join();
}

// OpenBLAS would wait for ever for threads of its own that are at work when the process forks.
TEST(Fork, WorksWhileOpenBlasThreadsAreAtWork) {
  if (sanitizer_may_hang) GTEST_SKIP() << "a thread may hold the sanitizer's own allocator lock at the fork";
  const GemmCase test = short_case();
  const auto expected = result_of<float>(test);
  std::atomic<bool> done = false;
  std::thread caller([&] {
    GemmData data({.m = 500, .n = 500, .k = 500, .policy = "native", .threads = 2});
    while (!done) data.run();
  });
  for (int repeat = 0; repeat < 20; ++repeat)
    EXPECT_EQ(status_in_child([&] { return status_of_call(test, expected); }), 0) << repeat;
  done = true;
  caller.join();
}

}  // namespace
}  // namespace kintsugi::test
