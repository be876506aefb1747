// Calls of the C ABI on device memory, over the fakes: what is put into the stream, in which order, with
// which arguments, and what becomes of failures. Nothing is computed here; tests/gpu has the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Execution = OverFakes;

TEST_F(Execution, WithAWorkspaceNothingIsAllocatedAndNothingWaits) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.run_in_workspace();
  EXPECT_THAT(events_with("Memcpy"), IsEmpty());
}

TEST_F(Execution, WithAHandleNothingIsAllocatedAndNothingWaitsEither) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.options.policy = "emulate";
  call.run_in_workspace();
  std::vector<char> text(1 << 16);
  ASSERT_EQ(kintsugi_report(call.handle, text.data(), text.size(), nullptr), KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("Synchronize"), Not(IsEmpty())) << "a report is read when it is there";
}

TEST_F(Execution, WithoutAWorkspaceTheStreamAllocatesAndFrees) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  const int before = fake_cuda_allocations();
  call.run();
  EXPECT_EQ(fake_cuda_allocations(), before);
  const auto all = events();
  ASSERT_GE(all.size(), 2U);
  EXPECT_THAT(all.front(), HasSubstr("cuMemAllocAsync "));
  EXPECT_THAT(all.back(), HasSubstr("cuMemFreeAsync "));
  EXPECT_EQ(events_with("cuMemAllocAsync").size(), 1U);
}

// fp16x3: the cross products, then hi * hi, every 64 of k into one sum outside.
TEST_F(Execution, TermsComeInTheSchedulesOrder) {
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

// On Hopper: one split, though A lies the other way than B, and one launch from slices to C; whatever the
// tiles, two blocks of threads for each. 24 panels of A, each a cluster of 8 blocks, and 4 of 512 vectors of
// B for each block.
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
              ElementsAre(StartsWith("cuLaunchKernel split_columns_float_fp16 320x1x1 threads=128 "),
                          StartsWith("cuLaunchKernel fp16_rescaled_small_tiles_32 78x1x1 threads=160 ")));
}

// Without clusters one operand after the other, in kernels of any device.
TEST_F(Execution, WithoutClustersOperandsThatLieUnlikeAreTwoLaunches) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const Steered older("FAKE_CUDA_CAPABILITY", "8.0");
  const Stream stream;
  Call call(300, 400, 1000, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  call.run();
  const auto splits = events_with("cuLaunchKernel split_");
  EXPECT_THAT(splits, ElementsAre(StartsWith("cuLaunchKernel split_rows_float_fp16 128x1x1 threads=128 "),
                                  StartsWith("cuLaunchKernel split_tiles_float_fp16 24x1x1 threads=256 ")));
}

// Tiles of 20 x 27 on 66 pairs of SMs: eight waves, and twelve tiles in parts.
TEST_F(Execution, CountersOfSharedTilesAreClearedBefore) {
  const Stream stream;
  Call call(5120, 5120, 2048, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  call.run();
  EXPECT_EQ(events_with("cuLaunchKernel clear_bytes").size(), 1U);
  EXPECT_THAT(events_with("cuLaunchKernel").back(),
              StartsWith("cuLaunchKernel fp16_terms_192 132x1x1 threads=384 "));
  const std::string all = fake_cuda_events();
  EXPECT_LT(all.find("cuLaunchKernel clear_bytes"), all.find("cuLaunchKernel fp16_terms"));
}

// Weights are prepared before anybody knows for how many rows: their slices are those that auto takes for
// more of them.
TEST_F(Execution, WhatIsPreparedUnderAutoIsWhatAutoTakes) {
  const Steered measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call one(1, 4096, 4096, stream);
  one.make_plan();
  fake_cuda_forget();
  const Prepared weights(one, KINTSUGI_B);
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr(" find_ranges "), HasSubstr(" split_rows_float_fp16 "),
                          HasSubstr(" summarize_ranges ")));
  one.operands.prepared_b = weights.get();
  one.run();
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr(" finish_native_f32 ")))
      << "one row is the vendor's all the same";
  Call many(64, 4096, 4096, stream);
  many.operands.prepared_b = weights.get();
  many.beta = 0;
  fake_cuda_forget();
  ASSERT_EQ(kintsugi_gemm(nullptr, &many.problem, &many.options, &many.operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr("_fp16_with_depth "), HasSubstr(" fp16_rescaled_small_tiles_"),
                          HasSubstr(" select_candidate "), HasSubstr(" simt_f32_32 ")));
  many.beta = 0.5;
  fake_cuda_forget();
  ASSERT_EQ(kintsugi_gemm(nullptr, &many.problem, &many.options, &many.operands), KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr("_fp16_with_depth "), HasSubstr(" select_candidate "),
                          HasSubstr(" fp16_rescaled_small_tiles_"), HasSubstr(" simt_f32_32 ")))
      << "C is read, so that it is not written before the selection";
  many.operands.prepared_b = nullptr;
  fake_cuda_forget();
  ASSERT_EQ(kintsugi_gemm(nullptr, &many.problem, &many.options, &many.operands), KINTSUGI_SUCCESS);
  EXPECT_EQ(events_with("cublasGemm").size(), 1U);
}

