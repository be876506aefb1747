// Machines with two devices: what is made on one stays there, whichever is current. Skipped where there is
// one.
#include <gmock/gmock.h>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A device's primary context is the thread's while this lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    cuda::Context context = nullptr;
    cuda::check(cuda::driver().primary_context_retain(&context, cuda::device_at(device)),
                "cuDevicePrimaryCtxRetain");
    cuda::check(cuda::driver().context_push(context), "cuCtxPushCurrent");
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
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

TEST_F(Devices, AHandleServesAll) {
  const Handle handle;
  for (const char* policy : {"emulate", "native"}) {
    for (const int device : {0, 1, 0, 1}) {
      GemmData data(GemmCase{.m = 200, .n = 150, .k = 300, .policy = policy});
      {
        const OnDevice on(device);
        DeviceGemm<float>(data).run_well(handle);
      }
      expect_accurate(data, 300 + 8);
      const OnDevice other(1 - device);
      const json report = handle.report();
      std::int64_t items = 0;
      for (const json& candidate : report.at("candidates"))
        items += candidate.at("items").get<std::int64_t>();
      EXPECT_EQ(items, 1) << report.dump();
    }
  }
}

TEST_F(Devices, ObjectsOfOthersAreRefused) {
  GemmData data(GemmCase{.m = 200, .n = 150, .k = 300, .policy = "emulate"});
  kintsugi_prepared prepared = nullptr;
  kintsugi_plan plan = nullptr;
  {
    const OnDevice first(0);
    DeviceGemm<float> run(data);
    const kintsugi_problem problem = run.problem();
    const kintsugi_options options = run.options();
    const kintsugi_operands operands = run.operands();
    ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS);
    ASSERT_EQ(kintsugi_prepare(nullptr, plan, KINTSUGI_A, operands.a, &prepared), KINTSUGI_SUCCESS);
    const Stream stream;
    const OnDevice second(1);
    EXPECT_EQ(kintsugi_plan_execute(nullptr, plan, &operands), KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(), AllOf(HasSubstr("for device 0"), HasSubstr("device 1")));
    DeviceGemm<float> there(data);
    const kintsugi_problem problem_there = there.problem();
    kintsugi_options options_there = there.options();
    kintsugi_operands operands_there = there.operands();
    operands_there.prepared_a = prepared;
    EXPECT_EQ(kintsugi_gemm(nullptr, &problem_there, &options_there, &operands_there),
              KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(),
                AllOf(HasSubstr("prepared_a lies on device 0"), HasSubstr("device 1")));
    operands_there.prepared_a = nullptr;
    options_there.queue = stream.queue();
    EXPECT_EQ(kintsugi_gemm(nullptr, &problem_there, &options_there, &operands_there),
              KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("the stream belongs to device 0"));
  }
  const OnDevice second(1);
  kintsugi_prepared_destroy(prepared);
  kintsugi_plan_destroy(plan);
  DeviceGemm<float>(data).run_well();
  expect_accurate(data, 300 + 8);
}

}  // namespace
}  // namespace kintsugi::test
