// Tests plans of problems in device memory, over the fakes: candidates, refusals, descriptions.
#include <random>

#include "arith/residue/residue.hpp"
#include "fakes/device_plan.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

// Kernels read k padded to whole k-blocks, so a product needs the memory of one with the padded k; from
// k = 4096 on, segments of k have sums of their own.
TEST_F(DevicePlan, WorkspaceIsThatOfThePaddedK) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const auto bytes_for = [&](const char* scheme, std::int64_t m, std::int64_t n, std::int64_t k) {
    PlannedCall call(m, n, k, stream_);
    call.options.scheme = scheme;
    return planned(call).at("workspace_bytes").get<std::int64_t>();
  };
  std::mt19937 random(5);
  for (const char* scheme : {"fp16x3", "fp16x3-wide", "bf16x6"}) {
    for (const std::int64_t k : {1, 65, 1000, 2030, 4033, 4040, 4095, 4097, 8190, 20000}) {
      const auto m = static_cast<std::int64_t>(1 + random() % 300),
                 n = static_cast<std::int64_t>(1 + random() % 300);
      EXPECT_EQ(bytes_for(scheme, m, n, k), bytes_for(scheme, m, n, core::round_up(k, std::int64_t{64})))
          << scheme << " " << m << " x " << n << " x " << k;
    }
  }
}

// Sums of integers do not depend on blocks of C, so these may be as small as a workspace limit needs.
TEST_F(DevicePlan, BlocksOfIntegerProgramsFitSmallLimits) {
  struct Case {
    const char* scheme;
    const char* accuracy;
    kintsugi_type type;
  };
  constexpr std::int64_t n = 8192;
  const auto set = [](kintsugi_problem& problem, kintsugi_type type) {
    problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = n;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
  };
  for (const auto& [scheme, accuracy, type] :
       {Case{"ozaki2", nullptr, KINTSUGI_F64}, Case{"int8x6", nullptr, KINTSUGI_F32},
        Case{nullptr, "exact", KINTSUGI_F64}, Case{nullptr, "fp64", KINTSUGI_F64}}) {
    std::int64_t unlimited = 0;
    for (const std::int64_t part : {1, 2, 4}) {
      Call call(1, 1, 1, stream_);
      set(call.problem, type);
      call.options.scheme = scheme;
      call.options.accuracy = accuracy;
      call.options.policy = scheme == nullptr ? "emulate" : nullptr;
      call.options.workspace_limit = unlimited / part;
      const auto bytes = planned(call).at("workspace_bytes").get<std::int64_t>();
      if (part == 1) unlimited = bytes;
      EXPECT_LE(bytes, unlimited / part) << (scheme == nullptr ? accuracy : scheme);
    }
  }
  Call floating(1, 1, 1, stream_);
  set(floating.problem, KINTSUGI_F32);
  floating.options.scheme = "markidis";
  floating.options.workspace_limit = 1 << 20;
  expect_refused(floating, KINTSUGI_WORKSPACE_TOO_SMALL, "the smallest block needs");
}

// Rows of A are split for every panel of columns, so that few panels are better than square blocks: halving
// gave four panels here.
TEST_F(DevicePlan, BlocksWithinALimitHaveFewPanelsOfColumns) {
  Call call(1, 1, 1, stream_);
  call.problem.m = call.problem.n = call.problem.k = call.problem.lda = call.problem.ldb = call.problem.ldc =
      8192;
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_F64;
  call.options.policy = "emulate";
  call.options.workspace_limit = std::int64_t{1} << 30;
  const json plan = planned(call);
  EXPECT_EQ(plan.at("blocking").at("n"), 4096);
  EXPECT_EQ(plan.at("blocking").at("m"), 2816)
      << "slices of 15 moduli fit; the other candidates have smaller blocks";
  EXPECT_LE(plan.at("workspace_bytes"), call.options.workspace_limit);
  EXPECT_GT(plan.at("workspace_bytes"), call.options.workspace_limit / 10 * 9) << "the limit is made use of";
  call.options.workspace_limit *= 2;
  EXPECT_EQ(planned(call).at("blocking").at("n"), 8192);
}

