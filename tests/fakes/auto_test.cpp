// Tests plans under the policy auto: an emulation or native, by the expected times of the device's profile.
#include <array>
#include <thread>

#include "fakes/device_plan.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

TEST_F(DevicePlan, AutoAndNativeAreTheVendorsProduct) {
  for (const char* policy : {"auto", "native"}) {
    PlannedCall call(64, 64, 4096, stream_);
    call.options.policy = policy;
    const json plan = planned(call);
    EXPECT_EQ(schemes(plan), Names{"native"});
    EXPECT_EQ(plan.at("engine"), "cuda");
    EXPECT_EQ(plan.at("problem").at("memory"), "device");
  }
}

// The times of the H200's profile decide.
TEST_F(DevicePlan, AutoEmulatesIfThatIsFaster) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const auto planned_for = [&](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                               kintsugi_type type = KINTSUGI_F32) {
    PlannedCall call(m, n, k, stream_);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
    call.problem.batch_count = batch;
    call.problem.stride_a = m * k;
    call.problem.stride_b = k * n;
    call.problem.stride_c = m * n;
    return schemes(planned(call));
  };
  const Names direct{"bf16x6-direct"};
  for (const std::int64_t n : {128, 256}) EXPECT_EQ(planned_for(n, n, n, 1), Names{"native"}) << n;
  for (const std::int64_t n : {384, 512, 768, 896, 1024}) EXPECT_EQ(planned_for(n, n, n, 1), direct) << n;
  for (const std::int64_t n : {1280, 1536})
    EXPECT_EQ(planned_for(n, n, n, 1), (Names{"fp16x3-wide", "bf16x6", "native"}))
        << n << ": each further candidate costs launches";
  EXPECT_EQ(planned_for(96, 4096, 4096, 1), direct);
  EXPECT_EQ(planned_for(256, 4096, 4096, 1), (Names{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  EXPECT_EQ(planned_for(64, 8192, 8192, 1), direct)
      << "splitting B alone takes as long as the native product";
  EXPECT_EQ(planned_for(128, 128, 128, 64), direct);
  EXPECT_EQ(planned_for(4096, 4096, 4096, 1), (Names{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  EXPECT_EQ(planned_for(2048, 2048, 2048, 1), (Names{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  EXPECT_EQ(planned_for(512, 512, 512, 64), direct);
  EXPECT_EQ(planned_for(1024, 1024, 1024, 1, KINTSUGI_C32), Names{"native"});
  EXPECT_EQ(planned_for(1280, 1280, 1280, 1, KINTSUGI_C32).size(), 4U);
  EXPECT_EQ(
      planned_for(4096, 4096, 4096, 1, KINTSUGI_C32),
      (Names{"ozaki2:moduli=8:scale=norm", "ozaki2:moduli=10:scale=norm", "ozaki2:moduli=16", "native"}));
}

// The times of a device without a profile are those of the nearest one, scaled, so that the gain has to be
// large.
TEST_F(DevicePlan, AutoWantsALargerGainOnADeviceWithoutAProfile) {
  const auto planned_for = [&](std::int64_t n) {
    PlannedCall call(n, n, n, stream_);
    return schemes(planned(call));
  };
  const auto first_emulated = [&] {
    std::int64_t n = 512;
    while (planned_for(n) == Names{"native"}) n += 16;
    return n;
  };
  const auto words = [&] {
    PlannedCall call(512, 512, 512, stream_);
    return planned(call).at("words").dump();
  };
  EXPECT_THAT(words(), testing::HasSubstr("expected times not measured"));
  const std::int64_t not_measured = first_emulated();
  EXPECT_LE(not_measured, 1536);
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  EXPECT_LT(first_emulated(), not_measured);
  EXPECT_THAT(words(), testing::Not(testing::HasSubstr("not measured")));
}

// A single candidate accepts by mean depth too, since the native SIMT kernel after it is slower than the
// vendor's.
TEST_F(DevicePlan, ASingleCandidateUnderAutoAcceptsByMeanDepth) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  Call prepared(32, 8192, 8192, stream_);
  prepared.problem.prepared_b = 1;
  const json plan = planned(prepared);
  ASSERT_EQ(schemes(plan), (Names{"fp16x3-wide", "native"}));
  EXPECT_GT(plan.at("candidates").at(0).at("largest_mean_depth"), 20);
}

// Elements (rand - 0.5) exp(8 randn) lie 57 binades below the largest of their vector on average, in the
// deepest of some thousand vectors.
TEST_F(DevicePlan, TheWidestCandidateAcceptsDeepOperands) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  for (const std::int64_t n : {1280, 1536, 2048, 8192}) {
    PlannedCall call(n, n, n, stream_);
    const json plan = planned(call);
    const json& widest = plan.at("candidates").at(plan.at("candidates").size() - 2);
    EXPECT_EQ(widest.at("scheme"), "bf16x6") << n;
    EXPECT_GE(widest.at("largest_mean_depth"), 2 * 57) << n;
  }
}

// Weights of an inference: the time of their split is not counted if the plan says that they will be
// prepared. Then few rows are emulated even where cuBLAS is expected to be as fast, by slices where these are
// expected to take less time than splits inside the product.
TEST_F(DevicePlan, AutoCountsNoSplitOfPreparedOperands) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const auto first_candidate = [&](std::int64_t rows, std::int64_t n, bool transposed, bool prepared) {
    PlannedCall call(transposed ? n : rows, transposed ? rows : n, n, stream_);
    (transposed ? call.problem.prepared_a : call.problem.prepared_b) = prepared ? 1 : 0;
    return schemes(planned(call)).front();
  };
  for (const bool transposed : {false, true}) {
    for (const std::int64_t n : a_part_of<std::int64_t>({4096, 8192})) {
      EXPECT_EQ(first_candidate(1, n, transposed, true), "native")
          << "one row is bound by memory, and two slices have as many bytes as FP32 weights";
      for (const std::int64_t rows : {2, 4, 8, 16, 32, 64, 128}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, weights of " << n);
        EXPECT_NE(first_candidate(rows, n, transposed, false), "fp16x3-wide") << "weights would be split";
        EXPECT_THAT(first_candidate(rows, n, transposed, true),
                    testing::AnyOf("fp16x3-wide", "bf16x6-direct"));
      }
      if (n == 8192) EXPECT_EQ(first_candidate(64, n, transposed, true), "fp16x3-wide");
    }
  }
}

TEST_F(DevicePlan, ComplexWeightsCountAsPreparedToo) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const auto planned_for = [&](std::int64_t m, std::int64_t n, bool prepared) {
    PlannedCall call(m, n, n, stream_);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_C32;
    call.problem.prepared_b = prepared ? 1 : 0;
    return schemes(planned(call));
  };
  const Names chain{"ozaki2:moduli=8:scale=norm", "ozaki2:moduli=10:scale=norm", "ozaki2:moduli=16",
                    "native"};
  EXPECT_EQ(planned_for(128, 4096, false), Names{"native"});
  EXPECT_EQ(planned_for(128, 4096, true), chain);
  EXPECT_EQ(planned_for(128, 8192, true), chain) << "few rows too";
}

// The recombination has to read C for an update, which takes it longer than cuBLAS. `native_elsewhere` is
// ignored: native products are cuBLAS's anyway.
TEST_F(DevicePlan, AutoEmulatesUpdatesOfCLater) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  for (const bool native_elsewhere : {false, true}) {
    const auto first_emulated = [&](bool adds_to_c) {
      for (std::int64_t k = 256; k <= 8192; k += 64) {
        PlannedCall call(8192, 8192, k, stream_);
        kintsugi_problem& problem = call.problem;
        problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
        problem.adds_to_c = adds_to_c ? 1 : 0;
        problem.native_elsewhere = native_elsewhere ? 1 : 0;
        if (schemes(planned(call)) != Names{"native"}) return k;
      }
      return std::int64_t{0};
    };
    EXPECT_EQ(first_emulated(false), 704) << native_elsewhere;
    EXPECT_EQ(first_emulated(true), 768) << native_elsewhere;
  }
}

// Empty problems have no expected times; their plan is native.
TEST_F(DevicePlan, EmptyProblemsArePlanned) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  for (const kintsugi_type type : {KINTSUGI_F32, KINTSUGI_C32, KINTSUGI_F64}) {
    for (int empty = 0; empty < 4; ++empty) {
      PlannedCall call(512, 512, 4096, stream_);
      call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
      kintsugi_problem& problem = call.problem;
      *std::array{&problem.m, &problem.n, &problem.k, &problem.batch_count}[static_cast<std::size_t>(empty)] =
          0;
      EXPECT_EQ(schemes(planned(call)), Names{"native"}) << "type " << type << ", case " << empty;
    }
  }
  Call huge_batch(1, 1, 64, stream_);
  huge_batch.problem.batch_count = std::int64_t{1} << 32;
  huge_batch.problem.stride_c = 1;
  EXPECT_EQ(schemes(planned(huge_batch)), Names{"native"});
}

// The planning thread has no current context.
TEST_F(DevicePlan, ThreadsWithoutAContextCanPlan) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  std::thread([&] {
    PlannedCall call(1536, 1536, 1536, stream_);
    EXPECT_EQ(schemes(planned(call)), (Names{"fp16x3-wide", "bf16x6", "native"}));
  }).join();
}

}  // namespace
}  // namespace kintsugi::test