// Of any length, prepared by a plan that does not know of it: slices of the candidate that prepared operands
// have under auto.
TEST_F(Execution, WhatIsPreparedUnderAutoIsNeverTheQuickCandidates) {
  const Steered measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  for (const std::int64_t n : {1024, 2048, 4096}) {
    Call call(n, n, n, stream);
    call.make_plan();
    const Prepared weights(call, KINTSUGI_B);
    call.operands.prepared_b = weights.get();
    fake_cuda_forget();
    ASSERT_EQ(kintsugi_gemm(nullptr, &call.problem, &call.options, &call.operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(events_with("cuLaunchKernel fp16_rescaled_").size(), 1U) << n;
    EXPECT_EQ(events_with("cuLaunchKernel fp16_").size(), 1U) << n;
    EXPECT_EQ(events_with("cuLaunchKernel split_").size(), n == 1024 ? 1U : 2U)
        << "of the other operand, " << n;
  }
}

// On another candidate, weights would be split again.
TEST_F(Execution, FewVectorsBesideWeightsHaveOneEmulation) {
  const Steered measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  for (const std::int64_t few : {32, 128, 129}) {
    for (const bool prepares_b : {true, false}) {
      Call call(prepares_b ? few : 8192, prepares_b ? 8192 : few, 8192, stream);
      call.make_plan();
      const Prepared weights(call, prepares_b ? KINTSUGI_B : KINTSUGI_A);
      (prepares_b ? call.operands.prepared_b : call.operands.prepared_a) = weights.get();
      fake_cuda_forget();
      ASSERT_EQ(kintsugi_gemm(nullptr, &call.problem, &call.options, &call.operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      EXPECT_EQ(events_with("cuLaunchKernel bf16_").size(), few <= 128 ? 0U : 1U)
          << few << ", B: " << prepares_b;
      EXPECT_EQ(events_with("cuLaunchKernel simt_f32_").size(), 1U) << few << ", B: " << prepares_b;
    }
  }
}

// Slices of another scheme would have to be made again, so that the call takes the time of one without them.
TEST_F(Execution, AutoDoesNotCountOnSlicesOfOtherSchemes) {
  const Steered measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call call(64, 4096, 4096, stream);
  for (const char* scheme : {"fp16x3", "bf16x6"}) {
    Call other(64, 4096, 4096, stream);
    other.options.scheme = scheme;
    other.make_plan();
    const Prepared weights(other, KINTSUGI_B);
    call.operands.prepared_b = weights.get();
    fake_cuda_forget();
    ASSERT_EQ(kintsugi_gemm(nullptr, &call.problem, &call.options, &call.operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(events_with("cublasGemm").size(), 1U) << scheme;
  }
}

// Of a device that was never measured nothing is emulated, and so nothing split.
TEST_F(Execution, ElsewhereAutoPreparesNothing) {
  const Stream stream;
  Call call(128, 4096, 4096, stream);
  call.make_plan();
  fake_cuda_forget();
  const Prepared weights(call, KINTSUGI_B);
  EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
}

// One call, and a look at its sums: in C where beta = 0, else before they are added to it.
TEST_F(Execution, NativeProductsAreOneCall) {
  const Steered unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
  for (const float beta : {0.0F, 0.5F}) {
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.operands.beta = &beta;
    call.options.policy = "native";
    call.make_plan();
    call.run();
    EXPECT_THAT(events_with("cublasGemm"),
                ElementsAre(fmt::format(
                    "cublasGemmEx op_a=0 op_b=0 m=40 n=30 k=100 type=0 result=0 compute=68 lda=40 "
                    "ldb=100 ldc=40 alpha={} beta=0 {}",
                    beta == 0 ? 2 : 1, stream.text())));
    EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("finish_native_f32 1x1x1")));
  }
}

// Where our own kernels are expected to be quicker than cuBLAS's and a look at its sums, they compute the
// product: small ones, and short updates of a large C, whose sums would go through memory once more.
TEST_F(Execution, QuickNativeProductsAreOurOwnKernels) {
  const Stream stream;
  const auto expect_way = [&](std::int64_t n, std::int64_t k, float beta, bool own) {
    SCOPED_TRACE(fmt::format("n {} k {} beta {}", n, k, beta));
    Call call(n, n, k, stream);
    call.operands.beta = &beta;
    call.options.policy = "native";
    call.make_plan();
    call.run();
    EXPECT_EQ(events_with("cublasGemm").size(), own ? 0U : 1U);
    EXPECT_EQ(events_with("cuLaunchKernel simt_f32").size(), own ? 1U : 0U);
    EXPECT_EQ(events_with("cuLaunchKernel finish_native_f32").size(), own ? 0U : 1U);
  };
  expect_way(128, 128, 0, true);
  expect_way(128, 128, 0.5F, true);
  expect_way(2048, 2048, 0, false);
  expect_way(2048, 2048, 0.5F, false);
  expect_way(4096, 64, 0.5F, true);
}

TEST_F(Execution, NativeProductsOfRowMajorMatricesAreTheTransposedOnes) {
  const Steered unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "native";
  call.problem.layout = KINTSUGI_ROW_MAJOR;
  call.problem.op_b = KINTSUGI_OP_T;
  call.problem.lda = call.problem.ldb = 100;
  call.problem.ldc = 30;
  call.make_plan();
  call.run();
  EXPECT_THAT(
      events_with("cublasGemm"),
      ElementsAre(HasSubstr("cublasGemmEx op_a=1 op_b=0 m=30 n=40 k=100 type=0 result=0 compute=68 lda=100 "
                            "ldb=100 ldc=30 ")));
}

TEST_F(Execution, NativeBatchesAreOneCall) {
  const Steered unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
  const Stream stream;
  Call call(8, 6, 4, stream);
  call.options.policy = "native";
  call.problem.batch_count = 3;
  call.problem.stride_a = std::int64_t{5} << 32;  // only the device would read there
  call.problem.stride_b = 0;
  call.problem.stride_c = 48;
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("cublasGemm"), ElementsAre(AllOf(HasSubstr("cublasGemmStridedBatchedEx "),
                                                           HasSubstr(" strides=21474836480,0,48 count=3 "))));
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("finish_native_f32 1x3x1")));
  Call pointers(8, 6, 4, stream);
  pointers.options.policy = "native";
  pointers.problem.batch_count = 3;
  pointers.problem.batch_kind = KINTSUGI_BATCH_POINTERS;
  pointers.make_plan();
  for (const float beta : {0.0F, 0.5F}) {
    pointers.operands.beta = &beta;
    fake_cuda_forget();
    ASSERT_EQ(pointers.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    if (beta == 0) {
      EXPECT_THAT(events_with("cublasGemm"),
                  ElementsAre(AllOf(HasSubstr("cublasGemmBatchedEx "), HasSubstr(" count=3 "))));
    } else {  // there are no pointers to sums
      EXPECT_THAT(events_with("cublasGemm"), IsEmpty());
      EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("simt_f32")));
    }
  }
}

