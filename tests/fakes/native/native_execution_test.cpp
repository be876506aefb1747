// Tests native products on device memory, over the fakes: calls of cuBLAS, and where a kernel
// of Kintsugi multiplies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <utility>
#include <vector>

#include "fakes/device_call.hpp"
#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Execution = OverFakes;

// The vendor's product is one call, whatever alpha and beta are: no kernel tests or adds its sums.
TEST_F(Execution, NativeProductsAreOneCall) {
  const GenericDevices unmeasured("10.0");
  for (const float beta : {0.0F, 0.5F}) {
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.operands.beta = &beta;
    call.options.policy = "native";
    call.make_plan();
    call.run();
    EXPECT_THAT(events_with("cublasGemm"),
                ElementsAre(fmt::format("cublasGemmEx op_a=0 op_b=0 m=40 n=30 k=100 type=0 result=0 "
                                        "compute=68 lda=40 ldb=100 ldc=40 alpha=2 beta={} {}",
                                        beta, stream.text())));
    EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
  }
}

// Sizes do not matter, with a profile of the device or without.
TEST_F(Execution, NativeProductsOfAllSizesAreTheVendors) {
  for (const char* name : {"NVIDIA Fake", "NVIDIA H200"}) {
    const FakeVariable device("FAKE_CUDA_NAME", name);
    const Stream stream;
    for (const std::int64_t n : {17, 128, 384, 2048}) {
      for (const float beta : {0.0F, 0.5F}) {
        SCOPED_TRACE(fmt::format("{}: n {} beta {}", name, n, beta));
        Call call(n, n, n, stream);
        call.operands.beta = &beta;
        call.options.policy = "native";
        call.make_plan();
        call.run();
        EXPECT_EQ(events_with("cublasGemm").size(), 1U);
        EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
      }
    }
  }
}

// cuBLAS multiplies operands by alpha, in place of the sums, only where a side of C has at most 16 elements
// or k is 1. There Kintsugi's kernels multiply if alpha may be any number and there is a contract.
class VendorOrKernel : public OverFakes {
 protected:
  enum class Alpha { one, minus_one, half, on_device };

  // Multiplies natively. Returns true if cuBLAS multiplied, false if a kernel of Kintsugi's did.
  template <class T>
  bool is_vendors(std::int64_t m, std::int64_t n, std::int64_t k, Alpha alpha, bool has_contract) {
    SCOPED_TRACE(fmt::format("m {} n {} k {} alpha {} contract {} type {}", m, n, k, static_cast<int>(alpha),
                             has_contract, static_cast<int>(type_of<T>())));
    Call call(m, n, k, stream_);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type_of<T>();
    (has_contract ? call.options.policy : call.options.scheme) = "native";
    if (alpha == Alpha::on_device) call.problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
    const std::vector<T> a(static_cast<std::size_t>(m * k), 3), b(static_cast<std::size_t>(k * n), 1);
    std::vector<T> c(static_cast<std::size_t>(m * n), 7);
    const T factor = alpha == Alpha::one ? 1 : alpha == Alpha::minus_one ? -1 : 0.5, zero = 0;
    call.operands.a = a.data();
    call.operands.b = b.data();
    call.operands.c = c.data();
    call.operands.alpha = &factor;
    call.operands.beta = &zero;
    call.make_plan();
    call.run();
    EXPECT_THAT(c, testing::Each(factor * static_cast<core::RealOf<T>>(3 * k)));
    const std::size_t products = events_with("cublasGemm").size();
    EXPECT_EQ(events_with("cuLaunchKernel").size(), 1 - products);
    EXPECT_EQ(events_with("_simt_").size() + events_with("_dmma_").size(), 1 - products);
    return products == 1;
  }
  template <class T>
  void expect_choices() {
    for (const auto& [m, n] :
         {std::pair{1, 40}, {40, 1}, {2, 40}, {40, 2}, {16, 40}, {40, 16}, {17, 40}, {40, 17}}) {
      for (const int k : {1, 2}) {
        const bool may_scale = std::min(m, n) <= 16 || k == 1;
        EXPECT_TRUE(is_vendors<T>(m, n, k, Alpha::one, true));
        EXPECT_TRUE(is_vendors<T>(m, n, k, Alpha::minus_one, true));
        for (const Alpha alpha : {Alpha::half, Alpha::on_device}) {
          EXPECT_EQ(is_vendors<T>(m, n, k, alpha, true), !may_scale);
          EXPECT_TRUE(is_vendors<T>(m, n, k, alpha, false)) << "scheme=native promises what cuBLAS does";
        }
      }
    }
  }

