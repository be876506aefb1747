// Tests products whose kernel converts operands while it multiplies (fp16x3-block): plans, launches and
// workspaces, over the fakes.
#include "fakes/device_plan.hpp"

namespace kintsugi::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Converting : public DevicePlan {
 protected:
  const FakeVariable measured_{"FAKE_CUDA_NAME", "NVIDIA H200"};
};

TEST_F(Converting, ASmallProductIsOneLaunchWithoutWorkspace) {
  Call call(256, 256, 700, stream_);
  call.options.scheme = "fp16x3-block";
  call.make_plan();
  EXPECT_EQ(describe(call).at("workspace_bytes"), 0);
  call.run();
  EXPECT_THAT(work(), ElementsAre(HasSubstr("multiply_f32_block_128x")));
  expect_all_on(stream_);
  expect_no_waiting();
}

// The kernel itself counts batch items and recomputed elements.
TEST_F(Converting, AReportTakesNoOtherKernel) {
  Call call(40, 16, 300, stream_);
  call.options.scheme = "fp16x3-block";
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.run_in_workspace();
  EXPECT_THAT(work(), testing::Not(testing::Contains(testing::AnyOf("find_ranges", "select_candidate"))));
}

// A product that leaves most SMs idle divides k among thread blocks, which count themselves.
TEST_F(Converting, DividedSumsHaveClearedCounters) {
  Call call(4096, 64, 4096, stream_);
  call.options.scheme = "fp16x3-block";
  call.run_in_workspace();
  const auto done = work();
  ASSERT_GE(done.size(), 2U);
  EXPECT_EQ(done[done.size() - 2], "clear_bytes");
  EXPECT_THAT(done.back(), HasSubstr("multiply_f32_block_128x64"));
}

// Elements that it does not accept are summed one by one, on wide data slower than the native product.
TEST_F(Converting, NoPolicyTakesIt) {
  for (const char* policy : {"auto", "emulate"}) {
    for (const std::int64_t n : {16, 768}) {
      PlannedCall call(n, 768, 768, stream_);
      call.options.policy = policy;
      EXPECT_THAT(schemes(planned(call)), testing::Not(testing::Contains("fp16x3-block"))) << policy << n;
    }
  }
}

TEST_F(Converting, ComplexElementsAreRefused) {
  Call call(64, 64, 64, stream_);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_C32;
  call.options.scheme = "fp16x3-block";
  expect_refused(call, KINTSUGI_NOT_SUPPORTED, "does not have scheme fp16x3-block");
}

TEST_F(Converting, OtherDevicesDoNotHaveIt) {
  const GenericDevices older("10.0");
  Call call(256, 256, 256, stream_);
  call.options.scheme = "fp16x3-block";
  expect_refused(call, KINTSUGI_NOT_SUPPORTED, "does not have scheme fp16x3-block");
}

}  // namespace
}  // namespace kintsugi::test
