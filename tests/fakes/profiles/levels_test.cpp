// Tests when a plan for a device has one of MixPert's levels, over the fakes: if one is proved for the
// accuracy, and by the costs of the profile in force.
#include <algorithm>

#include "fakes/device_plan.hpp"
#include "fakes/profiles/profile_in_force.hpp"

namespace kintsugi::test {
namespace {

using core::cuda::Costs;
using testing::HasSubstr;

constexpr const char* coarse = "1e-2";  // accuracy for which level I is proved

class Levels : public DevicePlan {
 protected:
  json planned_by(const Costs& costs, const char* accuracy, std::int64_t k = 4096,
                  const char* policy = "emulate") {
    const ProfileInForce profile(costs);
    PlannedCall call(4096, 4096, k, stream_);
    call.options.accuracy = accuracy;
    call.options.policy = policy;
    return planned(call);
  }
  Names names_by(const Costs& costs, const char* accuracy, std::int64_t k = 4096,
                 const char* policy = "emulate") {
    return schemes(planned_by(costs, accuracy, k, policy));
  }
};

const Names without_level{"fp16x3", "fp16x3-wide", "native"};

TEST_F(Levels, TheFastestProvedLevelIsTheFirstCandidateIfItPays) {
  for (const char* policy : {"emulate", "auto"}) {
    const json plan = planned_by(costs_for_levels(), coarse, 4096, policy);
    EXPECT_EQ(schemes(plan), (Names{"mixpert-1", "fp16x3-wide", "native"})) << policy;
    const json& level = plan.at("candidates").at(0);
    EXPECT_EQ(level.at("largest_dynamic_range"), 5) << "2^(5 - 12) is less than 1e-2";
    EXPECT_LE(level.at("bound_in_window").at("relative"), 1e-2);
    EXPECT_THAT(plan.at("words").dump(), HasSubstr("A and B each span"));
    EXPECT_GE(plan.at("candidates").at(1).at("largest_mean_depth"), 24)
        << "candidates after a level accept by mean depth";
  }
}

// Level I loses 2^-14 of each operand, level II 2^-14 of one of them, and level IV 2^-21. The planner takes
// the first one that is proved. Under the contract of FP32 that is mixpert-full, since the others lose more
// than 9 u in a single product.
TEST_F(Levels, OnlyProvedLevelsAreCandidates) {
  const Costs costs = costs_for_levels();
  EXPECT_EQ(names_by(costs, "3e-4").front(), "mixpert-1");
  EXPECT_EQ(names_by(costs, "2e-4", 2048).front(), "mixpert-2");
  EXPECT_EQ(names_by(costs, "1e-4", 1024).front(), "mixpert-4");
  EXPECT_EQ(names_by(costs, "fp32"), (Names{"mixpert-full", "fp16x3-wide", "bf16x6", "native"}));
  EXPECT_EQ(names_by(costs_of_h200(), "fp32"), (Names{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  EXPECT_THAT(names_by(costs, "1e-6").front(), HasSubstr("ozaki2")) << "native is not proved";
}

TEST_F(Levels, TheCostsDecideAboutTheDepthOfATile) {
  Costs costs = costs_for_levels();
  costs.weighted_tiles.conversion_32 = 0.2;
  EXPECT_EQ(names_by(costs, coarse).front(), "mixpert-1:tile=128");
}

TEST_F(Levels, OtherProgramsAreTakenWhereTheyAreFaster) {
  EXPECT_EQ(names_by(costs_of_h200(), coarse), without_level);
  Costs slow_packing = costs_for_levels();
  slow_packing.packing.rate = 0.2;  // refusals would cost more than the level saves
  EXPECT_EQ(names_by(slow_packing, coarse), without_level);
  Costs slow_products = costs_for_levels();
  slow_products.weighted_tiles.product = 1;
  EXPECT_EQ(names_by(slow_products, coarse), without_level);
}

TEST_F(Levels, AFewVectorsBesideAPreparedOperandHaveOneWideEmulation) {
  const ProfileInForce profile(costs_for_levels());
  PlannedCall call(64, 8192, 8192, stream_);
  call.problem.prepared_b = 1;
  call.options.accuracy = coarse;
  call.options.policy = "emulate";
  EXPECT_EQ(schemes(planned(call)).front(), "fp16x3-wide");
  call.problem.m = call.problem.lda = call.problem.ldc = 4096;
  EXPECT_EQ(schemes(planned(call)).front(), "mixpert-1");
}

// Other elements than FP32 have no level, nor has a product without elements.
TEST_F(Levels, OtherTypesAndEmptyProductsHaveNone) {
  const ProfileInForce profile(costs_for_levels());
  for (const kintsugi_type type : {KINTSUGI_F64, KINTSUGI_C32}) {
    PlannedCall call(2048, 2048, 2048, stream_);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
    call.options.accuracy = coarse;
    call.options.policy = "emulate";
    for (const std::string& name : schemes(planned(call)))
      EXPECT_THAT(name, testing::Not(HasSubstr("mixpert"))) << type;
  }
  PlannedCall empty(2048, 2048, 0, stream_);
  empty.problem.ldb = 1;
  empty.options.accuracy = coarse;
  EXPECT_THAT(schemes(planned(empty)), testing::Each(testing::Not(HasSubstr("mixpert"))));
}

// The batch and the costs of tests/gpu/calls/tiles_test.cpp.
TEST_F(Levels, SmallBatchesHaveOne) {
  Costs costs = costs_for_levels();
  costs.weighted_tiles.product = 0.1;  // else mixpert-full is faster, whose tiles of C have fewer columns
  for (const char* level : {"mixpert-1", "mixpert-1:tile=128"}) {
    costs.weighted_tiles.conversion_32 = std::string(level).ends_with("128") ? 0.2 : 1e-3;
    const ProfileInForce profile(costs);
    for (const int prepared_b : {0, 1}) {
      PlannedCall call(260, 190, 500, stream_);
      call.problem.batch_count = 4;
      call.problem.stride_a = 260 * 500;
      call.problem.stride_b = 500 * 190;
      call.problem.stride_c = 260 * 190;
      call.problem.prepared_b = prepared_b;
      call.options.accuracy = coarse;
      call.options.policy = "emulate";
      EXPECT_EQ(schemes(planned(call)), (Names{level, "fp16x3-wide", "native"})) << prepared_b;
    }
  }
}

// Kernels of the level pack both operands before the selection, whose ranges have mean depths, and exit early
// unless the level was selected.
TEST_F(Levels, AreExecutedAsTheFirstCandidate) {
  const ProfileInForce profile(costs_for_levels());
  Call call(1024, 1024, 1024, stream_);
  call.options.accuracy = coarse;
  call.options.policy = "emulate";
  call.beta = 0;
  call.make_plan();
  ASSERT_EQ(schemes(describe(call)).front(), "mixpert-1");
  call.bring_workspace();
  call.run();
  Names kernels;
  for (const std::string& event : events_with("cuLaunch")) {
    for (const char* name : {"find_ranges", "pack_tiles", "select_candidate", "multiply_f32_weighted_2x2",
                             "multiply_f32_failing_tiles", "multiply_f32_fp16x3", "simt"}) {
      if (event.find(name) != std::string::npos && (kernels.empty() || kernels.back() != name))
        kernels.emplace_back(name);
    }
  }
  EXPECT_THAT(kernels, testing::Contains("find_ranges"));
  const auto position = [&](const char* name) { return std::ranges::find(kernels, name) - kernels.begin(); };
  EXPECT_LT(position("find_ranges"), position("pack_tiles"));
  EXPECT_LT(position("pack_tiles"), position("select_candidate"));
  EXPECT_LT(position("select_candidate"), position("multiply_f32_failing_tiles"));
  EXPECT_LT(position("multiply_f32_failing_tiles"), position("multiply_f32_weighted_2x2"));
}

// Refusals say what the device has, and which engines have the rest.
TEST_F(Levels, ProgramsWithoutKernelsAreRefused) {
  PlannedCall call(64, 64, 64, stream_);
  call.options.scheme = "mixpert-4:exponent=pair";
  expect_refused(call, KINTSUGI_NOT_SUPPORTED,
                 "multiplies by exponent=operand alone, and scheme mixpert-4:exponent=pair asks for "
                 "exponent=pair; the engines reference and cpu have it");
  call.options.scheme = "mixpert-4:tile=256";
  expect_refused(
      call, KINTSUGI_NOT_SUPPORTED,
      "has tiles of 32, 64 and 128 inner indices, and scheme mixpert-4:tile=256 asks for tile=256; "
      "the engines reference and cpu have it");
  call.options.scheme = "mixpert-4";
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_C32;
  expect_refused(call, KINTSUGI_NOT_SUPPORTED,
                 "of real matrices alone, and the operands of scheme mixpert-4");
  call.options.scheme = "quantensor:scale=max";
  expect_refused(call, KINTSUGI_NOT_SUPPORTED,
                 "scales rows and columns by powers of two alone, and scheme quantensor:scale=max asks for "
                 "scale=max; the engines reference and cpu have it");
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices older("8.0");
  PlannedCall real(64, 64, 64, stream_);
  real.options.scheme = "mixpert-4";
  expect_refused(real, KINTSUGI_NOT_SUPPORTED, "does not multiply slices with exponents per tile here");
}

// A plan with a level is read back, so that its name must have the depth of its tiles.
TEST_F(Levels, DescriptionsAreReadBack) {
  Costs costs = costs_for_levels();
  costs.weighted_tiles.conversion_32 = 0.2;
  const ProfileInForce profile(costs);
  PlannedCall call(4096, 4096, 4096, stream_);
  call.options.accuracy = coarse;
  call.options.policy = "emulate";
  const json plan = planned(call);
  PlannedCall again(4096, 4096, 4096, stream_);
  ASSERT_EQ(kintsugi_plan_read(nullptr, plan.dump().c_str(), nullptr, &again.plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_EQ(schemes(describe(again)), schemes(plan));
  PlannedCall named(4096, 4096, 4096, stream_);
  named.options.scheme = "mixpert-1:tile=128";
  EXPECT_EQ(planned(named).at("candidates").at(0).at("program"), plan.at("candidates").at(0).at("program"));
}

// Level I is a quarter faster than fp16x3 at n = 8192, but packing and refusals cost as much unless operands
// are prepared. Level I keeps coarse tolerances only, and the other levels are slower than fp16x3.
TEST_F(Levels, ShippedCostsTakeOneForLargePreparedOperandsAlone) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const auto first = [&](std::int64_t n, int prepared_operands, const char* accuracy) {
    PlannedCall call(n, n, n, stream_);
    call.problem.prepared_b = prepared_operands > 0 ? 1 : 0;
    call.problem.prepared_a = prepared_operands > 1 ? 1 : 0;
    call.options.accuracy = accuracy;
    return schemes(planned(call)).front();
  };
  EXPECT_EQ(first(8192, 2, coarse), "mixpert-1:tile=128");
  EXPECT_EQ(first(16384, 1, coarse), "mixpert-1:tile=128");
  EXPECT_EQ(first(16384, 0, coarse), "fp16x3");
  EXPECT_EQ(first(8192, 1, coarse), "fp16x3-wide");
  EXPECT_EQ(first(2048, 2, coarse), "fp16x3-wide");
  EXPECT_EQ(first(2048, 2, "2e-4"), "fp16x3-wide") << "level I is not proved";
  EXPECT_EQ(first(8192, 2, "fp32"), "fp16x3-wide");
}

}  // namespace
}  // namespace kintsugi::test
