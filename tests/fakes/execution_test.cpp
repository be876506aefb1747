// Tests calls of the C ABI on device memory, over the fakes: what is put into the stream, in which order and
// with which arguments. Nothing is computed here; tests/gpu compares results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

using Execution = OverFakes;

TEST_F(Execution, WithAWorkspaceNothingIsAllocatedOrWaits) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.run_in_workspace();
  EXPECT_THAT(events_with("Memcpy"), IsEmpty());
}

TEST_F(Execution, WithAHandleAndAWorkspaceNothingIsAllocatedOrWaits) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.options.policy = "emulate";
  call.run_in_workspace();
  std::vector<char> text(1 << 16);
  ASSERT_EQ(kintsugi_report(call.handle, text.data(), text.size(), nullptr), KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("Synchronize"), Not(IsEmpty())) << "reading a report waits for the device";
  fake_cuda_forget();
  kintsugi_report_summary summary = KINTSUGI_REPORT_SUMMARY_INIT;
  ASSERT_EQ(kintsugi_report_summarize(call.handle, &summary), KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("Synchronize"), Not(IsEmpty())) << "reading a summary does, too";
}

// Otherwise the report would be cleared beside, or after, the next call of the handle in a stream.
TEST_F(Execution, AnEmptyCallWithoutAQueueWaitsForItsClearedReport) {
  const Stream stream;
  for (const auto& [m, n, batch] : {std::array{0, 19, 1}, {7, 0, 1}, {7, 19, 0}}) {
    Call call(m, n, 8, stream);
    call.problem.lda = call.problem.ldc = 7;
    call.problem.batch_count = batch;
    call.problem.batch_kind = KINTSUGI_BATCH_STRIDED;
    call.options.policy = "emulate";
    call.options.queue = {};
    for (const bool has_handle : {false, true}) {
      if (has_handle) {
        ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
      }
      call.make_plan();
      fake_cuda_forget();
      ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
      const auto all = work();
      if (has_handle) {
        ASSERT_THAT(all, Not(IsEmpty())) << m << " x " << n << ", batch " << batch;
        EXPECT_EQ(all.back(), "cuStreamSynchronize");
      } else {
        EXPECT_THAT(all, IsEmpty());
      }
    }
  }
}

TEST_F(Execution, WithoutAWorkspaceMemoryIsAllocatedAndFreedInTheStream) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  const int before = fake_cuda_allocations();
  call.run();
  EXPECT_EQ(fake_cuda_allocations(), before);
  const auto all = events();
  ASSERT_GE(all.size(), 2U);
  EXPECT_THAT(all.front(), HasSubstr("cuMemAllocFromPoolAsync "));
  EXPECT_THAT(all.back(), HasSubstr("cuMemFreeAsync "));
  EXPECT_EQ(events_with("cuMemAllocFromPoolAsync").size(), 1U);
}

// fp16x3 multiplies the cross products, then hi * hi, and adds to one sum for every k-block.
TEST_F(Execution, CublasMultipliesTermsInTheSchedulesOrder) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.options.accumulator = "cublas";
  call.make_plan();
  call.run();
  const auto products = events_with("cublasGemm");
  ASSERT_EQ(products.size() % 3, 0U);
  ASSERT_GE(products.size(), 3U);
  for (const std::string& product : products)
    EXPECT_THAT(product,
                AllOf(HasSubstr("op_a=1 op_b=0 m=48 n=32 "), HasSubstr(" type=2 result=0 compute=68")));
  EXPECT_THAT(products.front(), HasSubstr(" beta=0 "));
  for (std::size_t i = 1; i < products.size(); ++i) EXPECT_THAT(products[i], HasSubstr(" beta=1 "));
}

