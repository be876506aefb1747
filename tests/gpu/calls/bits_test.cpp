// Tests that the bits of a call on device memory do not depend on run, stream, thread, batch position and
// workspace limit.
#include <algorithm>
#include <array>
#include <thread>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

TEST(DeviceBits, DoNotDependOnRunStreamOrBatchPositionInSmallCases) {
  for (const std::string scheme :
       {"fp16x3", "fp16x3-wide", "bf16x6", "tf32x3", "int8x6", "ozaki2:moduli=7"}) {
    GemmCase test{.m = 97, .n = 130, .k = 211, .distribution = "phi:1", .scheme = scheme};
    SCOPED_TRACE(scheme);
    const auto bits = device_bits<float>(test);
    EXPECT_EQ(device_bits<float>(test), bits) << "another run";
    const Stream stream;
    GemmDataOf<float> data(test);
    DeviceGemm<float> on_stream(data, {.queue = stream.queue()});
    wait_for_uploads();
    ASSERT_EQ(on_stream.run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    stream.wait();
    on_stream.fetch();
    EXPECT_EQ(bits_of(data.result()), bits) << "another stream";
    for (const bool pointers : {false, true}) {
      GemmCase batch = test;
      batch.batch = 5;
      GemmDataOf<float> batched(batch);
      DeviceGemm<float>(batched, {.pointers = pointers}).run_well();
      for (std::int64_t t = 0; t < batch.batch; ++t) {
        GemmCase single = test;
        single.seed = test.seed + static_cast<std::uint64_t>(t);
        const auto alone = device_bits<float>(single);
        const auto all = bits_of(batched.result());
        EXPECT_TRUE(
            std::equal(alone.begin(), alone.end(), all.begin() + static_cast<std::ptrdiff_t>(t * 97 * 130)))
            << "batch position " << t << (pointers ? " by pointers" : " strided");
      }
    }
  }
}

TEST(DeviceBits, DoNotDependOnTheWorkspaceLimit) {
  // The last case is a fallback chain whose first candidate is accepted by mean depth: this many uniform
  // numbers have a wider dynamic range than it is proved for.
  for (const std::string scheme : {"fp16x3", "fp16x3-wide:block=1024", "bf16x6", "ozaki2:moduli=7", ""}) {
    GemmCase test{.m = 8300, .n = 4200, .k = 130, .op_a = KINTSUGI_OP_T, .scheme = scheme};
    if (scheme.empty()) test.policy = "emulate";
    const auto bits = device_bits<float>(test);
    std::size_t unlimited = 0;
    for (const double share : {0.9, 0.7, 0.55}) {
      GemmDataOf<float> data(test);
      if (unlimited == 0) {
        DeviceGemm<float> device(data);
        const auto problem = device.problem();
        const auto options = device.options();
        kintsugi_plan plan = nullptr;
        ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
            << kintsugi_last_error();
        kintsugi_plan_workspace_size(plan, &unlimited);
        kintsugi_plan_destroy(plan);
      }
      GemmCase limited = test;
      limited.workspace_limit = static_cast<std::int64_t>(share * static_cast<double>(unlimited));
      GemmDataOf<float> limited_data(limited);
      DeviceGemm<float> device(limited_data);
      const Handle handle;
      const kintsugi_status status = device.run(handle);
      if (status == KINTSUGI_WORKSPACE_TOO_SMALL) continue;
      ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
      device.fetch();
      EXPECT_EQ(bits_of(limited_data.result()), bits)
          << scheme << " with " << limited.workspace_limit << " of " << unlimited;
      if (scheme.empty()) {
        EXPECT_EQ(handle.report()["candidates"][0]["scheme"], "fp16x3");
      }
    }
  }
}

TEST(DeviceBits, DoNotDependOnConcurrentThreadsInSmallCases) {
  GemmCase test{.m = 300, .n = 257, .k = 500, .scheme = "fp16x3"};
  const auto bits = device_bits<float>(test);
  std::vector<std::thread> threads;
  std::array<bool, 4> equal{};
  for (std::size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      GemmDataOf<float> data(test);
      const Stream stream;
      DeviceGemm<float> device(data, {.queue = stream.queue()});
      wait_for_uploads();
      bool all = true;
      for (int run = 0; run < 5; ++run) {
        all = all && device.run() == KINTSUGI_SUCCESS;
        stream.wait();
        device.fetch();
        all = all && bits_of(data.result()) == bits;
      }
      equal[t] = all;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::all_of(equal.begin(), equal.end(), [](bool same) { return same; }))
      << kintsugi_last_error();
}

}  // namespace
}  // namespace kintsugi::test
