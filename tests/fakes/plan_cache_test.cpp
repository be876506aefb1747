// Tests kintsugi_gemm on devices over the fakes: a context has its own plans, work goes into the stream of
// the call, and memory comes from the library's pool.
#include "front/plan_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  run(call);
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

}  // namespace
}  // namespace kintsugi::test
