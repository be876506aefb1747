// Tests calls on device memory that fail, over the fakes: too little memory, failed launches and products.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Execution = OverFakes;

bool only_tries_allocations(const std::string& event) {
  return event.starts_with("cuMemAllocFromPoolAsync ") || event.starts_with("cuMemPoolTrimTo 0, ");
}

TEST_F(Execution, WithoutMemoryOnlyAllocationsAreTried) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  const FakeVariable steered("FAKE_CUDA_MOST_BYTES", "4096");
  EXPECT_EQ(call.execute(), KINTSUGI_OUT_OF_MEMORY);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("m = 40, n = 30, k = 100"));
  for (const std::string& event : events()) EXPECT_TRUE(only_tries_allocations(event)) << event;
  EXPECT_EQ(call.c, std::vector<float>(40 * 30, 7));
}

TEST_F(Execution, WithoutMemoryTheReportOfThePreviousExecutionStays) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki-fp16:mode=cr";
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.make_plan();
  const FakeVariable steered("FAKE_CUDA_MOST_BYTES", "4096");
  fake_cuda_forget();
  EXPECT_EQ(call.execute(), KINTSUGI_OUT_OF_MEMORY);
  for (const std::string& event : events()) EXPECT_TRUE(only_tries_allocations(event)) << event;
}

TEST_F(Execution, AFailedAllocationHalvesTheBlocksOfC) {
  const Stream stream;
  Call call(9000, 32, 64, stream);
  call.options.scheme = "fp16x3";
  call.options.accumulator = "cublas";
  call.make_plan();
  call.run();
  const std::size_t expected_products = events_with("cublasGemm").size();
  ASSERT_GT(expected_products, 0U);
  const FakeVariable steered("FAKE_CUDA_FAIL_ALLOCATION", "1,2");
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const auto allocations = events_with("cuMemAllocFromPoolAsync");
  ASSERT_EQ(allocations.size(), 3U);
  const auto bytes = [](const std::string& event) { return std::stoll(event.substr(event.find(' '))); };
  EXPECT_LT(bytes(allocations[2]), bytes(allocations[1]));
  EXPECT_EQ(events_with("cublasGemm").size(), expected_products) << "blocks are made of whole tiles";
}

// Bits of Kintsugi's own kernels do not depend on blocks of C, so their blocks may be smaller than the 4096
// rows that blocks of cuBLAS products have.
TEST_F(Execution, BlocksOfOwnKernelsAreSmallerThanThoseOfCublas) {
  const Stream stream;
  Call call(1000, 300, 640, stream);
  call.options.scheme = "fp16x3";
  call.make_plan();
  const FakeVariable steered("FAKE_CUDA_FAIL_ALLOCATION", "1,2");
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const auto allocations = events_with("cuMemAllocFromPoolAsync");
  ASSERT_EQ(allocations.size(), 3U);
  const auto bytes = [](const std::string& event) { return std::stoll(event.substr(event.find(' '))); };
  EXPECT_EQ(bytes(allocations[1]) - bytes(allocations[2]), 2 * 512 * 640 * 2) << "slices of half of A's rows";
  EXPECT_EQ(events_with("cuLaunchKernel multiply_f32_fp16x3_64x").size(), 2U);
  EXPECT_EQ(events_with("cuLaunchKernel split_").size(), 2U) << "B is split once";
}

TEST_F(Execution, AFailedLaunchNamesItsKernel) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  call.run_in_workspace();
  const auto launches = events_with("cuLaunchKernel");
  ASSERT_GT(launches.size(), 0U);
  for (std::size_t n = 1; n <= launches.size(); ++n) {
    const FakeVariable steered("FAKE_CUDA_FAIL_LAUNCH", std::to_string(n));
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
  const FakeVariable steered("FAKE_CUDA_FAIL_PRODUCT", "2");
  EXPECT_EQ(call.execute(), KINTSUGI_DEVICE_ERROR);
  EXPECT_THAT(kintsugi_last_error(),
              AllOf(HasSubstr("cublasGemmEx"), HasSubstr("CUBLAS_STATUS_EXECUTION_FAILED")));
  EXPECT_EQ(events_with("cublasGemm").size(), 2U);
  EXPECT_EQ(fake_cuda_allocations(), before) << "the workspace is given back";
}

}  // namespace
}  // namespace kintsugi::test