// On Hopper one launch splits A and B, although only A is strided along k, and one computes C from the
// slices, with two thread blocks for each tile. A has 24 panels, each a cluster of 8 thread blocks; 128
// thread blocks take 4 of the 512 vectors of B each.
TEST_F(Execution, TermsOnHopperAreOneLaunch) {
  const Stream stream;
  Call call(300, 400, 100, stream);
  call.options.scheme = "fp16x3-wide";
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("cublasGemm"), IsEmpty());
  EXPECT_THAT(events_with("cuMemsetD8Async"), IsEmpty());
  const auto launches = events_with("cuLaunchKernel");
  EXPECT_THAT(launches,
              ElementsAre(StartsWith("cuLaunchKernel split_f32_fp16_columns 320x1x1 threads=128 "),
                          StartsWith("cuLaunchKernel multiply_f32_fp16x3_wide_64x32 78x1x1 threads=160 ")));
}

// Devices without clusters split one operand after the other, by kernels of any device.
TEST_F(Execution, WithoutClustersOperandsOfDifferentLayoutsAreTwoLaunches) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const FakeVariable older("FAKE_CUDA_CAPABILITY", "8.0");
  const Stream stream;
  Call call(300, 400, 1000, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  call.run();
  const auto splits = events_with("cuLaunchKernel split_");
  EXPECT_THAT(splits, ElementsAre(StartsWith("cuLaunchKernel split_f32_parts 19x1x1 threads=256 "),
                                  StartsWith("cuLaunchKernel split_f32_fp16_rows 128x1x1 threads=128 ")));
  EXPECT_THAT(events_with("cuLaunchKernel multiply_"),
              ElementsAre(StartsWith("cuLaunchKernel multiply_f32_fp16x3_mma_64x64 ")));
}

// 20 x 40 tiles on 66 pairs of SMs are twelve waves and eight tiles that are split along k, whose partial
// sums need counters.
TEST_F(Execution, CountersOfTilesSplitAlongKAreClearedFirst) {
  const Stream stream;
  Call call(5120, 5120, 2048, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  const Prepared a(call, KINTSUGI_A);
  const Prepared b(call, KINTSUGI_B);
  call.operands.prepared_a = a.get();
  call.operands.prepared_b = b.get();
  call.run();
  EXPECT_EQ(events_with("cuLaunchKernel clear_bytes").size(), 1U) << "nothing is split";
  EXPECT_THAT(events_with("cuLaunchKernel").back(),
              StartsWith("cuLaunchKernel multiply_f32_fp16x3_256x128 132x1x1 threads=384 "));
  const std::string all = fake_cuda_events();
  EXPECT_LT(all.find("cuLaunchKernel clear_bytes"), all.find("cuLaunchKernel multiply_f32_fp16x3_256x"));
  call.operands.prepared_a = nullptr;
  call.run();
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(StartsWith("cuLaunchKernel split_"),
                          StartsWith("cuLaunchKernel multiply_f32_fp16x3_256x128 ")));
}

// The fake kernels write nothing but the cleared counters, so these are the only zeros in a workspace filled
// with 0xff.
TEST_F(Execution, TheFirstSplitClearsTheCounters) {
  const Stream stream;
  for (const char* scheme : {"fp16x3", ""}) {
    for (const std::int64_t k : {2048, 65536}) {
      Call call(k == 2048 ? 5120 : 64, k == 2048 ? 5120 : 64, k, stream);
      (*scheme != 0 ? call.options.scheme : call.options.policy) = *scheme != 0 ? scheme : "emulate";
      call.make_plan();
      call.bring_workspace();
      std::memset(call.operands.workspace, 0xff, call.operands.workspace_size);
      call.run();
      EXPECT_THAT(events_with("cuLaunchKernel clear_bytes"), IsEmpty()) << scheme << k;
      const auto* bytes = static_cast<const unsigned char*>(call.operands.workspace);
      const auto* end = bytes + call.operands.workspace_size;
      const auto* first = std::find(bytes, end, 0);
      const auto* last = std::find(first, end, 0xff);
      EXPECT_GE(last - first, k == 2048 ? 2052 : 2304 + 4096) << scheme << k;
      EXPECT_EQ(std::find(last, end, 0), end) << scheme << k;
    }
  }
}

