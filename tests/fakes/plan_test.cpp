// Plans of problems in device memory, over the fakes: what is chosen, refused, described and read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/device_call.hpp"
#include "tests/support/c_objects.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

class DevicePlan : public OverFakes {
 protected:
  json describe(const Call& call) {
    return Handle::text(
        [&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(call.plan, b, c, n); });
  }
  json planned(Call& call) {
    call.make_plan();
    return call.plan == nullptr ? json() : describe(call);
  }
  static std::vector<std::string> schemes(const json& plan) {
    std::vector<std::string> names;
    for (const json& rung : plan.at("rungs")) names.push_back(rung.at("scheme"));
    return names;
  }
  void expect_refused(Call& call, kintsugi_status status, const std::string& reason) {
    EXPECT_EQ(kintsugi_plan_create(nullptr, &call.problem, &call.options, &call.plan), status);
    EXPECT_THAT(kintsugi_last_error(), HasSubstr(reason));
  }

  const Stream stream_;
};

using Names = std::vector<std::string>;

TEST_F(DevicePlan, AutoAndNativeAreTheVendorsProduct) {
  for (const char* policy : {"auto", "native"}) {
    Call call(64, 64, 4096, stream_);
    call.options.policy = policy;
    const json plan = planned(call);
    EXPECT_EQ(schemes(plan), Names{"native"});
    EXPECT_EQ(plan.at("engine"), "cuda");
    EXPECT_EQ(plan.at("problem").at("memory"), "device");
  }
}

// The widest window of the cheapest programs, and the plain product for what is beyond it.
TEST_F(DevicePlan, EmulateIsOneEmulationAndThePlainProduct) {
  Call call(64, 64, 4096, stream_);
  call.options.policy = "emulate";
  const json plan = planned(call);
  EXPECT_EQ(schemes(plan), (Names{"fp16x3-wide:block=1024", "native"}));
  const json& rung = plan.at("rungs").at(0);
  EXPECT_EQ(rung.at("accumulator"), "cublas");
  EXPECT_EQ(rung.at("largest_span"), 28);
  EXPECT_EQ(rung.at("program").at("schedule").at("k_block"), 1024);
  EXPECT_LE(rung.at("bound_in_window").at("relative"), plan.at("contract").at("coefficient"));
  EXPECT_THAT(plan.at("words").dump(), HasSubstr("plain FP32 product"));
}

// Sums of 1024 are not proved for the contract of shorter ones.
TEST_F(DevicePlan, ShorterSumsKeepBlocksOf64) {
  Call call(64, 64, 500, stream_);
  call.options.policy = "emulate";
  EXPECT_EQ(schemes(planned(call)), (Names{"fp16x3-wide", "native"}));
}

TEST_F(DevicePlan, ComplexProductsAreOneEmbedding) {
  Call call(64, 64, 4096, stream_);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_C32;
  call.options.policy = "emulate";
  const json plan = planned(call);
  EXPECT_EQ(schemes(plan), (Names{"fp16x3-wide:block=1024", "native"}));
  EXPECT_EQ(plan.at("problem").at("type"), "c32");
  Call residues(64, 64, 64, stream_);
  residues.problem.type_a = residues.problem.type_b = residues.problem.type_c = residues.problem.type_scalar =
      KINTSUGI_C64;
  residues.options.scheme = "ozaki2";
  EXPECT_TRUE(planned(residues).at("rungs").at(0).at("program").at("split_a").at("complex_basis").is_null());
}

TEST_F(DevicePlan, DoublesAreTheVendorsUnlessASchemeIsNamed) {
  Call call(8, 8, 64, stream_);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_F64;
  call.options.policy = "emulate";
  EXPECT_EQ(schemes(planned(call)), Names{"native"});
  Call named(8, 8, 64, stream_);
  named.problem.type_a = named.problem.type_b = named.problem.type_c = named.problem.type_scalar =
      KINTSUGI_F64;
  named.options.scheme = "ozaki2";
  EXPECT_EQ(schemes(planned(named)), Names{"ozaki2"});
}

TEST_F(DevicePlan, WhatIsNotProvedIsUnreachable) {
  for (const char* accuracy : {"exact", "1e-8"}) {
    for (const char* policy : {"auto", "emulate", "native"}) {
      Call call(8, 8, 1000, stream_);
      call.options.accuracy = accuracy;
      call.options.policy = policy;
      expect_refused(call, KINTSUGI_CONTRACT_UNREACHABLE, accuracy);
    }
  }
}

TEST_F(DevicePlan, SchemesWithoutKernelsAreRefused) {
  const std::pair<const char*, const char*> refused[] = {{"superaccumulator", "has no kernels"},
                                                         {"ozaki-fp16", "has no kernels"},
                                                         {"int52", "does not multiply int52"},
                                                         {"h2sgemm:sb=eq6", "exponents"}};
  for (const auto& [scheme, reason] : refused) {
    Call call(8, 8, 8, stream_);
    call.options.scheme = scheme;
    expect_refused(call, KINTSUGI_NOT_SUPPORTED, reason);
  }
}

TEST_F(DevicePlan, EnginesOfTheHostAreRefused) {
  for (const char* engine : {"reference", "cpu"}) {
    Call call(8, 8, 8, stream_);
    call.options.engine = engine;
    expect_refused(call, KINTSUGI_NOT_SUPPORTED, engine);
  }
}

TEST_F(DevicePlan, HostMatricesAreFittedAndStaged) {
  Call call(8, 8, 8, stream_);
  call.problem.memory = KINTSUGI_HOST;
  call.options.queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  call.options.engine = "cuda";
  call.options.scheme = "h2sgemm:sb=eq6";
  const Handle handle;
  EXPECT_EQ(planned(call).at("workspace_bytes"), 0);
  ASSERT_EQ(kintsugi_plan_execute(handle, call.plan, &call.operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  // All elements are 1 = 2^0: Eq. 6 as h2sgemm.hpp has it gives 26.
  EXPECT_EQ(handle.report().at("adapted").at("split_a").at("residual_exponent"), 26);
}

TEST_F(DevicePlan, DescriptionsAreReadBack) {
  for (const char* policy : {"emulate", "native"}) {
    Call call(64, 48, 4096, stream_);
    call.options.policy = policy;
    call.problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
    const json plan = planned(call);
    EXPECT_EQ(plan.at("problem").at("scalars"), "device");
    Call again(64, 48, 4096, stream_);
    ASSERT_EQ(kintsugi_plan_read(nullptr, plan.dump().c_str(), nullptr, &again.plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    json read = describe(again);
    read["settings"] = plan.at("settings");  // which say where they come from
    EXPECT_EQ(read, plan);
  }
}

}  // namespace
}  // namespace kintsugi::test
