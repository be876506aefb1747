// Tests calls in threads with small stacks: what they take, and that they are the calls of other threads.
#include "base/stack.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <thread>

#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/painted_stack.hpp"

namespace kintsugi::test {
namespace {

constexpr std::size_t most_bytes = 8 << 10;
constexpr std::size_t small_stack = 32 << 10;

template <class T>
class Stack : public testing::Test {
 protected:
  void SetUp() override {
    if (!thorough)
      GTEST_SKIP() << "frames of the sanitizers are larger, and they replace the calls of contexts";
  }

  // Expects a call in a thread with a small stack to have the bits of the same call here.
  static void expect_same(const GemmCase& test, std::int64_t n) {
    GemmDataOf<T> here(test), there(test);
    const kintsugi_status expected = here.run();
    kintsugi_status status = KINTSUGI_INTERNAL;
    const auto problem = there.problem();
    const auto options = there.options();
    const auto operands = there.operands();
    const std::size_t bytes =
        stack_bytes_of([&] { status = kintsugi_gemm(nullptr, &problem, &options, &operands); });
    const std::string name = test.accuracy + " " + test.policy + " " + test.scheme + " " + test.engine;
    EXPECT_EQ(status, expected) << name << ", n = " << n;
    EXPECT_LE(bytes, most_bytes) << name << ", n = " << n;
    EXPECT_EQ(bits_of(there.result()), bits_of(here.result())) << name << ", n = " << n;
  }
};
using StackTypes =
    testing::Types<float, double, std::complex<float>, std::complex<double>, core::DoubleDouble>;
TYPED_TEST_SUITE(Stack, StackTypes);

TYPED_TEST(Stack, NoCallTakesMoreThanEightKibibytes) {
  for (const std::int64_t n : {1, 2, 5, 17, 64, 129, 200}) {
    GemmCase test{.m = n, .n = n, .k = n, .alpha = 0.75, .beta = 0.5, .distribution = "phi:2"};
    for (const std::string policy : {"auto", "emulate", "native"})
      test.policy = policy, this->expect_same(test, n);
    test.policy = "";
    for (const std::string accuracy : {"exact", "reproducible", "1e-4"})
      test.accuracy = accuracy, this->expect_same(test, n);
    test.accuracy = "";
    test.batch = 2;
    test.policy = "emulate", this->expect_same(test, n);
  }
}

TYPED_TEST(Stack, NoSchemeTakesMore) {
  const json schemes =
      Handle::text([](char* b, size_t c, size_t* n) { return kintsugi_describe_schemes(b, c, n); });
  for (const std::int64_t n : {3, 70}) {
    for (const std::string engine : {"cpu", "reference"}) {
      GemmCase test{.m = n, .n = n, .k = n, .engine = engine};
      for (const json& scheme : schemes.at("schemes"))
        test.scheme = scheme.at("name"), this->expect_same(test, n);
    }
  }
}

TYPED_TEST(Stack, PlansAndPreparedOperandsFitASmallOne) {
  const GemmCase test{.m = 70, .n = 60, .k = 50, .policy = "emulate"};
  GemmDataOf<TypeParam> data(test), expected(test);
  expected.run_well();
  const auto problem = data.problem();
  const auto options = data.options();
  run_with_stack(small_stack, [&] {
    kintsugi_plan plan = nullptr;
    ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS);
    size_t needed = 0;
    EXPECT_EQ(kintsugi_plan_describe(plan, nullptr, 0, &needed), KINTSUGI_SUCCESS);
    std::string text(needed, ' ');
    EXPECT_EQ(kintsugi_plan_describe(plan, text.data(), text.size(), nullptr), KINTSUGI_SUCCESS);
    kintsugi_plan read = nullptr;
    EXPECT_EQ(kintsugi_plan_read(nullptr, text.c_str(), nullptr, &read), KINTSUGI_SUCCESS);
    auto operands = data.operands();
    kintsugi_prepared prepared = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, plan, KINTSUGI_A, operands.a, &prepared), KINTSUGI_SUCCESS);
    operands.a = nullptr;
    operands.prepared_a = prepared;
    EXPECT_EQ(kintsugi_plan_execute(nullptr, read, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
    kintsugi_prepared_destroy(prepared);
    kintsugi_plan_destroy(read);
    kintsugi_plan_destroy(plan);
    EXPECT_EQ(kintsugi_describe_settings(nullptr, nullptr, 0, &needed), KINTSUGI_SUCCESS);
    EXPECT_EQ(kintsugi_describe_engines(nullptr, 0, &needed), KINTSUGI_SUCCESS);
  });
  EXPECT_EQ(bits_of(data.result()), bits_of(expected.result()));
}

using SmallStack = Stack<float>;

TEST_F(SmallStack, ErrorsHaveTheirMessages) {
  GemmCase test;
  test.scheme = "no-scheme";
  GemmData data(test);
  const auto problem = data.problem();
  const auto options = data.options();
  const auto operands = data.operands();
  run_with_stack(small_stack, [&] {
    EXPECT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_BAD_SETTING);
    EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("no-scheme"));
  });
}

TEST(OwnStack, KeepsTheFloatingEnvironmentAndRaisesExceptions) {
  const int before = std::fegetround();
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_UPWARD);
  std::feraiseexcept(FE_INEXACT);
  int mode = -1;
  const auto raise = [](void* found) {
    *static_cast<int*>(found) = std::fegetround();
    std::feraiseexcept(FE_OVERFLOW);
  };
  ASSERT_TRUE(core::run_on_own_stack(raise, &mode));
  EXPECT_EQ(mode, FE_UPWARD);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  EXPECT_TRUE(std::fetestexcept(FE_OVERFLOW) != 0 && std::fetestexcept(FE_INEXACT) != 0);
  std::fesetround(before);
  std::feclearexcept(FE_ALL_EXCEPT);
}

// Calls nest where an allocator of the caller's multiplies.
TEST(OwnStack, IsAnotherOneForACallWithinACall) {
  struct Depths {
    const void* outer = nullptr;
    const void* inner = nullptr;
  } depths;
  const auto outer = [](void* pointer) {
    const auto inner = [](void* found) { static_cast<Depths*>(found)->inner = __builtin_frame_address(0); };
    static_cast<Depths*>(pointer)->outer = __builtin_frame_address(0);
    EXPECT_TRUE(core::run_on_own_stack(inner, pointer));
  };
  ASSERT_TRUE(core::run_on_own_stack(outer, &depths));
  const auto distance = static_cast<const char*>(depths.outer) - static_cast<const char*>(depths.inner);
  EXPECT_GE(std::abs(distance), 1 << 20);
}

TEST(OwnStack, ServesThreadsAtOnce) {
  if (!thorough) GTEST_SKIP();
  const GemmCase test{.m = 40, .n = 30, .k = 20, .accuracy = "exact"};
  GemmDataOf<double> expected(test);
  expected.run_well();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      run_with_stack(small_stack, [&] {
        for (int call = 0; call < 50; ++call) {
          GemmDataOf<double> data(test);
          data.run_well();
          ASSERT_EQ(bits_of(data.result()), bits_of(expected.result()));
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kintsugi::test