// Batch items may select different candidates, whose products would use the same counters.
TEST_F(Execution, ProductsOfABatchClearTheirOwnCounters) {
  const Stream stream;
  Call call(64, 64, 65536, stream);
  call.problem.batch_count = 2;
  call.problem.stride_a = call.problem.stride_b = 64 * 65536;
  call.problem.stride_c = 64 * 64;
  call.a.resize(2 * call.a.size());
  call.b.resize(2 * call.b.size());
  call.c.resize(2 * call.c.size());
  call.operands.a = call.a.data();
  call.operands.b = call.b.data();
  call.operands.c = call.c.data();
  call.options.policy = "emulate";
  call.make_plan();
  call.run();
  EXPECT_GE(events_with("cuLaunchKernel clear_bytes").size(), 2U) << "fp16x3 and fp16x3-wide";
}

// If the chain has one emulation and beta is 0, the native kernel selects the candidate itself after split
// and product. Large products have a selector kernel.
TEST_F(Execution, NativeKernelsOfSmallProductsSelectTheCandidate) {
  const Stream stream;
  struct Case {
    std::int64_t m, n;
    std::vector<std::string> kernels;
  };
  const Case cases[] = {
      {300, 200, {"split_", "multiply_f32_bf16x6_", "select_or_multiply_f32_simt_"}},
      {3000, 2000, {"split_", "multiply_f32_bf16x6_", "select_candidate", "multiply_f32_simt_"}}};
  for (const auto& [m, n, kernels] : cases) {
    Call call(m, n, 4, stream);
    call.options.policy = "emulate";
    call.beta = 0;
    call.make_plan();
    call.run();
    const auto launches = events_with("cuLaunchKernel ");
    ASSERT_EQ(launches.size(), kernels.size()) << m;
    for (std::size_t i = 0; i < kernels.size(); ++i)
      EXPECT_THAT(launches[i], StartsWith("cuLaunchKernel " + kernels[i])) << m;
    call.beta = 0.5;
    call.run();
    EXPECT_EQ(events_with("cuLaunchKernel select_candidate").size(), 1U)
        << "C is read, so the candidate is selected before";
  }
}

TEST_F(Execution, CanBeCaptured) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  call.make_plan();
  core::cuda::Graph graph = nullptr;
  ASSERT_EQ(core::cuda::driver().stream_begin_capture(stream.get(), 0), 0);
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  ASSERT_EQ(core::cuda::driver().stream_end_capture(stream.get(), &graph), 0);
  core::cuda::driver().graph_destroy(graph);
  expect_no_waiting_in_capture();
}

TEST_F(Execution, ConcurrentCallsUseTheirOwnStreams) {
  constexpr int calls = 20;
  const Stream streams[2];
  const auto work = [&](const Stream& stream) {
    Call call(40, 30, 64, stream);
    call.options.scheme = "fp16x3";
    call.make_plan();
    for (int i = 0; i < calls; ++i) EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  };
  std::thread second_thread(work, std::cref(streams[1]));
  work(streams[0]);
  second_thread.join();
  const auto products_on = [](const Stream& stream) {
    std::size_t count = 0;
    for (const std::string& event : events_with("cublasGemm"))
      count += event.ends_with(stream.text()) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(products_on(streams[0]), products_on(streams[1]));
  EXPECT_EQ(products_on(streams[0]) + products_on(streams[1]), events_with("cublasGemm").size());
}

TEST_F(Execution, HostMatricesAreCopiedToTheDeviceAndBack) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.problem.memory = KINTSUGI_HOST;
  call.options.queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  call.options.engine = "cuda";
  call.options.policy = "native";
  call.make_plan();
  const int before = fake_cuda_allocations();
  fake_cuda_forget();
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(fake_cuda_allocations(), before);
  EXPECT_THAT(events_with("cuMemcpyHtoDAsync 16000 "), testing::SizeIs(1));
  EXPECT_THAT(events_with("cuMemcpyDtoHAsync 4800 "), testing::SizeIs(1));
  EXPECT_THAT(events_with("Synchronize"), Not(IsEmpty()));
  EXPECT_EQ(call.c, std::vector<float>(40 * 30, 7)) << "the fake leaves C as it was copied there, for beta";
}

}  // namespace
}  // namespace kintsugi::test
