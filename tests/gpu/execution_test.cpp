// How calls on device memory run: graphs, workspaces, prepared operands, selections and reports, host
// matrices.
#include <cmath>
#include <limits>

#include "gpu/device_stream.hpp"

namespace kintsugi::test {
namespace {

// ------------------------------------------------------------------ graphs, workspaces, prepared operands

struct Planned {
  Planned(const kintsugi_problem& problem, const kintsugi_options& options,
          kintsugi_handle handle = nullptr) {
    EXPECT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(kintsugi_plan_workspace_size(plan, &workspace), KINTSUGI_SUCCESS);
  }
  ~Planned() { kintsugi_plan_destroy(plan); }
  kintsugi_plan plan = nullptr;
  std::size_t workspace = 0;
};

TEST(DeviceGraph, SmallReplaysTheCapturedCall) {
  for (const std::string how : {"fp16x3", "ozaki2:moduli=7", "emulate", "native"}) {
    for (const bool own_workspace : {true, false}) {
      const bool named = how != "emulate" && how != "native";
      GemmCase test{
          .m = 130, .n = 70, .k = 300, .beta = 0.5, .scheme = named ? how : "", .policy = named ? "" : how};
      SCOPED_TRACE(how);
      const Handle handle;
      const Stream stream;
      GemmDataOf<float> data(test);
      DeviceGemm<float> device(data, {.device_scalars = true, .queue = stream.queue()});
      const Planned planned(device.problem(), device.options(), handle);
      const DeviceArray<unsigned char> workspace(planned.workspace);
      kintsugi_operands operands = device.operands();
      if (own_workspace) {
        operands.workspace = workspace.data();
        operands.workspace_size = planned.workspace;
      }
      const CapturedCall call(stream, handle, planned.plan, operands);
      const auto bits = device_bits<float>(test);
      for (int replay = 0; replay < 3; ++replay) {
        device_engine().copy_to_device({}, device.c().data(), data.raw_c().data(),
                                       data.raw_c().size() * sizeof(float));
        call.replay();
        GemmDataOf<float> result(test);
        result.raw_c() = device.c().host();
        EXPECT_EQ(bits_of(result.result()), bits) << "replay " << replay;
      }
      if (how != "native") {
        EXPECT_EQ(handle.report()["candidates"][0]["items"], 1) << handle.report();
      }
    }
  }
}

TEST(DeviceWorkspace, SmallIsExact) {
  GemmCase test{.m = 140, .n = 131, .k = 260, .scheme = "bf16x6"};
  const auto bits = device_bits<float>(test);
  GemmDataOf<float> data(test);
  DeviceGemm<float> device(data);
  const Planned planned(device.problem(), device.options());
  const DeviceArray<unsigned char> workspace(planned.workspace);
  kintsugi_operands operands = device.operands();
  operands.workspace = workspace.data();
  operands.workspace_size = planned.workspace - 1;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_WORKSPACE_TOO_SMALL);
  operands.workspace_size = planned.workspace;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  device.fetch();
  workspace.host();  // its guards
  EXPECT_EQ(bits_of(data.result()), bits);
}

template <class T>
void expect_prepared_bits(const GemmCase& test, bool borrow) {
  SCOPED_TRACE(describe(test));
  const auto bits = device_bits<T>(test);
  GemmDataOf<T> data(test);
  DeviceGemm<T> device(data);
  const Planned planned(device.problem(), device.options());
  kintsugi_operands operands = device.operands();
  const auto prepare = borrow ? kintsugi_prepare_borrowed : kintsugi_prepare;
  kintsugi_prepared a = nullptr, b = nullptr;
  ASSERT_EQ(prepare(nullptr, planned.plan, KINTSUGI_A, operands.a, &a), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  ASSERT_EQ(prepare(nullptr, planned.plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  for (const int which : {1, 2, 3}) {
    GemmDataOf<T> fresh(test);
    device_engine().copy_to_device({}, device.c().data(), fresh.raw_c().data(),
                                   fresh.raw_c().size() * sizeof(T));
    operands.prepared_a = (which & 1) != 0 ? a : nullptr;
    operands.prepared_b = (which & 2) != 0 ? b : nullptr;
    ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    fresh.raw_c() = device.c().host();
    EXPECT_EQ(bits_of(fresh.result()), bits) << "prepared: " << which;
  }
  kintsugi_prepared_destroy(a);
  kintsugi_prepared_destroy(b);
}

// Tiles that are cut along k count their parts in the workspace: whatever it held before, and whatever call
// used it last.
TEST(DeviceWorkspace, MayHoldAnything) {
  for (const std::string scheme : {"fp16x3", ""}) {
    const GemmCase test{
        .m = 5120, .n = 5120, .k = 1280, .scheme = scheme, .policy = scheme.empty() ? "emulate" : ""};
    SCOPED_TRACE(describe(test));
    const auto bits = device_bits<float>(test);
    GemmDataOf<float> data(test);
    DeviceGemm<float> device(data);
    const Planned planned(device.problem(), device.options());
    const DeviceArray<unsigned char> workspace(planned.workspace);
    kintsugi_operands operands = device.operands();
    operands.workspace = workspace.data();
    operands.workspace_size = planned.workspace;
    kintsugi_prepared a = nullptr, b = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, planned.plan, KINTSUGI_A, operands.a, &a), KINTSUGI_SUCCESS);
    ASSERT_EQ(kintsugi_prepare(nullptr, planned.plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS);
    for (const int which : {0, 3, 0, 1, 2, 3, 3}) {
      operands.prepared_a = (which & 1) != 0 ? a : nullptr;
      operands.prepared_b = (which & 2) != 0 ? b : nullptr;
      ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      device.fetch();
      EXPECT_TRUE(bits_of(data.result()) == bits) << "prepared: " << which;
    }
    kintsugi_prepared_destroy(a);
    kintsugi_prepared_destroy(b);
  }
}

TEST(DevicePrepared, SmallKeepTheBits) {
  for (const bool borrow : {false, true}) {
    for (const std::int64_t batch : {1, 3}) {
      expect_prepared_bits<float>(
          {.m = 70, .n = 131, .k = 99, .pad_a = 2, .batch = batch, .beta = -1, .scheme = "fp16x3"}, borrow);
      expect_prepared_bits<double>(
          {.m = 70, .n = 31, .k = 99, .op_b = KINTSUGI_OP_T, .batch = batch, .scheme = "ozaki2:moduli=15"},
          borrow);
      expect_prepared_bits<float>(
          {.m = 70, .n = 131, .k = 99, .op_a = KINTSUGI_OP_T, .batch = batch, .policy = "emulate"}, borrow);
      // Taken by depth: so many uniform numbers span more than the first candidate is proved for.
      expect_prepared_bits<float>(
          {.m = 300, .n = 131, .k = 2000, .op_a = KINTSUGI_OP_T, .batch = batch, .policy = "emulate"},
          borrow);
      expect_prepared_bits<double>(
          {.m = 33, .n = 31, .k = 99, .layout = KINTSUGI_ROW_MAJOR, .batch = batch, .policy = "native"},
          borrow);
      for (const auto& [accuracy, distribution] :
           {std::pair("exact", "phi:4"), std::pair("fp64", "uniform"), std::pair("fp64", "phi:1.5"),
            std::pair("fp64", "phi:4")}) {
        const GemmCase test{.m = 70,
                            .n = 31,
                            .k = 99,
                            .op_b = KINTSUGI_OP_T,
                            .batch = batch,
                            .beta = 0.5,
                            .distribution = distribution,
                            .policy = "emulate",
                            .accuracy = accuracy};
        expect_prepared_bits<double>(test, borrow);
        expect_prepared_bits<std::complex<double>>(test, borrow);
      }
      expect_prepared_bits<double>({.m = 20, .n = 31, .k = 99, .batch = batch, .scheme = "superaccumulator"},
                                   borrow);
    }
  }
}

// Items whose operands span more than the first candidate holds, of A, of B, of neither, or more than any:
// each on its own candidate, native the last, prepared or not.
TEST(DevicePrepared, SmallItemsHaveCandidatesOfTheirOwn) {
  const GemmCase test{.m = 70, .n = 90, .k = 200, .batch = 4, .policy = "emulate"};
  SCOPED_TRACE(describe(test));
  GemmDataOf<float> data(test);
  for (std::int64_t p = 0; p < test.k; p += 2) {
    data.a(1)(3, p) *= 0x1p-60F;
    data.b(2)(p, 7) *= 0x1p-50F;
    data.b(3)(p, 7) *= 0x1p-120F;
  }
  const auto run = [&](const auto& execute) {
    GemmDataOf<float> fresh(test);
    fresh.raw_a() = data.raw_a();
    fresh.raw_b() = data.raw_b();
    DeviceGemm<float> device(fresh);
    const Handle handle;
    const Planned planned(device.problem(), device.options(), handle);
    kintsugi_operands operands = device.operands();
    execute(handle, planned.plan, operands);
    device.fetch();
    return std::pair(bits_of(fresh.result()), handle.report()["candidates"]);
  };
  const auto plainly = [](kintsugi_handle handle, kintsugi_plan plan, const kintsugi_operands& operands) {
    ASSERT_EQ(kintsugi_plan_execute(handle, plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  };
  const auto [bits, candidates] = run(plainly);
  std::vector<std::string> schemes;
  for (const json& candidate : candidates) {
    schemes.push_back(candidate["scheme"]);
    EXPECT_EQ(candidate["items"], 1) << candidates;
  }
  EXPECT_EQ(schemes, (std::vector<std::string>{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  for (const int which : {1, 2, 3}) {
    const auto prepared = run([&](kintsugi_handle handle, kintsugi_plan plan, kintsugi_operands operands) {
      kintsugi_prepared a = nullptr, b = nullptr;
      ASSERT_EQ(kintsugi_prepare(nullptr, plan, KINTSUGI_A, operands.a, &a), KINTSUGI_SUCCESS);
      ASSERT_EQ(kintsugi_prepare(nullptr, plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS);
      operands.prepared_a = (which & 1) != 0 ? a : nullptr;
      operands.prepared_b = (which & 2) != 0 ? b : nullptr;
      plainly(handle, plan, operands);
      kintsugi_prepared_destroy(a);
      kintsugi_prepared_destroy(b);
    });
    EXPECT_TRUE(prepared.first == bits) << "prepared: " << which;
    EXPECT_EQ(prepared.second, candidates) << "prepared: " << which;
  }
}

// Slices keep the scales that they were made with, whatever candidate or scheme splits their operand again in
// between.
TEST(DevicePrepared, SmallScalesOutliveOtherSplits) {
  for (const auto& [scheme, other_scheme] : {std::pair("", ""), std::pair("fp16x3", "bf16x6")}) {
    GemmCase test{.m = 70, .n = 90, .k = 200, .scheme = scheme, .policy = *scheme == 0 ? "emulate" : ""};
    GemmCase between = test;
    between.scheme = other_scheme;
    SCOPED_TRACE(describe(test));
    const auto bits = device_bits<float>(test);
    GemmDataOf<float> data(test);
    GemmDataOf<float> wide(between);
    wide.a()(3, 7) = 0x1p-60F;  // of a fallback chain bf16x6 takes it
    DeviceGemm<float> device(data);
    DeviceGemm<float> other(wide);
    const Planned planned(device.problem(), device.options());
    const Planned other_planned(other.problem(), other.options());
    kintsugi_operands operands = device.operands();
    kintsugi_operands other_operands = other.operands();
    kintsugi_prepared b = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, planned.plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS);
    operands.prepared_b = other_operands.prepared_b = b;
    ASSERT_EQ(kintsugi_plan_execute(nullptr, other_planned.plan, &other_operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    device.fetch();
    EXPECT_EQ(bits_of(data.result()), bits);
    kintsugi_prepared_destroy(b);
  }
}

// ------------------------------------------------------------------ selections and reports

TEST(DeviceChain, SmallTakesTheCandidateThatTheDataAskFor) {
  const struct {
    const char* distribution;
    const char* scheme;
  } cases[] = {{"language-model", "fp16x3"}, {"graded-inner:60", "bf16x6"}, {"graded-inner:120", "native"}};
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
    expect_accurate(data, static_cast<double>(test.k) + 8);
  }
}

// However many vectors there are, whichever way they lie; thread blocks of the fourth have 48 KB of shared
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

// Uniform numbers span as many binades as there are of them allow, yet lie in the upper ones; half of them
// may be zeros on one side, but where both sides have zeros nobody knows which meet.
TEST(DeviceChain, SmallElementsThatLieHighAreQuick) {
  for (const int sides : {0, 1, 2}) {
    for (const bool narrow : {true, false}) {
      GemmCase test{.m = 100, .n = 90, .k = 2000, .policy = "emulate"};
      const Handle handle;
      GemmDataOf<float> data(test);
      for (std::int64_t p = 0; p < test.k; ++p) {
        for (std::int64_t i = 0; i < test.m; ++i) {
          if (sides > 0 && (i + p) % 2 == 0) data.a()(i, p) = 0;
        }
        for (std::int64_t j = 0; j < test.n; ++j) {
          if (sides > 1 && (j + p) % 2 == 0) data.b()(p, j) = 0;
        }
      }
      // One small number a vector makes no difference but to spans.
      if (!narrow) {
        for (std::int64_t i = 0; i < test.m; ++i) data.a()(i, 1001 - i % 2) = 0x1p-60F;
      }
      DeviceGemm<float>(data).run_well(handle);
      const json report = handle.report();
      const bool quick = sides < 2;
      EXPECT_EQ(report["candidates"][0]["scheme"], quick    ? "fp16x3"
                                                   : narrow ? "fp16x3-wide"
                                                            : "bf16x6")
          << sides << report;
      expect_accurate(data, static_cast<double>(test.k) + 8);
    }
  }
}

// Under auto a short product is multiplied before its selection is made, where nothing of C is read: it is
// written anew if the operands are on no candidate.
TEST(DeviceChain, OneCandidateOfAutoGivesWay) {
  for (const double beta : {0.0, 0.5}) {
    GemmCase test{.m = 1000, .n = 1010, .k = 700, .beta = beta, .policy = "auto"};
    SCOPED_TRACE(describe(test));
    const Handle handle;
    GemmDataOf<float> uniform(test);
    DeviceGemm<float>(uniform).run_well(handle);
    const json report = handle.report();
    if (report["candidates"].empty()) GTEST_SKIP() << "native is expected to be quicker here";
    const std::string scheme = report["candidates"][0]["scheme"];
    if (scheme == "native") GTEST_SKIP() << "auto emulates on devices alone whose times are known";
    EXPECT_EQ(scheme, "fp16x3-wide");
    GemmCase named = test;
    named.policy.clear();
    named.scheme = scheme;
    EXPECT_EQ(bits_of(uniform.result()), device_bits<float>(named));

    test.distribution = "graded-inner:60";
    GemmDataOf<float> deep(test);
    GemmDataOf<float> before(test);
    DeviceGemm<float>(deep).run_well(handle);
    EXPECT_EQ(handle.report()["candidates"][0]["scheme"], "native");
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

TEST(DeviceChain, SmallReportsSpecialValuesAndWhatItRefuses) {
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

// Host matrices on the engine by name.
TEST(DeviceStaging, SmallHostMatrices) {
  for (const char* scheme : {"fp16x3", "h2sgemm", "h2sgemm:sb=eq6", "h2sgemm-element", "ozaki2:moduli=7"}) {
    GemmCase test{.m = 65,
                  .n = 33,
                  .k = 130,
                  .op_a = KINTSUGI_OP_T,
                  .layout = KINTSUGI_ROW_MAJOR,
                  .pad_a = 1,
                  .pad_c = 3,
                  .batch = 2,
                  .alpha = 0.5,
                  .beta = 2,
                  .scheme = scheme,
                  .engine = "cuda"};
    SCOPED_TRACE(describe(test));
    GemmDataOf<float> data(test);
    const Handle handle;
    const std::vector<float> before = data.raw_c();
    data.run_well(handle);
    for (const lab::ElementError& element : element_errors(data, before))
      ASSERT_LE(element.error, 0x1p-15 * (element.absolute + 2));
    EXPECT_EQ(handle.report()["candidates"][0]["items"], 2) << handle.report();
  }
}

}  // namespace
}  // namespace kintsugi::test
