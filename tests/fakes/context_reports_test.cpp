// Tests reports and their memory with several devices and contexts, over the fakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/contexts.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(Contexts, ReportsBelongToTheirDevice) {
  const Handle handle;
  for (const bool first : {true, false}) {
    for (const int device : {0, 1}) {
      const CurrentContext current(primary_context(device));
      const Stream stream;
      Call call(40, 30, 100, stream);
      call.options.policy = "emulate";
      ASSERT_EQ(kintsugi_plan_create(handle, &call.problem, &call.options, &call.plan), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      call.bring_workspace();
      call.alpha = 0;  // then the report is only cleared, which the fake driver can do
      fake_cuda_forget();
      ASSERT_EQ(kintsugi_plan_execute(handle, call.plan, &call.operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      EXPECT_THAT(events_with("Alloc"), IsEmpty()) << "device " << device << ", first: " << first;
      const CurrentContext other(primary_context(1 - device));
      fake_cuda_forget();
      handle.report();
      EXPECT_THAT(events_with("cuCtxSynchronize"),
                  AllOf(Not(IsEmpty()), Each(fmt::format("cuCtxSynchronize device={}", device))));
    }
  }
}

// A garbage collector may destroy a handle while some stream is captured.
TEST_F(Contexts, HandlesAreDestroyedWithoutDeviceCalls) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.make_plan();
  {
    const Capture capture(stream);
    fake_cuda_forget();
    kintsugi_destroy(call.handle);
    EXPECT_THAT(events(), IsEmpty());
  }
  const int before = fake_cuda_allocations();
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.make_plan();
  EXPECT_EQ(fake_cuda_allocations(), before)
      << "the next handle takes the report memory of the destroyed one";
  EXPECT_THAT(events_with("cuCtxSynchronize"), Not(IsEmpty()))
      << "the memory is taken when no kernel writes to it any more";
}

TEST_F(Contexts, ReportMemoryIsNotAllocatedInACapture) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  const Handle other;
  ASSERT_EQ(kintsugi_plan_create(other, &call.problem, &call.options, &call.plan), KINTSUGI_SUCCESS);
  void* context = fake_cuda_make_context(0, nullptr);
  const CurrentContext current(context);
  const Stream stream_here;
  Call here(40, 30, 100, stream_here);
  here.options.policy = "emulate";
  here.make_plan();
  ASSERT_EQ(kintsugi_create(&here.handle), KINTSUGI_SUCCESS);
  {
    const Capture capture(stream_here);
    expect_refused(here,
                   AllOf(HasSubstr("the stream is being captured"), HasSubstr("no report for device 0")));
  }
  EXPECT_EQ(here.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const Capture capture(stream_here);
  EXPECT_EQ(here.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

// A native product needs no device report, since the host decides what it does.
TEST_F(Contexts, NativeProductsNeedNoReport) {
  void* context = fake_cuda_make_context(0, nullptr);
  const CurrentContext current(context);
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "native";
  call.make_plan();
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  const Capture capture(stream);
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

}  // namespace
}  // namespace kintsugi::test