// Candidates: the fastest for operands of moderate depth, the widest windows among programs of equal cost,
// and the native SIMT kernel for all other operands. Prepared operands get the slices of a candidate with a
// wide window.
TEST_F(DevicePlan, EmulateIsAChainOfEmulationsAndNative) {
  Call call(64, 64, 4096, stream_);
  call.options.policy = "emulate";
  const json plan = planned(call);
  EXPECT_EQ(schemes(plan), (Names{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  const json& candidates = plan.at("candidates");
  for (const int c : {0, 1, 2}) EXPECT_EQ(candidates.at(c).at("accumulator"), "h200");
  EXPECT_EQ(candidates.at(0).at("largest_dynamic_range"), 16);
  EXPECT_EQ(candidates.at(0).at("largest_mean_depth"), 24);
  EXPECT_EQ(candidates.at(1).at("largest_dynamic_range"), 28);
  EXPECT_GT(candidates.at(2).at("largest_dynamic_range"), 90);
  for (const int c : {0, 1})
    EXPECT_LE(candidates.at(c).at("bound_in_window").at("relative"), plan.at("contract").at("coefficient"));
  EXPECT_THAT(plan.at("words").dump(), HasSubstr("native FP32 product"));
  call.problem.prepared_b = 1;
  const json prepared = planned(call);
  EXPECT_EQ(schemes(prepared), (Names{"fp16x3-wide", "bf16x6", "native"}));
  for (const int c : {0, 1}) EXPECT_GE(prepared.at("candidates").at(c).at("largest_mean_depth"), 24);
}

// Only Hopper has kernels that add sums outside every 64 k; cuBLAS products elsewhere have longer k-blocks.
TEST_F(DevicePlan, CublasProductsOfOtherArchitecturesHaveLongerKBlocks) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices steered("8.0");
  Call call(64, 64, 4096, stream_);
  call.options.policy = "emulate";
  const json plan = planned(call);
  EXPECT_EQ(schemes(plan), (Names{"fp16x3-wide:block=1024", "native"}));
  EXPECT_TRUE(plan.at("candidates").at(0).at("largest_mean_depth").is_null())
      << "mean depths are not computed";
  const json& candidate = plan.at("candidates").at(0);
  EXPECT_EQ(candidate.at("accumulator"), "cublas");
  EXPECT_EQ(candidate.at("largest_dynamic_range"), 28);
  EXPECT_EQ(candidate.at("program").at("schedule").at("k_block"), 1024);
}

// Kernels by mma.sync have the structures of those for Hopper, and the accumulator of another matrix unit.
TEST_F(DevicePlan, DevicesWithoutWgmmaHaveMultiTermKernels) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  for (const char* capability : {"8.0", "8.6", "12.0"}) {
    const FakeVariable steered("FAKE_CUDA_CAPABILITY", capability);
    Call call(64, 64, 4096, stream_);
    call.options.policy = "emulate";
    const json plan = planned(call);
    EXPECT_EQ(schemes(plan), (Names{"fp16x3", "fp16x3-wide", "bf16x6", "native"})) << capability;
    EXPECT_EQ(plan.at("candidates").at(0).at("accumulator"), "a100") << capability;
    call.options.policy = "auto";
    EXPECT_EQ(schemes(planned(call)), Names{"native"}) << "no costs are known of " << capability;
  }
  const FakeVariable forced("KINTSUGI_ARCH", "sm80");
  Call call(64, 64, 4096, stream_);
  call.options.scheme = "fp16x3";
  EXPECT_EQ(planned(call).at("candidates").at(0).at("accumulator"), "h200")
      << "the accumulator is that of the device";
}

// k-blocks of 1024 are not proved for the contract of a shorter k.
TEST_F(DevicePlan, ShorterSumsKeepKBlocksOf64) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices steered("8.0");
  Call call(64, 64, 500, stream_);
  call.options.policy = "emulate";
  EXPECT_EQ(schemes(planned(call)), (Names{"fp16x3-wide", "native"}));
}