TEST_F(Execution, ScalarsStayOnTheDevice) {
  const Steered unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
  const Stream stream;
  Call call(8, 6, 4, stream);
  call.options.policy = "native";
  call.problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("cublasGemm"), ElementsAre(HasSubstr("alpha=1 beta=0 ")))
      << "the kernel behind it knows them";
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("finish_native_f32")));
  EXPECT_THAT(events_with("cuMemcpy"), IsEmpty());
}

// ---------------------------------------------------------------- failures

TEST_F(Execution, WithoutMemoryNothingIsDone) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  const Steered steered("FAKE_CUDA_MOST_BYTES", "4096");
  EXPECT_EQ(call.execute(), KINTSUGI_OUT_OF_MEMORY);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("m = 40, n = 30, k = 100"));
  for (const std::string& event : events()) EXPECT_THAT(event, HasSubstr("cuMemAllocAsync "));
  EXPECT_EQ(call.c, std::vector<float>(40 * 30, 7));
}

TEST_F(Execution, LessMemoryMakesSmallerBlocks) {
  const Stream stream;
  Call call(9000, 32, 64, stream);
  call.options.scheme = "fp16x3";
  call.options.accumulator = "cublas";
  call.make_plan();
  call.run();
  const std::size_t whole = events_with("cublasGemm").size();
  ASSERT_GT(whole, 0U);
  const Steered steered("FAKE_CUDA_FAIL_ALLOCATION", "1");
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const auto allocations = events_with("cuMemAllocAsync");
  ASSERT_EQ(allocations.size(), 2U);
  const auto bytes = [](const std::string& event) { return std::stoll(event.substr(event.find(' '))); };
  EXPECT_LT(bytes(allocations[1]), bytes(allocations[0]));
  EXPECT_EQ(events_with("cublasGemm").size(), whole) << "blocks are made of whole tiles";
}

