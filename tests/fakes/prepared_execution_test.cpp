// Prepared operands of calls on device memory, over the fakes: which slices they have, and which candidates
// run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Execution = OverFakes;

// Weights are prepared before the number of rows is known: their slices are those that auto takes for many.
TEST_F(Execution, AutoPreparesSlicesOfItsOwnCandidate) {
  const Steered measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call one(1, 4096, 4096, stream);
  one.make_plan();
  fake_cuda_forget();
  const Prepared weights(one, KINTSUGI_B);
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr(" find_ranges "), HasSubstr(" split_rows_float_fp16 "),
                          HasSubstr(" clear_bytes "), HasSubstr(" summarize_ranges ")));
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
                          HasSubstr(" select_or_simt_f32_32 ")));
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

// A plan that does not know of the preparation prepares an operand of any length: it has the slices of the
// candidate that prepared operands have under auto.
TEST_F(Execution, AutoNeverPreparesSlicesOfTheFirstCandidate) {
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

// Weights would be split again for another candidate.
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

// No device of the architecture was measured: nothing is emulated, so nothing is split.
TEST_F(Execution, ElsewhereAutoPreparesNothing) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const Steered other("FAKE_CUDA_CAPABILITY", "8.0");
  const Stream stream;
  Call call(128, 4096, 4096, stream);
  call.make_plan();
  fake_cuda_forget();
  const Prepared weights(call, KINTSUGI_B);
  EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
}

// Slices of a prepared batch are stored contiguously: one launch splits them, and one multiplies all items.
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
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr(" find_ranges 6x5x1 "), HasSubstr("x5x1 "), HasSubstr(" clear_bytes "),
                          HasSubstr(" summarize_ranges 1x5x1 ")));
  fake_cuda_forget();
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(AllOf(HasSubstr(" split_"), HasSubstr("x5x1 ")), HasSubstr(" fp16_small_tiles_")));
}

}  // namespace
}  // namespace kintsugi::test
