// Tests shapes, leading dimensions and alignments of calls on device memory.
#include <algorithm>
#include <limits>
#include <random>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

template <class T>
void expect_all_shapes(const std::string& scheme, const std::string& policy) {
  std::mt19937_64 random(std::random_device{}());
  for (std::int64_t size = 1; size <= 130; size += 1 + static_cast<std::int64_t>(random() % 9)) {
    for (int op = 0; op < 4; ++op) {
      GemmCase test{.m = size,
                    .n = 131 - size,
                    .k = 1 + static_cast<std::int64_t>(random() % 130),
                    .op_a = static_cast<kintsugi_op>(op % 2),
                    .op_b = static_cast<kintsugi_op>(op / 2)};
      test.layout = static_cast<kintsugi_layout>(random() % 2);
      test.pad_a = test.pad_b = test.pad_c = static_cast<std::int64_t>(random() % 4);
      test.scheme = scheme;
      test.policy = policy;
      SCOPED_TRACE(describe(test));
      GemmDataOf<T> data(test);
      DeviceGemm<T>(data, {.offset = random() % 2}).run_well();
      expect_accurate(data, static_cast<double>(test.k) + 40);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(DeviceShapes, Fp16x3IsAccurateInSmallCases) { expect_all_shapes<float>("fp16x3-wide", ""); }
TEST(DeviceShapes, NativeIsAccurateInSmallCases) {
  expect_all_shapes<float>("", "native");
  expect_all_shapes<double>("", "native");
}
// Compares with the engine cpu: both round sums of 2 k products of parts of at most 1.
TEST(DeviceShapes, NativeComplexAgreesWithTheEngineCpuInSmallCases) {
  std::mt19937_64 random(std::random_device{}());
  for (const std::int64_t m : {1, 3, 64}) {
    for (const std::int64_t n : {1, 5, 33}) {
      GemmCase test{.m = m, .n = n, .k = 1 + static_cast<std::int64_t>(random() % 130)};
      test.op_a = static_cast<kintsugi_op>(random() % 3);
      test.op_b = static_cast<kintsugi_op>(random() % 3);
      test.layout = static_cast<kintsugi_layout>(random() % 2);
      test.alpha_im = 0.5;
      test.policy = "native";
      SCOPED_TRACE(describe(test));
      GemmDataOf<std::complex<double>> on_device(test);
      DeviceGemm<std::complex<double>>(on_device).run_well();
      test.engine = "cpu";
      GemmDataOf<std::complex<double>> on_host(test);
      on_host.run_well();
      const auto products = 2.0 * static_cast<double>(test.k);
      for (std::size_t i = 0; i < on_host.result().size(); ++i)
        ASSERT_LE(std::abs(on_device.result()[i] - on_host.result()[i]),
                  4 * (products + 4) * products * 0x1p-53);
    }
  }
}

TEST(DeviceShapes, Ozaki2IsAccurateInSmallCases) { expect_all_shapes<double>("ozaki2:moduli=16", ""); }

// Sizes are those of a block of C for cuBLAS products, and one more and one less.
TEST(DeviceShapes, SizesAroundTheLargestBlockAreAccurate) {
  for (const std::int64_t size : {4095, 4096, 4097}) {
    for (const bool wide : {false, true}) {
      GemmCase test{.m = wide ? 130 : size, .n = wide ? size : 67, .k = 70, .pad_c = 1, .scheme = "fp16x3"};
      SCOPED_TRACE(describe(test));
      GemmDataOf<float> data(test);
      DeviceGemm<float>(data).run_well();
      expect_accurate(data, 120);
    }
  }
}

TEST(DeviceShapes, EmptyProductsLeaveOrScaleC) {
  for (const std::string policy : {"native", "emulate"}) {
    for (GemmCase test : {GemmCase{.m = 0, .n = 5, .k = 4}, GemmCase{.m = 5, .n = 0, .k = 4},
                          GemmCase{.m = 3, .n = 4, .k = 5, .batch = 0}}) {
      test.policy = policy;
      GemmDataOf<float> data(test);
      DeviceGemm<float>(data).run_well();
    }
    for (const double beta : {0.0, 1.0, 0.5}) {
      GemmCase test{.m = 7, .n = 3, .k = 0, .batch = 2, .beta = beta, .policy = policy};
      for (const bool alpha_is_zero : {false, true}) {
        if (alpha_is_zero) {
          test.k = 9;
          test.alpha = 0;
          test.distribution = "uniform";
        }
        for (const bool device_scalars : {false, true}) {
          if (alpha_is_zero && device_scalars && policy == "native") continue;  // cuBLAS reads A and B then
          GemmDataOf<float> data(test);
          if (alpha_is_zero)
            std::fill(data.raw_a().begin(), data.raw_a().end(), std::numeric_limits<float>::quiet_NaN());
          const auto before = data.result();
          DeviceGemm<float>(data, {.device_scalars = device_scalars}).run_well();
          const auto after = data.result();
          for (std::size_t i = 0; i < before.size(); ++i)
            ASSERT_EQ(after[i], beta == 0 ? 0.0F : static_cast<float>(beta) * before[i]) << describe(test);
        }
      }
    }
  }
}

// Leading dimensions are larger than 2^31 elements; each matrix has two columns.
TEST(DeviceShapes, LeadingDimensionsOver2To31AreRight) {
  constexpr std::int64_t ld = (std::int64_t{1} << 31) + 13;
  for (const char* policy : {"emulate", "native"}) {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = 5;
    problem.n = 2;
    problem.k = 2;
    problem.lda = problem.ldb = problem.ldc = ld;
    problem.memory = KINTSUGI_DEVICE;
    const std::size_t count = static_cast<std::size_t>(ld) + 5;
    const DeviceArray<float> a(count);
    const DeviceArray<float> b(count);
    const DeviceArray<float> c(count);
    const std::vector<float> first{1, 2, 3, 4, 5};
    for (const auto* array : {&a, &b}) {
      core::cuda::copy_to_device({}, array->data(), first.data(), 5 * sizeof(float));
      core::cuda::copy_to_device({}, array->data() + ld, first.data(), 5 * sizeof(float));
    }
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.policy = policy;
    const float alpha = 1, beta = 0;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &alpha;
    operands.beta = &beta;
    operands.a = a.data();
    operands.b = b.data();
    operands.c = c.data();
    ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    for (const std::int64_t column : {std::int64_t{0}, ld}) {
      std::vector<float> result(5);
      core::cuda::copy_to_host({}, result.data(), c.data() + column, 5 * sizeof(float));
      core::cuda::synchronize(core::Queue{});
      EXPECT_EQ(result, (std::vector<float>{3, 6, 9, 12, 15})) << policy;  // b is (1, 2) in both columns
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
