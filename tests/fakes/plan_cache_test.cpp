// Tests kintsugi_gemm on devices over the fakes: a context has its own plans, work goes into the stream of
// the call, and memory comes from the library's pool.
#include "front/plan_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fakes/contexts.hpp"
#include "fakes/device_call.hpp"
#include "tests/support/c_objects.hpp"

namespace kintsugi::test {
namespace {

using core::plan_cache;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class CallsOnDevices : public OverFakes {
 protected:
  CallsOnDevices() { kintsugi_release_caches(); }

  static kintsugi_status gemm(Call& call) {
    return kintsugi_gemm(call.handle, &call.problem, &call.options, &call.operands);
  }
  // Runs a call; the recorded events are those of this call alone.
  static void run(Call& call) {
    fake_cuda_forget();
    ASSERT_EQ(gemm(call), KINTSUGI_SUCCESS) << kintsugi_last_error();
    expect_no_waiting();
  }
};

// Updates of C are emulated sooner. A workspace has the size that a plan has said, which does not know beta.
TEST_F(CallsOnDevices, AutoLooksAtBetaUnlessThereIsAWorkspace) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  constexpr std::int64_t n = 2560, k = 2048;
  const std::vector<double> a(n * k, 1), b(n * k, 1);
  std::vector<double> c(n * n, 1);
  const Stream stream;
  const auto is_emulated = [&](double beta, std::int32_t adds_to_c, bool has_workspace) {
    PlannedCall call(n, n, k, stream);
    const double alpha = 1;
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_F64;
    call.problem.adds_to_c = adds_to_c;
    call.operands.alpha = &alpha;
    call.operands.beta = &beta;
    call.operands.a = a.data();
    call.operands.b = b.data();
    call.operands.c = c.data();
    if (has_workspace) {
      call.make_plan();
      call.bring_workspace();
    }
    run(call);
    return !events_with("cuLaunchKernel split_").empty();
  };
  EXPECT_TRUE(is_emulated(0, 0, false));
  EXPECT_TRUE(is_emulated(0, 1, false)) << "the caller was wrong";
  EXPECT_FALSE(is_emulated(-1, 0, false));
  EXPECT_TRUE(is_emulated(-1, 0, true));
  EXPECT_FALSE(is_emulated(-1, 1, true));
}

TEST_F(CallsOnDevices, APlanServesEveryStreamOfItsContext) {
  for (const char* policy : {"native", "emulate"}) {
    const Stream first;
    const Stream second;
    Call first_call(40, 30, 100, first);
    Call second_call(40, 30, 100, second);
    first_call.options.policy = second_call.options.policy = policy;
    const std::size_t before = plan_cache().size();
    for (int round = 0; round < 2; ++round) {
      run(first_call);
      expect_all_on(first);
      EXPECT_THAT(events_with(first.text()), Not(IsEmpty()));
      run(second_call);
      expect_all_on(second);
      EXPECT_THAT(events_with(second.text()), Not(IsEmpty()));
    }
    EXPECT_EQ(plan_cache().size(), before + 1);
  }
}

// The operands' queue is preferred to that of the options.
TEST_F(CallsOnDevices, TheQueueOfTheOperandsIsUsed) {
  const Stream options;
  const Stream operands;
  Call call(40, 30, 100, options);
  run(call);
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, operands.get()};
  run(call);
  expect_all_on(operands);
}

TEST_F(CallsOnDevices, EveryContextHasItsOwnPlan) {
  for (int round = 0; round < 2; ++round) {
    for (const int device : {0, 1}) {
      const CurrentContext current(primary_context(device));
      const Stream stream;
      Call call(40, 30, 100, stream);
      run(call);
      expect_all_on(stream);
    }
    EXPECT_EQ(plan_cache().size(), 2U);
  }
}

// A new context gets the address of the destroyed one.
TEST_F(CallsOnDevices, AContextAtAReusedAddressHasItsOwnPlan) {
  for (std::size_t number = 1; number <= 3; ++number) {
    void* context = fake_cuda_make_context(0, nullptr);
    {
      const CurrentContext current(context);
      const Stream stream;
      Call call(40, 30, 100, stream);
      call.options.policy = "emulate";
      run(call);
    }
    EXPECT_EQ(plan_cache().size(), number);
    fake_cuda_destroy_context(context);
  }
}