TEST_F(DevicePlan, ComplexProductsAreEmbeddedUnlessByResidues) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  Call call(64, 64, 4096, stream_);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_C32;
  call.options.policy = "emulate";
  const json plan = planned(call);
  EXPECT_EQ(schemes(plan), (Names{"ozaki2:moduli=8:scale=norm", "ozaki2:moduli=10:scale=norm",
                                  "ozaki2:moduli=16", "native"}));
  EXPECT_EQ(plan.at("problem").at("type"), "c32");
  EXPECT_EQ(plan.at("candidates").at(0).at("program").at("products"), 18);
  EXPECT_EQ(plan.at("candidates").at(2).at("program").at("products"), 35);
  {
    const GenericDevices older("8.0");
    EXPECT_EQ(schemes(planned(call)), (Names{"ozaki2:moduli=16", "native"}))
        << "cuBLAS products cannot be skipped, so there is one emulation";
  }
  Call embedded(64, 64, 4096, stream_);
  embedded.problem.type_a = embedded.problem.type_b = embedded.problem.type_c = embedded.problem.type_scalar =
      KINTSUGI_C32;
  embedded.options.scheme = "fp16x3";
  EXPECT_EQ(schemes(planned(embedded)), Names{"fp16x3"});
  const auto basis = [&](const char* scheme, std::int64_t k) {
    Call residues(64, 64, k, stream_);
    residues.problem.type_a = residues.problem.type_b = residues.problem.type_c =
        residues.problem.type_scalar = KINTSUGI_C64;
    residues.options.scheme = scheme;
    return planned(residues).at("candidates").at(0).at("program").at("split_a").at("complex_basis");
  };
  EXPECT_FALSE(basis("ozaki2", 64).is_null());
  EXPECT_FALSE(basis("ozaki2:moduli=25", 64).is_null());
  EXPECT_TRUE(basis("ozaki2:moduli=26", 64).is_null()) << "more moduli than recombination kernels take";
  EXPECT_TRUE(basis("ozaki2:moduli=25", 1).is_null())
      << "integers of 94 bits are more than split kernels take";
}

TEST_F(DevicePlan, DoublesAreNativeUnlessASchemeIsNamed) {
  Call call(8, 8, 64, stream_);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_F64;
  EXPECT_EQ(schemes(planned(call)), Names{"native"});
  Call named(8, 8, 64, stream_);
  named.problem.type_a = named.problem.type_b = named.problem.type_c = named.problem.type_scalar =
      KINTSUGI_F64;
  named.options.scheme = "ozaki2";
  EXPECT_EQ(schemes(planned(named)), Names{"ozaki2"});
}

// The plan has as many moduli as the type's significand needs.
TEST_F(DevicePlan, NumberOfModuliDependsOnTheType) {
  const auto products = [&](kintsugi_type type) -> int {
    Call call(64, 64, 4096, stream_);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
    call.options.scheme = "ozaki2";
    return planned(call).at("candidates").at(0).at("program").at("products");
  };
  EXPECT_EQ(products(KINTSUGI_F32), 9);
  EXPECT_EQ(products(KINTSUGI_F64), 16);
  EXPECT_EQ(products(KINTSUGI_C32), 20);
  EXPECT_EQ(products(KINTSUGI_C64), 35);
}

struct CandidateCounts {
  int by_norms = 0;  // candidates that norms prove; checked ones may be scaled by norms, too
  int checked = 0;
};

CandidateCounts candidate_counts(const json& plan) {
  CandidateCounts counts;
  for (const json& candidate : plan.at("candidates")) {
    const bool is_checked = candidate.at("checked") == true;
    if (is_checked) ++counts.checked;
    const std::string name = candidate.at("scheme");
    if (name.ends_with(":scale=norm") && !is_checked) {
      EXPECT_EQ(counts.checked, 0) << "a candidate by norms after a checked one";
      ++counts.by_norms;
    }
  }
  return counts;
}

