// Tests prepared operands of calls on device memory, over the fakes: which slices they have, and which
// candidates run.
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

// Weights are prepared with a plan of one row, which auto computes natively; their slices are those that auto
// takes for many rows.
TEST_F(Execution, AutoPreparesTheSlicesThatManyRowsTake) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call single_row(1, 8192, 8192, stream);
  single_row.make_plan();
  fake_cuda_forget();
  const Prepared weights(single_row, KINTSUGI_B);
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr(" begin_parts "), HasSubstr(" find_ranges "), HasSubstr(" end_parts "),
                          HasSubstr(" split_f32_fp16_rows "), HasSubstr(" clear_bytes "),
                          HasSubstr(" summarize_ranges ")));
  single_row.operands.prepared_b = weights.get();
  single_row.run();
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr(" multiply_f32_simt_")))
      << "one row is computed natively, where cuBLAS may multiply an operand by alpha";
  Call many_rows(64, 8192, 8192, stream);
  many_rows.operands.prepared_b = weights.get();
  many_rows.beta = 0;
  fake_cuda_forget();
  ASSERT_EQ(kintsugi_gemm(nullptr, &many_rows.problem, &many_rows.options, &many_rows.operands),
            KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr("_fp16_with_depth_"), HasSubstr(" multiply_f32_fp16x3_wide_64x"),
                          HasSubstr(" select_or_multiply_f32_simt_32 ")));
  many_rows.beta = 0.5;
  fake_cuda_forget();
  ASSERT_EQ(kintsugi_gemm(nullptr, &many_rows.problem, &many_rows.options, &many_rows.operands),
            KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(HasSubstr("_fp16_with_depth_"), HasSubstr(" select_candidate "),
                          HasSubstr(" multiply_f32_fp16x3_wide_64x"), HasSubstr(" multiply_f32_simt_32 ")))
      << "C is read, so the candidate is selected before the product writes C";
  many_rows.operands.prepared_b = nullptr;
  fake_cuda_forget();
  ASSERT_EQ(kintsugi_gemm(nullptr, &many_rows.problem, &many_rows.options, &many_rows.operands),
            KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("cuLaunchKernel multiply_f32_direct_"), testing::SizeIs(1));
}

TEST_F(Execution, OneRowTimesPreparedWeightsIsTheVendors) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call single_row(1, 4096, 4096, stream);
  single_row.make_plan();
  const Prepared weights(single_row, KINTSUGI_B);
  single_row.operands.prepared_b = weights.get();
  single_row.alpha = 1;
  single_row.run();
  EXPECT_EQ(events_with("cublasGemm").size(), 1U);
  EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
}

// A plan without prepared operands prepares the slices of the candidate that auto takes for prepared
// operands, not those of its own first candidate.
TEST_F(Execution, AutoPreparesTheSlicesOfItsCandidateForPreparedOperands) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  for (const std::int64_t n : {1536, 2048, 4096}) {
    Call call(n, n, n, stream);
    call.make_plan();
    const Prepared weights(call, KINTSUGI_B);
    call.operands.prepared_b = weights.get();
    fake_cuda_forget();
    ASSERT_EQ(kintsugi_gemm(nullptr, &call.problem, &call.options, &call.operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(events_with("cuLaunchKernel multiply_f32_fp16x3_wide_").size(), 1U) << n;
    EXPECT_EQ(events_with("cuLaunchKernel multiply_f32_fp16x3_").size(), 1U) << n;
    EXPECT_EQ(events_with("cuLaunchKernel split_").size(), 2U)
        << "the operand that is not prepared for the first emulation, both for the second, " << n;
  }
}

// Weights would have to be split again for a second emulation.
TEST_F(Execution, FewVectorsTimesWeightsHaveOneEmulation) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
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
      EXPECT_EQ(events_with("cuLaunchKernel multiply_f32_bf16x6_").size(), few <= 128 ? 0U : 1U)
          << few << ", B: " << prepares_b;
      EXPECT_EQ(events_with("cuLaunchKernel multiply_f32_simt_").size(), 1U) << few << ", B: " << prepares_b;
    }
  }
}

// Weights prepared for another scheme would have to be split again, so the call does without them.
TEST_F(Execution, SlicesOfAnotherSchemeDoNotMakeAutoEmulate) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call call(64, 4096, 4096, stream);
  for (const char* scheme : {"fp16x3", "bf16x6"}) {
    Call prepared_for(64, 4096, 4096, stream);
    prepared_for.options.scheme = scheme;
    prepared_for.make_plan();
    const Prepared weights(prepared_for, KINTSUGI_B);
    call.operands.prepared_b = weights.get();
    fake_cuda_forget();
    ASSERT_EQ(kintsugi_gemm(nullptr, &call.problem, &call.options, &call.operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_THAT(events_with("cuLaunchKernel multiply_f32_direct_"), testing::SizeIs(1)) << scheme;
    EXPECT_THAT(events_with("cuLaunchKernel split_"), IsEmpty()) << scheme;
  }
}

// Without a profile of the architecture auto emulates nothing, so preparing splits nothing.
TEST_F(Execution, WithoutAProfileAutoPreparesNothing) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices prepared_for("8.0");
  const Stream stream;
  Call call(128, 4096, 4096, stream);
  call.make_plan();
  fake_cuda_forget();
  const Prepared weights(call, KINTSUGI_B);
  EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
}

// Slices of a prepared batch are stored contiguously: one launch splits them, and one multiplies all items.
TEST_F(Execution, PreparedBatchesAreMultipliedInOneLaunch) {
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
              ElementsAre(HasSubstr(" find_ranges 12x5x1 "), HasSubstr("x5x1 "), HasSubstr(" clear_bytes "),
                          HasSubstr(" summarize_ranges 1x5x1 ")));
  fake_cuda_forget();
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(AllOf(HasSubstr(" split_"), HasSubstr("x5x1 ")),
                                                         HasSubstr(" multiply_f32_fp16x3_64x")));
}

}  // namespace
}  // namespace kintsugi::test