// Bits of own products depend on no tile, so that a call far below the vendor's 4096 has smaller blocks too.
TEST_F(Execution, OwnProductsHaveSmallerBlocksThanTheVendors) {
  const Stream stream;
  Call call(1000, 300, 640, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  const Steered steered("FAKE_CUDA_FAIL_ALLOCATION", "1");
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const auto allocations = events_with("cuMemAllocAsync");
  ASSERT_EQ(allocations.size(), 2U);
  const auto bytes = [](const std::string& event) { return std::stoll(event.substr(event.find(' '))); };
  EXPECT_EQ(bytes(allocations[0]) - bytes(allocations[1]), 2 * 512 * 640 * 2) << "slices of half of A's rows";
  EXPECT_EQ(events_with("cuLaunchKernel fp16_small_tiles").size(), 2U);
  EXPECT_EQ(events_with("cuLaunchKernel split_").size(), 2U) << "B is split once";
}

// Slices of a prepared batch lie behind each other: one launch splits them, and one multiplies all items.
TEST_F(Execution, PreparedBatchesAreOneLaunch) {
  const Stream stream;
  Call call(64, 96, 128, stream);
  call.problem.batch_count = 5;
  call.problem.stride_a = 64 * 128;
  call.problem.stride_b = 128 * 96;
  call.problem.stride_c = 64 * 96;
  call.options.scheme = "fp16x3";
  call.make_plan();
  fake_cuda_forget();
  const Prepared weights(call, KINTSUGI_B);
  call.operands.prepared_b = weights.get();
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr(" find_ranges 6x5x1 "), HasSubstr("x5x1 "),
                                                         HasSubstr(" summarize_ranges 5x1x1 ")));
  fake_cuda_forget();
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(AllOf(HasSubstr(" split_"), HasSubstr("x5x1 ")), HasSubstr(" fp16_small_tiles_")));
}

TEST_F(Execution, AFailedLaunchNamesItsKernel) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  call.run_in_workspace();
  const auto launches = events_with("cuLaunchKernel");
  ASSERT_GT(launches.size(), 0U);
  for (std::size_t n = 1; n <= launches.size(); ++n) {
    const Steered steered("FAKE_CUDA_FAIL_LAUNCH", std::to_string(n));
    EXPECT_EQ(call.execute(), KINTSUGI_DEVICE_ERROR);
    const std::string kernel = launches[n - 1].substr(launches[n - 1].find(' ') + 1);
    EXPECT_THAT(kintsugi_last_error(),
                AllOf(HasSubstr(kernel.substr(0, kernel.find(' '))), HasSubstr("CUDA_ERROR_LAUNCH_FAILED")));
    EXPECT_EQ(events_with("cuLaunchKernel").size(), n) << "nothing follows a failed launch";
  }
}

TEST_F(Execution, AFailedProductIsADeviceError) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.options.accumulator = "cublas";
  call.make_plan();
  const int before = fake_cuda_allocations();
  const Steered steered("FAKE_CUDA_FAIL_PRODUCT", "2");
  EXPECT_EQ(call.execute(), KINTSUGI_DEVICE_ERROR);
  EXPECT_THAT(kintsugi_last_error(),
              AllOf(HasSubstr("cublasGemmEx"), HasSubstr("CUBLAS_STATUS_EXECUTION_FAILED")));
  EXPECT_EQ(events_with("cublasGemm").size(), 2U);
  EXPECT_EQ(fake_cuda_allocations(), before) << "the workspace is given back";
}

// ---------------------------------------------------------------- graphs, threads, host matrices

TEST_F(Execution, IsCaptured) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  call.make_plan();
  core::cuda::Graph graph = nullptr;
  ASSERT_EQ(core::cuda::driver().stream_begin_capture(stream.get(), 0), 0);
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  ASSERT_EQ(core::cuda::driver().stream_end_capture(stream.get(), &graph), 0);
  expect_no_waiting();
}

TEST_F(Execution, ThreadsKeepToTheirStreams) {
  constexpr int calls = 20;
  const Stream streams[2];
  const auto work = [&](const Stream& stream) {
    Call call(40, 30, 64, stream);
    call.options.scheme = "fp16x3";
    call.make_plan();
    for (int i = 0; i < calls; ++i) EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  };
  std::thread other(work, std::cref(streams[1]));
  work(streams[0]);
  other.join();
  const auto on_one = [](const Stream& stream) {
    std::size_t count = 0;
    for (const std::string& event : events_with("cublasGemm"))
      count += event.ends_with(stream.text()) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(on_one(streams[0]), on_one(streams[1]));
  EXPECT_EQ(on_one(streams[0]) + on_one(streams[1]), events_with("cublasGemm").size());
}

TEST_F(Execution, HostMatricesGoThereAndBack) {
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