  const FakeVariable multiplies_{"FAKE_CUDA_MULTIPLY", "1"};
  const Stream stream_;
};

TEST_F(VendorOrKernel, DependsOnShapeAndAlpha) {
  for (const char* name : {"NVIDIA Fake", "NVIDIA H200"}) {
    const FakeVariable device("FAKE_CUDA_NAME", name);
    expect_choices<float>();
    expect_choices<double>();
    expect_choices<std::complex<float>>();
    expect_choices<std::complex<double>>();
  }
}

// Kernels for products of few rows with enough inner indices divide these among the thread blocks of
// clusters.
TEST_F(Execution, ClustersShareTilesOfProductsWithFewRows) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call call(16, 384, 4096, stream);
  call.options.policy = "native";
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("cublasGemm"), IsEmpty());
  EXPECT_THAT(events_with("cuLaunchKernel"),
              ElementsAre(AllOf(HasSubstr("multiply_f32_simt_64_split "), HasSubstr(" cluster="))));
}

TEST_F(Execution, NativeProductsOfRowMajorMatricesAreTheTransposedOnes) {
  const GenericDevices unmeasured("10.0");
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

// The items of a batch have one call, whether matrices are strided or an array of pointers.
TEST_F(Execution, NativeBatchesAreOneCall) {
  const GenericDevices unmeasured("10.0");
  const Stream stream;
  for (const float beta : {0.0F, 0.5F}) {
    Call call(18, 17, 4, stream);
    call.options.policy = "native";
    call.operands.beta = &beta;
    call.problem.batch_count = 3;
    call.problem.stride_a = std::int64_t{5} << 32;  // only the device would read there
    call.problem.stride_b = 0;
    call.problem.stride_c = 18 * 17;
    call.make_plan();
    call.run();
    EXPECT_THAT(events_with("cublasGemm"),
                ElementsAre(AllOf(HasSubstr("cublasGemmStridedBatchedEx "),
                                  HasSubstr(" strides=21474836480,0,306 count=3 "),
                                  HasSubstr(fmt::format(" alpha=2 beta={} ", beta)))));
    EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
    Call pointers(18, 17, 4, stream);
    pointers.options.policy = "native";
    pointers.operands.beta = &beta;
    pointers.problem.batch_count = 3;
    pointers.problem.batch_kind = KINTSUGI_BATCH_POINTERS;
    pointers.make_plan();
    pointers.run();
    EXPECT_THAT(events_with("cublasGemm"),
                ElementsAre(AllOf(HasSubstr("cublasGemmBatchedEx "), HasSubstr(" count=3 "),
                                  HasSubstr(fmt::format(" alpha=2 beta={} ", beta)))));
    EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
  }
}

// cuBLAS gets the addresses of alpha and beta in device memory.
TEST_F(Execution, DeviceScalarsAreNotCopied) {
  const GenericDevices unmeasured("10.0");
  const Stream stream;
  Call call(18, 17, 4, stream);
  call.options.policy = "native";
  call.problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
  call.make_plan();
  call.run();
  EXPECT_THAT(
      events_with("cublasGemm"),
      ElementsAre(HasSubstr(fmt::format("alpha={} beta={} ", fmt::ptr(&call.alpha), fmt::ptr(&call.beta)))));
  EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty());
  EXPECT_THAT(events_with("cuMemcpy"), IsEmpty());
}

}  // namespace
}  // namespace kintsugi::test
