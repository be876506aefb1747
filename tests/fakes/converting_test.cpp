// Tests products whose kernel splits operands while it multiplies (bf16x6-direct): plans, launches and
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
  Call call(256, 256, 500, stream_);
  call.options.scheme = "bf16x6-direct";
  call.make_plan();
  EXPECT_EQ(describe(call).at("workspace_bytes"), 0);
  call.run();
  EXPECT_THAT(work(), ElementsAre(HasSubstr("multiply_f32_direct_")));
  expect_all_on(stream_);
  expect_no_waiting();
}

// The kernel itself counts batch items and recomputed elements.
TEST_F(Converting, AReportTakesNoOtherKernel) {
  Call call(40, 16, 300, stream_);
  call.options.scheme = "bf16x6-direct";
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.run_in_workspace();
  EXPECT_THAT(work(), testing::Not(testing::Contains(testing::AnyOf("find_ranges", "select_candidate"))));
}

// A product that leaves most SMs idle divides k among thread blocks, which count themselves.
TEST_F(Converting, DividedSumsHaveClearedCounters) {
  Call call(4096, 64, 4096, stream_);
  call.options.scheme = "bf16x6-direct";
  call.run_in_workspace();
  const auto done = work();
  ASSERT_GE(done.size(), 2U);
  EXPECT_EQ(done[done.size() - 2], "clear_bytes");
  EXPECT_THAT(done.back(), HasSubstr("multiply_f32_direct_"));
}

// Thread blocks share even a very long k: their partial sums are those of segments.
TEST_F(Converting, LongSumsNeedLittleWorkspace) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{64, 64, std::int64_t{1} << 25},
                                {16, 16, std::int64_t{1} << 24},
                                {128, 64, std::int64_t{1} << 22},
                                {8, 8, std::int64_t{1} << 20},
                                {4, 4, (std::int64_t{1} << 31) - 1}}) {
    PlannedCall call(m, n, k, stream_);
    call.options.policy = "emulate";
    const json plan = planned(call);
    EXPECT_THAT(schemes(plan), ElementsAre("bf16x6-direct")) << m << ", " << k;
    EXPECT_LE(plan.at("workspace_bytes"), std::int64_t{64} << 20) << m << ", " << k;
  }
}

// One candidate, which accepts all operands: no kernel looks at them first.
TEST_F(Converting, PoliciesTakeItForSmallAndSkinnyProducts) {
  for (const char* policy : {"auto", "emulate"}) {
    for (const std::int64_t n : {64, 768}) {
      PlannedCall call(n == 64 ? 4096 : n, n, n == 64 ? 4096 : n, stream_);
      call.options.policy = policy;
      EXPECT_THAT(schemes(planned(call)), ElementsAre("bf16x6-direct")) << policy << n;
    }
    PlannedCall large(4096, 4096, 4096, stream_);
    large.options.policy = policy;
    EXPECT_THAT(schemes(planned(large)), testing::Not(testing::Contains("bf16x6-direct"))) << policy;
  }
}

// Under emulate bits depend on neither: the kernel reads the originals of prepared operands.
TEST_F(Converting, PreparationDoesNotChangeTheSchemeOfEmulate) {
  for (const bool prepared : {false, true}) {
    PlannedCall call(768, 768, 768, stream_);
    call.options.policy = "emulate";
    call.problem.prepared_b = prepared ? 1 : 0;
    EXPECT_THAT(schemes(planned(call)), ElementsAre("bf16x6-direct")) << prepared;
  }
}

// Nobody has measured the kernels there.
TEST_F(Converting, PoliciesLeaveItOnDevicesWithoutItsCosts) {
  const FakeVariable forced("KINTSUGI_ARCH", "sm80");
  PlannedCall call(768, 768, 768, stream_);
  call.options.policy = "emulate";
  EXPECT_THAT(schemes(planned(call)), testing::Not(testing::Contains("bf16x6-direct")));
}

// The kernel reads the copy of the original.
TEST_F(Converting, PreparedOperandsAreReadAsTheyWere) {
  kintsugi_prepared prepared = nullptr;
  Call call(64, 512, 512, stream_);
  call.options.scheme = "bf16x6-direct";
  call.make_plan();
  ASSERT_EQ(kintsugi_prepare(nullptr, call.plan, KINTSUGI_B, call.operands.b, &prepared), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  Call by_prepared(64, 512, 512, stream_);
  by_prepared.options.scheme = "bf16x6-direct";
  by_prepared.problem.prepared_b = 1;
  by_prepared.make_plan();
  EXPECT_EQ(schemes(describe(by_prepared)), schemes(describe(call)));
  by_prepared.operands.b = nullptr;
  by_prepared.operands.prepared_b = prepared;
  fake_cuda_forget();
  by_prepared.run();
  EXPECT_THAT(work(), ElementsAre(HasSubstr("multiply_f32_direct_")));
  kintsugi_prepared_destroy(prepared);
}

TEST_F(Converting, OlderFamiliesHaveNarrowTilesWithoutTensorMaps) {
  const FakeVariable forced("KINTSUGI_ARCH", "sm86");
  Call call(100, 200, 3000, stream_);
  call.options.scheme = "bf16x6-direct";
  call.run_in_workspace();
  EXPECT_THAT(work(), ElementsAre(HasSubstr("multiply_f32_direct_mma_")));
  EXPECT_THAT(events_with("cuTensorMapEncodeTiled"), testing::IsEmpty());
}

TEST_F(Converting, ComplexElementsAreRefused) {
  Call call(64, 64, 64, stream_);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_C32;
  call.options.scheme = "bf16x6-direct";
  expect_refused(call, KINTSUGI_NOT_SUPPORTED, "does not have scheme bf16x6-direct");
}

TEST_F(Converting, OtherDevicesDoNotHaveIt) {
  const GenericDevices older("10.0");
  Call call(256, 256, 256, stream_);
  call.options.scheme = "bf16x6-direct";
  expect_refused(call, KINTSUGI_NOT_SUPPORTED, "does not have scheme bf16x6-direct");
}

}  // namespace
}  // namespace kintsugi::test
