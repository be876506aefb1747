// Machines with two devices: plans, prepared operands and reports belong to the device that was current when
// they were made. Skipped on machines with one device.
#include <gmock/gmock.h>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Makes the device current in this thread while the object exists.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    cuda::Context context = nullptr;
    cuda::check(cuda::driver().primary_context_retain(&context, cuda::device_at(device)),
                "cuDevicePrimaryCtxRetain");
    cuda::check(cuda::driver().context_push(context), "cuCtxPushCurrent");
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    cuda::Context popped = nullptr;
    cuda::driver().context_pop(&popped);
  }
};

class Devices : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::driver().devices < 2) GTEST_SKIP() << "one device";
  }
};

TEST_F(Devices, OneHandleServesBothDevices) {
  const Handle handle;
  for (const char* policy : {"emulate", "native"}) {
    for (const int device : {0, 1, 0, 1}) {
      GemmData data(GemmCase{.m = 200, .n = 150, .k = 300, .policy = policy});
      {
        const CurrentDevice current(device);
        DeviceGemm<float>(data).run_well(handle);
      }
      expect_accurate(data, 300 + 8);
      const CurrentDevice other_device(1 - device);
      const json report = handle.report();
      std::int64_t items = 0;
      for (const json& candidate : report.at("candidates"))
        items += candidate.at("items").get<std::int64_t>();
      EXPECT_EQ(items, 1) << report.dump();
    }
  }
}

TEST_F(Devices, PlansAndOperandsOfAnotherDeviceAreRefused) {
  GemmData data(GemmCase{.m = 200, .n = 150, .k = 300, .policy = "emulate"});
  kintsugi_prepared prepared = nullptr;
  kintsugi_plan plan = nullptr;
  {
    const CurrentDevice first(0);
    DeviceGemm<float> run(data);
    const kintsugi_problem problem = run.problem();
    const kintsugi_options options = run.options();
    const kintsugi_operands operands = run.operands();
    ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS);
    ASSERT_EQ(kintsugi_prepare(nullptr, plan, KINTSUGI_A, operands.a, &prepared), KINTSUGI_SUCCESS);
    const Stream stream;
    const CurrentDevice second(1);
    EXPECT_EQ(kintsugi_plan_execute(nullptr, plan, &operands), KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(), AllOf(HasSubstr("for device 0"), HasSubstr("device 1")));
    DeviceGemm<float> run_on_second(data);
    const kintsugi_problem problem_on_second = run_on_second.problem();
    kintsugi_options options_on_second = run_on_second.options();
    kintsugi_operands operands_on_second = run_on_second.operands();
    operands_on_second.prepared_a = prepared;
    EXPECT_EQ(kintsugi_gemm(nullptr, &problem_on_second, &options_on_second, &operands_on_second),
              KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(),
                AllOf(HasSubstr("prepared_a lies on device 0"), HasSubstr("device 1")));
    operands_on_second.prepared_a = nullptr;
    options_on_second.queue = stream.queue();
    EXPECT_EQ(kintsugi_gemm(nullptr, &problem_on_second, &options_on_second, &operands_on_second),
              KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("the stream belongs to device 0"));
  }
  const CurrentDevice second(1);
  kintsugi_prepared_destroy(prepared);
  kintsugi_plan_destroy(plan);
  DeviceGemm<float>(data).run_well();
  expect_accurate(data, 300 + 8);
}

}  // namespace
}  // namespace kintsugi::test