// One candidate of residues whose elements are checked, then exact sums for elements that stay open. For
// contracts above the smallest error, norms may prove all elements with fewer moduli; kernels of candidates
// that are not selected exit early, which cuBLAS products cannot. Where native products keep a contract of
// FP64 they follow instead of checks.
TEST_F(DevicePlan, ContractsThatNoWindowProvesHaveCheckedOrNativeCandidates) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  struct Case {
    kintsugi_type type;
    const char* accuracy;
    const char* policy;
  };
  for (const Case& test : {Case{KINTSUGI_F32, "exact", "auto"}, Case{KINTSUGI_F32, "exact", "emulate"},
                           Case{KINTSUGI_F32, "1e-6", "auto"}, Case{KINTSUGI_F64, "exact", "auto"},
                           Case{KINTSUGI_F64, "fp64", "emulate"}, Case{KINTSUGI_F64, "1e-14", "auto"},
                           Case{KINTSUGI_F64, "1e-9", "emulate"}, Case{KINTSUGI_C32, "exact", "auto"},
                           Case{KINTSUGI_C64, "fp64", "emulate"}, Case{KINTSUGI_C64, "exact", "auto"}}) {
    SCOPED_TRACE(std::string(test.accuracy) + " " + test.policy);
    Call call(8, 8, 1000, stream_);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = test.type;
    call.options.accuracy = test.accuracy;
    call.options.policy = test.policy;
    const json plan = planned(call);
    const Names names = schemes(plan);
    EXPECT_THAT(names[0], HasSubstr("ozaki2:moduli="));
    const bool native_follows = test.type != KINTSUGI_F32 && test.policy == std::string("emulate");
    EXPECT_EQ(names.back(), native_follows ? "native" : "superaccumulator");
    const CandidateCounts counts = candidate_counts(plan);
    EXPECT_EQ(counts.checked, native_follows ? 0 : 1);
    EXPECT_EQ(counts.by_norms > 0, test.accuracy != std::string("exact"));
    EXPECT_EQ(names.size(), static_cast<std::size_t>(counts.by_norms) + (native_follows ? 1 : 2));
    const bool complex = test.type == KINTSUGI_C32 || test.type == KINTSUGI_C64;
    const json basis = plan.at("candidates").at(0).at("program").at("split_a").at("complex_basis");
    EXPECT_EQ(basis.is_null(), !complex);
    const GenericDevices older("8.0");
    EXPECT_EQ(schemes(planned(call)).size(), 2U) << "cuBLAS products cannot be skipped";
  }
}

// The checked candidate has the moduli of the host's second candidate, for exact results those of its third:
// integers of 65 or 70 bits, for FP32 36 or 41, and ten bits for the sum of 1000 products. (Without kernels
// that exit early, scales by norms do not replace a modulus.)
TEST_F(DevicePlan, CheckedIntegersHaveBitsToSpare) {
  for (const auto& [type, accuracy, bits] :
       {std::tuple(KINTSUGI_F64, "exact", 2 * 70 + 10), std::tuple(KINTSUGI_F32, "exact", 2 * 41 + 10),
        std::tuple(KINTSUGI_F64, "fp64", 2 * 65 + 10)}) {
    Call call(8, 8, 1000, stream_);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
    call.options.accuracy = accuracy;
    call.options.policy = "emulate";
    const GenericDevices elsewhere("10.0");  // then no native candidate follows
    const Names names = schemes(planned(call));
    const std::string name = names.at(names.size() - 2);
    const int count = std::stoi(name.substr(name.find('=') + 1));
    EXPECT_GE(core::residue_bits(count), bits);
    EXPECT_LT(core::residue_bits(count - 1), bits);
  }
}

// Every candidate costs launches, so small products have few.
TEST_F(DevicePlan, LongExactProductsHaveSeveralCheckedCandidates) {
  using Case = CaseOfModuli;
  for (const Case& test :
       {Case{KINTSUGI_F64, 256, 256, {22}}, Case{KINTSUGI_F64, 1024, 1024, {19, 23}},
        Case{KINTSUGI_F64, 1536, 1536, {19, 23, 35}}, Case{KINTSUGI_F64, 8192, 8192, {19, 21, 24, 35}},
        Case{KINTSUGI_F64, 1024, 1000000, {20, 22, 24, 36}},
        Case{KINTSUGI_F32, 8192, 8192, {13, 15, 17, 29}}}) {
    Call call(8, 8, 8, stream_);
    test.set(call.problem);
    call.options.accuracy = "exact";
    Names names = test.names(call.problem.type_a == KINTSUGI_F64 ? ":scale=norm" : "");
    names.push_back("superaccumulator");
    EXPECT_EQ(schemes(planned(call)), names);
  }
}

