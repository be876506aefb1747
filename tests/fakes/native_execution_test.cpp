// Tests native products on device memory, over the fakes: calls of cuBLAS and kernels that check their sums.
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

// The vendor's product is one call, followed by a kernel that tests its sums: in C if beta = 0, else before
// they are added to C.
TEST_F(Execution, NativeProductsAreOneCall) {
  const FakeVariable unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
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
    EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("finish_native_f32 30x1x1")));
  }
}

// Kintsugi's own kernels compute small products, where they are expected to be faster than cuBLAS and a test
// of its sums.
TEST_F(Execution, SmallNativeProductsUseSimtKernels) {
  const Stream stream;
  const auto expect_kernels = [&](std::int64_t n, std::int64_t k, float beta, bool by_simt_kernel) {
    SCOPED_TRACE(fmt::format("n {} k {} beta {}", n, k, beta));
    Call call(n, n, k, stream);
    call.operands.beta = &beta;
    call.options.policy = "native";
    call.make_plan();
    call.run();
    EXPECT_EQ(events_with("cublasGemm").size(), by_simt_kernel ? 0U : 1U);
    EXPECT_EQ(events_with("cuLaunchKernel simt_f32").size(), by_simt_kernel ? 1U : 0U);
    EXPECT_EQ(events_with("cuLaunchKernel finish_native_f32").size(), by_simt_kernel ? 0U : 1U);
  };
  expect_kernels(128, 128, 0, true);
  expect_kernels(128, 128, 0.5F, true);
  expect_kernels(2048, 2048, 0, false);
  expect_kernels(2048, 2048, 0.5F, false);
}

// Small products with enough inner indices are divided among the thread blocks of clusters.
TEST_F(Execution, ClustersShareTilesOfSmallNativeProducts) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call call(384, 384, 384, stream);
  call.options.policy = "native";
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("cublasGemm"), IsEmpty());
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(AllOf(HasSubstr("simt_split_f32 216x1x1 "), HasSubstr("cluster=6"))));
}

// With few inner indices, reading the operands takes less time than reading the sums; their magnitudes may
// prove that no sum underflows or overflows.
TEST_F(Execution, MagnitudesOfOperandsAreReadWhereKIsShort) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  const auto kernels_of = [&](std::int64_t k, double alpha) {
    Call call(4096, 8192, k, stream);
    call.alpha = static_cast<float>(alpha);
    call.beta = 0;
    call.options.policy = "native";
    call.make_plan();
    call.run();
    EXPECT_EQ(events_with("cublasGemm").size(), 1U);
    return events_with("cuLaunchKernel");
  };
  EXPECT_THAT(kernels_of(32, 1), ElementsAre(HasSubstr("find_magnitudes_f32 256x1x1 "),
                                             HasSubstr("finish_native_f32 264x1x1 ")));
  EXPECT_THAT(kernels_of(8192, 1), ElementsAre(HasSubstr("finish_native_f32 4096x1x1 ")));
  EXPECT_THAT(kernels_of(32, std::numeric_limits<double>::infinity()),
              ElementsAre(HasSubstr("finish_native_f32 4096x1x1 ")));
}

TEST_F(Execution, NativeProductsOfRowMajorMatricesAreTheTransposedOnes) {
  const FakeVariable unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
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
  const FakeVariable unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
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
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("finish_native_f32 6x3x1")));
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
    } else {  // sums would need a pointer array of their own, so a SIMT kernel computes the product
      EXPECT_THAT(events_with("cublasGemm"), IsEmpty());
      EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("simt_f32")));
    }
  }
}

TEST_F(Execution, DeviceScalarsAreNotCopied) {
  const FakeVariable unmeasured("FAKE_CUDA_CAPABILITY", "10.0");
  const Stream stream;
  Call call(8, 6, 4, stream);
  call.options.policy = "native";
  call.problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("cublasGemm"), ElementsAre(HasSubstr("alpha=1 beta=0 ")))
      << "the kernel that adds the sums to C reads alpha and beta";
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr("finish_native_f32")));
  EXPECT_THAT(events_with("cuMemcpy"), IsEmpty());
}

}  // namespace
}  // namespace kintsugi::test