// Host matrices that the engine cuda multiplies have one plan for all contexts, since the key is made before
// an engine is selected.
TEST_F(CallsOnDevices, PlansOfHostMatricesServeEveryContext) {
  for (const int device : {0, 1, 0}) {
    const CurrentContext current(primary_context(device));
    const Stream unused;
    Call call(8, 8, 8, unused);
    call.problem.memory = KINTSUGI_HOST;
    call.options.queue = {};
    call.options.engine = "cuda";
    EXPECT_EQ(gemm(call), KINTSUGI_SUCCESS) << kintsugi_last_error();
  }
  EXPECT_EQ(plan_cache().size(), 1U);
}

TEST_F(CallsOnDevices, ACallWithAKeptPlanCanBeCaptured) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.options.policy = "emulate";
  ASSERT_EQ(gemm(call), KINTSUGI_SUCCESS) << "makes the handle's report, which waits";
  const Capture capture(stream);
  fake_cuda_forget();
  ASSERT_EQ(gemm(call), KINTSUGI_SUCCESS) << kintsugi_last_error();
  expect_no_waiting_in_capture();
  EXPECT_THAT(events_with("cuLaunchKernel"), Not(IsEmpty()));
}

TEST_F(CallsOnDevices, AHostEngineForDeviceMemoryFailsInEveryCall) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.engine = "cpu";
  for (int round = 0; round < 2; ++round) EXPECT_EQ(gemm(call), KINTSUGI_NOT_SUPPORTED);
  EXPECT_EQ(plan_cache().size(), 0U);
}

// ---------------------------------------------------------------- memory

TEST_F(CallsOnDevices, WorkspacesComeFromAPoolThatReleaseTrims) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  const int before = fake_cuda_allocations();
  run(call);
  EXPECT_THAT(events_with("cuMemAlloc"), ElementsAre(StartsWith("cuMemAllocFromPoolAsync ")));
  EXPECT_THAT(events_with("cuMemPool"), IsEmpty()) << "the pool was made before";
  EXPECT_EQ(fake_cuda_allocations(), before);
  fake_cuda_forget();
  ASSERT_EQ(kintsugi_release_caches(), KINTSUGI_SUCCESS);
  EXPECT_EQ(plan_cache().size(), 0U);
  EXPECT_THAT(events_with("cuMemPool"),
              testing::Contains("cuMemPoolTrimTo 0, kept " + std::to_string(std::size_t{256} << 20)));
  expect_no_waiting();
  run(call);
}

// The most bytes that a device's pool keeps.
std::uint64_t kept_bytes() {
  fake_cuda_forget();
  kintsugi_release_caches();
  std::uint64_t most = 0;
  for (const std::string& trim : events_with("cuMemPoolTrimTo 0, kept "))
    most = std::max<std::uint64_t>(most, std::stoull(trim.substr(trim.rfind(' ') + 1)));
  return most;
}

class LargeCallsOnDevices : public CallsOnDevices {
 protected:
  static constexpr std::uint64_t few_bytes = std::uint64_t{256} << 20;
  static constexpr std::uint64_t all_bytes = ~std::uint64_t{0};
  const Stream stream_;
  Call call_{3000, 2000, 4000, stream_};

  void run_large() {
    call_.options.policy = "emulate";
    ASSERT_EQ(gemm(call_), KINTSUGI_SUCCESS) << kintsugi_last_error();
  }
  // Waits until the pool keeps few bytes again.
  static void wait_until_idle() {
    for (int tenths = 0; tenths < 300 && kept_bytes() != few_bytes; ++tenths)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(kept_bytes(), few_bytes);
  }
};

TEST_F(LargeCallsOnDevices, PoolsKeepAllMemoryUntilCallsAreOver) {
  for (int round = 0; round < 2; ++round) {
    const auto start = std::chrono::steady_clock::now();
    run_large();
    const std::uint64_t kept = kept_bytes();
    if (std::chrono::steady_clock::now() < start + std::chrono::seconds(1)) {
      EXPECT_EQ(kept, all_bytes);
    }
    wait_until_idle();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  }
}

// The child of a fork has no thread that it could wait for at its end.
TEST_F(LargeCallsOnDevices, AChildEndsWhileThePoolKeepsAllMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have exit handlers of their own, which may hang or find leaks in a child";
#endif
  run_large();
  const pid_t child = ::fork();
  if (child == 0) std::exit(7);
  ASSERT_GT(child, 0);
  int status = 0;
  pid_t ended = 0;
  for (int tenths = 0; tenths < 300 && ended == 0; ++tenths) {
    ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (ended == 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  wait_until_idle();
}

}  // namespace
}  // namespace kintsugi::test