TEST_F(DevicePlan, FewLongSumsAreSummedExactly) {
  Call call(8, 8, 100000, stream_);
  call.options.accuracy = "exact";
  EXPECT_EQ(schemes(planned(call)), Names{"superaccumulator"});
}

TEST_F(DevicePlan, TolerancesBelowTheLastRoundingAreUnreachable) {
  for (const char* policy : {"auto", "emulate", "native"}) {
    Call call(8, 8, 1000, stream_);
    call.options.accuracy = "1e-8";
    call.options.policy = policy;
    expect_refused(call, KINTSUGI_CONTRACT_UNREACHABLE, "1e-8");
  }
  Call exact(8, 8, 1000, stream_);
  exact.options.accuracy = "exact";
  exact.options.policy = "native";
  expect_refused(exact, KINTSUGI_CONTRACT_UNREACHABLE, "exact");
}

TEST_F(DevicePlan, SchemesWithoutKernelsAreRefused) {
  Call call(8, 8, 8, stream_);
  call.options.scheme = "split-n:format=fp8_e4m3";
  expect_refused(call, KINTSUGI_NOT_SUPPORTED, "does not multiply fp8_e4m3");
}

// A named scale that devices do not compute is refused, not replaced.
TEST_F(DevicePlan, RefusesScalesByNormAndProduct) {
  for (const char* scale : {"norm", "product"}) {
    Call call(64, 64, 64, stream_);
    const std::string scheme = std::string("ozaki2:scale=") + scale;
    call.options.scheme = scheme.c_str();
    expect_refused(call, KINTSUGI_NOT_SUPPORTED, "and scheme " + scheme + " asks for scale=" + scale);
  }
}

TEST_F(DevicePlan, OzakiInt52AndSuperaccumulatorArePlanned) {
  for (const char* scheme : {"ozaki-fp16", "ozaki-fp16:mode=cr", "ozaki-fp16:grid=sigma", "ozaki-fp64",
                             "int52", "int52:words=4", "superaccumulator"}) {
    Call call(8, 8, 8, stream_);
    call.options.scheme = scheme;
    EXPECT_EQ(schemes(planned(call)), Names{scheme});
  }
}

TEST_F(DevicePlan, FittedSchemesArePlanned) {
  for (const char* scheme : {"h2sgemm:sb=eq6", "h2sgemm-element:sb=eq6", "h2sgemm"}) {
    Call call(8, 8, 8, stream_);
    call.options.scheme = scheme;
    EXPECT_EQ(schemes(planned(call)), Names{scheme});
  }
}

TEST_F(DevicePlan, EnginesOfTheHostAreRefused) {
  for (const char* engine : {"reference", "cpu"}) {
    Call call(8, 8, 8, stream_);
    call.options.engine = engine;
    expect_refused(call, KINTSUGI_NOT_SUPPORTED, engine);
  }
}

TEST_F(DevicePlan, HostMatricesAreFittedAndCopied) {
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
    call.problem.prepared_a = 1;
    const json plan = planned(call);
    EXPECT_EQ(plan.at("problem").at("scalars"), "device");
    EXPECT_EQ(plan.at("problem").at("prepared_a"), true);
    EXPECT_THAT(plan.at("words").at(0).dump(), HasSubstr("FP32 operands (A prepared)"));
    Call again(64, 48, 4096, stream_);
    ASSERT_EQ(kintsugi_plan_read(nullptr, plan.dump().c_str(), nullptr, &again.plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    json description = describe(again);
    description["settings"] = plan.at("settings");  // the sources of settings differ
    EXPECT_EQ(description, plan);
  }
}

}  // namespace
}  // namespace kintsugi::test
