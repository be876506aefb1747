// Tests which candidates calls on device memory select, and their reports.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gpu/calls/contract_bound.hpp"
#include "gpu/calls/device_stream.hpp"
#include "gpu/calls/planned.hpp"

namespace kintsugi::test {
namespace {

TEST(DeviceChain, RangesSelectTheCandidateInSmallCases) {
  const struct {
    const char* distribution;
    const char* scheme;
  } cases[] = {{"language-model", "fp16x3"},
               {"graded-inner:60", "bf16x6"},
               {"graded-inner:110", "bf16x6"},
               {"subnormal-mixed", "bf16x6"},
               {"span:200", "native"}};
  for (const auto& [distribution, scheme] : cases) {
    GemmCase test{.m = 100, .n = 90, .k = 600, .batch = 2, .distribution = distribution, .policy = "emulate"};
    SCOPED_TRACE(describe(test));
    const Handle handle;
    GemmDataOf<float> data(test);
    DeviceGemm<float>(data).run_well(handle);
    const json report = handle.report();
    ASSERT_EQ(report["candidates"].size(), 1U) << report;
    EXPECT_EQ(report["candidates"][0]["scheme"], scheme) << report;
    EXPECT_EQ(report["candidates"][0]["items"], 2) << report;
    const auto k = static_cast<double>(test.k);
    if (std::string(scheme) == "native") {
      expect_errors_within(data, (k + 8) * 0x1p-24, 2 * (2 * k + 8) * 0x1p-126);
    } else {
      expect_accurate(data, k + 8);
    }
  }
}

// Candidates have blocks of C of their own if a limit cuts it.
TEST(DeviceChain, BlocksOfFp64CandidatesDoNotChangeBits) {
  int later_candidates = 0;
  for (const char* distribution : {"phi:0.5", "phi:1.8", "phi:2"}) {
    GemmCase test{.m = 3000, .n = 2900, .k = 2800, .alpha = -1, .beta = 1, .distribution = distribution};
    test.policy = "emulate";
    const auto bits = device_bits<double>(test);
    test.workspace_limit = std::int64_t{200} << 20;
    SCOPED_TRACE(describe(test));
    const Handle handle;
    GemmDataOf<double> data(test);
    DeviceGemm<double>(data).run_well(handle);
    const json candidates = handle.report()["candidates"];
    ASSERT_EQ(candidates.size(), 1U) << candidates;
    const std::string scheme = candidates[0]["scheme"];
    later_candidates += scheme.starts_with("ozaki2") && !scheme.starts_with("ozaki2:moduli=15") ? 1 : 0;
    EXPECT_EQ(bits_of(data.result()), bits) << candidates;
  }
  EXPECT_GT(later_candidates, 0);
}

// A report of a chain of many candidates leaves counts behind that later reports of the handle must not have.
TEST(DeviceChain, ReportsOfManyCandidatesLeaveNothingBehind) {
  const Handle handle;
  const auto run = [&](const GemmCase& test) {
    GemmDataOf<double> data(test);
    DeviceGemm<double>(data).run_well(handle);
    return handle.report();
  };
  const json report = run({.m = 4096, .n = 4100, .k = 4100, .distribution = "phi:2.5", .policy = "emulate"});
  const std::string scheme = report["candidates"].at(0)["scheme"];
  if (scheme == "native") GTEST_SKIP() << "the device has few candidates";
  EXPECT_GT(scheme, "ozaki2:moduli=18") << report;
  const json exact = run({.m = 1000, .n = 1100, .k = 1500, .policy = "emulate", .accuracy = "exact"});
  EXPECT_EQ(exact["candidates"].size(), 1U) << exact;
  EXPECT_EQ(exact["candidates"].at(0)["items"], 1) << exact;
}

// Shapes have few and many vectors with both strides; split kernels of the fourth have 48 KB of shared
// memory.
TEST(DeviceChain, LaterCandidatesHaveTheBitsOfTheirSchemes) {
  const GemmCase shapes[] = {{.m = 13000, .n = 40, .k = 70},
                             {.m = 40, .n = 13000, .k = 70},
                             {.m = 3400, .n = 50, .k = 4100},
                             {.m = 2100, .n = 30, .k = 2816},
                             {.m = 300, .n = 200, .k = 300, .batch = 40},
                             {.m = 50, .n = 1700, .k = 4100, .op_a = KINTSUGI_OP_T, .op_b = KINTSUGI_OP_T}};
  for (GemmCase test : shapes) {
    for (const char* distribution : {"graded-inner:60", "graded-inner:25"}) {
      test.distribution = distribution;
      test.scheme.clear();
      test.policy = "emulate";
      SCOPED_TRACE(describe(test));
      const Handle handle;
      GemmDataOf<float> data(test);
      DeviceGemm<float>(data).run_well(handle);
      const json candidates = handle.report()["candidates"];
      ASSERT_EQ(candidates.size(), 1U) << candidates;
      EXPECT_NE(candidates[0]["scheme"], "fp16x3");
      test.scheme = candidates[0]["scheme"];
      test.policy.clear();
      EXPECT_EQ(bits_of(data.result()), device_bits<float>(test)) << candidates;
    }
  }
}

// Many uniform numbers have a wide dynamic range, but most lie in the upper binades. Half of the elements of
// one operand may be zeros; if both operands have zeros, too few products of two non-zeros are certain.
TEST(DeviceChain, FewElementsFarBelowTheLargestAreAcceptedByMeanDepthInSmallCases) {
  for (const int operands_with_zeros : {0, 1, 2}) {
    for (const bool narrow : {true, false}) {
      GemmCase test{.m = 100, .n = 90, .k = 2000, .policy = "emulate"};
      const Handle handle;
      GemmDataOf<float> data(test);
      for (std::int64_t p = 0; p < test.k; ++p) {
        for (std::int64_t i = 0; i < test.m; ++i) {
          if (operands_with_zeros > 0 && (i + p) % 2 == 0) data.a()(i, p) = 0;
        }
        for (std::int64_t j = 0; j < test.n; ++j) {
          if (operands_with_zeros > 1 && (j + p) % 2 == 0) data.b()(p, j) = 0;
        }
      }
      // One small number per vector widens the dynamic range and changes nothing else.
      if (!narrow) {
        for (std::int64_t i = 0; i < test.m; ++i) data.a()(i, 1001 - i % 2) = 0x1p-60F;
      }
      DeviceGemm<float>(data).run_well(handle);
      const json report = handle.report();
      const bool by_mean_depth = operands_with_zeros < 2;
      EXPECT_EQ(report["candidates"][0]["scheme"], by_mean_depth ? "fp16x3"
                                                   : narrow      ? "fp16x3-wide"
                                                                 : "bf16x6")
          << operands_with_zeros << report;
      expect_accurate(data, static_cast<double>(test.k) + 8);
    }
  }
}

// Even rows and columns have disjoint elements, as triangular matrices have, so that their sums are zero. No
// emulation accepts the data, and the native kernel adds the sums to C.
TEST(DeviceChain, ZeroSumsAreAddedToC) {
  for (const double beta : {0.5, -1.0, 0x1p-1060}) {
    GemmCase test{.m = 200,
                  .n = 170,
                  .k = 300,
                  .alpha = -3,
                  .beta = beta,
                  .distribution = "phi:8",
                  .policy = "emulate"};
    const Handle handle;
    GemmDataOf<double> data(test);
    for (std::int64_t p = 0; p < test.k; ++p) {
      for (std::int64_t i = 0; i < test.m; i += 2) data.a()(i, p) = p < 150 ? 0 : data.a()(i, p);
      for (std::int64_t j = 0; j < test.n; j += 2) data.b()(p, j) = p < 150 ? data.b()(p, j) : 0;
    }
    for (std::int64_t j = 0; j < test.n; ++j) {
      for (std::int64_t i = 0; i < test.m; ++i)
        data.c()(i, j) = i % 6 == 0 ? (j % 3 == 0 ? 0.0 : -0.0) : static_cast<double>(i - 2 * j) + 0.25;
    }
    const std::vector<double> c_before = data.raw_c();
    std::vector<double> expected;
    for (std::int64_t j = 0; j < test.n; j += 2) {
      for (std::int64_t i = 0; i < test.m; i += 2) expected.push_back(-3 * 0.0 + beta * data.c()(i, j));
    }
    DeviceGemm<double>(data).run_well(handle);
    EXPECT_EQ(handle.report()["candidates"][0]["scheme"], "native") << handle.report();
    std::vector<double> found;
    for (std::int64_t j = 0; j < test.n; j += 2) {
      for (std::int64_t i = 0; i < test.m; i += 2) found.push_back(data.c()(i, j));
    }
    EXPECT_EQ(found, expected) << "beta " << beta;
    expect_accurate(data, static_cast<double>(test.k) + 8, c_before);
  }
}

// Runs the plan of `device` with B prepared, if the problem says so, and returns the scheme that was
// selected.
std::string run_and_name_scheme(const Handle& handle, DeviceGemm<float>& device,
                                const kintsugi_problem& problem) {
  const auto options = device.options();
  const Planned planned(problem, options, handle);
  kintsugi_operands operands = device.operands();
  kintsugi_prepared b = nullptr;
  if (problem.prepared_b != 0) {
    EXPECT_EQ(kintsugi_prepare(handle, planned.plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS);
  }
  operands.prepared_b = b;
  EXPECT_EQ(kintsugi_plan_execute(handle, planned.plan, &operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  device.fetch();
  kintsugi_prepared_destroy(b);
  const json candidates = handle.report()["candidates"];
  return candidates.empty() ? "" : candidates[0]["scheme"];
}

// Under auto a product of few rows by a prepared operand precedes the selection if C is not read. If no
// emulation accepts the operands, the native kernel writes C again.
TEST(DeviceChain, TheEmulationsOfAutoAreReplacedByNative) {
  for (const double beta : {0.0, 0.5}) {
    for (const bool prepared : {false, true}) {
      GemmCase test{.m = prepared ? 100 : 1000,
                    .n = prepared ? 4100 : 1010,
                    .k = prepared ? 4000 : 900,
                    .beta = beta,
                    .policy = "auto"};
      SCOPED_TRACE(describe(test));
      const Handle handle;
      GemmDataOf<float> uniform(test);
      DeviceGemm<float> device(uniform);
      kintsugi_problem problem = device.problem();
      problem.prepared_b = prepared ? 1 : 0;
      const std::string scheme = run_and_name_scheme(handle, device, problem);
      if (scheme.empty() || scheme == "native")
        GTEST_SKIP() << "auto emulates only on devices with a profile";
      EXPECT_EQ(scheme, "fp16x3-wide");
      GemmCase named = test;
      named.policy.clear();
      named.scheme = scheme;
      EXPECT_EQ(bits_of(uniform.result()), device_bits<float>(named));

      test.distribution = "diagonal:240";  // deeper than bf16x6 accepts; no product overflows
      GemmDataOf<float> deep(test);
      GemmDataOf<float> before(test);
      DeviceGemm<float> deep_on_device(deep);
      EXPECT_EQ(run_and_name_scheme(handle, deep_on_device, problem), "native");
      for (std::int64_t s = 0; s < 3000; ++s) {
        const std::int64_t i = 7 * s % test.m;
        const std::int64_t j = 13 * s % test.n;
        float sum = 0;
        for (std::int64_t p = 0; p < test.k; ++p) sum = std::fma(deep.a()(i, p), deep.b()(p, j), sum);
        const float expected =
            beta == 0 ? sum : sum + static_cast<float>(beta) * static_cast<float>(before.c()(i, j));
        ASSERT_EQ(deep.c()(i, j), expected) << i << ", " << j;
      }
    }
  }
}

TEST(DeviceChain, ReportCountsSpecialAndUnreachableItemsInSmallCases) {
  GemmCase test{.m = 9, .n = 8, .k = 7, .batch = 3, .scheme = "h2sgemm"};
  const Handle handle;
  GemmDataOf<float> data(test);
  data.a(1)(2, 3) = std::numeric_limits<float>::infinity();
  data.a(2)(0, 0) = 0x1p20F;
  DeviceGemm<float>(data).run_well(handle);
  const json report = handle.report();
  EXPECT_EQ(report["items_with_special_values"], 1) << report;
  EXPECT_EQ(report["items_unreachable"], 1) << report;
  EXPECT_TRUE(std::isfinite(data.c(0)(0, 0)));
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) EXPECT_TRUE(std::isnan(data.c(2)(i, j)));
  }
}

}  // namespace
}  // namespace kintsugi::test
