// Tests contracts on the device whose elements are checked or proved by norms: fp64 under the policy emulate,
// and tolerances.
#include <limits>

#include "gpu/calls/contract_bound.hpp"
#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

GemmCase emulated(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& distribution,
                  const std::string& accuracy) {
  return {.m = m,
          .n = n,
          .k = k,
          .distribution = distribution,
          .engine = "cuda",
          .policy = "emulate",
          .accuracy = accuracy};
}

// Scheme of the first candidate of the report.
std::string scheme_of(const json& report) { return report.at("candidates").at(0).at("scheme"); }
bool is_by_norms(const json& report) { return scheme_of(report).ends_with(":scale=norm"); }

// Expects that products proved by norms are not checked and have the host's bits of the same scheme, and that
// operands of wider range take more moduli, and at last the candidate that is not selected by norms.
template <class T>
void expect_candidates_by_norms(GemmCase test) {
  std::size_t max_moduli = 0;
  bool checked = false;
  int single_candidates = 0;
  for (const char* distribution : {"uniform", "phi:0.5", "phi:1", "phi:2", "phi:6"}) {
    test.distribution = distribution;
    SCOPED_TRACE(describe(test));
    const Handle handle;
    GemmDataOf<T> data(test);
    DeviceGemm<T>(data).run_well(handle);
    const json report = handle.report();
    // Norms may prove one batch item and not another.
    if (report.at("candidates").size() > 1) continue;
    ++single_candidates;
    EXPECT_EQ(report.at("candidates").at(0).at("items"), test.batch) << report;
    checked = !is_by_norms(report);
    if (checked) continue;
    EXPECT_EQ(report.at("recomputed_elements"), 0) << report;
    const std::string scheme = scheme_of(report);
    const std::size_t moduli = std::stoul(scheme.substr(scheme.find("moduli=") + 7));
    EXPECT_GE(moduli, max_moduli);
    max_moduli = moduli;
    GemmCase on_host = test;
    on_host.engine = "reference";
    on_host.policy.clear();
    on_host.accuracy.clear();
    on_host.scheme = scheme;
    GemmDataOf<T> host(on_host);
    host.run_well();
    EXPECT_EQ(bits_of(data.result()), bits_of(host.result())) << scheme;
  }
  EXPECT_GE(single_candidates, 3);
  EXPECT_GT(max_moduli, 0U);
  EXPECT_TRUE(checked) << "phi:6";
}

TEST(DeviceChecked, CandidatesAreSelectedByNormsInSmallCases) {
  expect_candidates_by_norms<double>(emulated(60, 50, 1500, "", "fp64"));
  GemmCase test = emulated(140, 33, 300, "", "fp64");
  test.op_a = KINTSUGI_OP_T;
  test.op_b = KINTSUGI_OP_T;
  test.layout = KINTSUGI_ROW_MAJOR;
  test.batch = 2;
  test.alpha = -1.5;
  test.beta = 0.75;
  expect_candidates_by_norms<double>(test);
  expect_candidates_by_norms<double>(emulated(31, 40, 800, "", "1e-9"));
  expect_candidates_by_norms<std::complex<double>>(emulated(33, 21, 200, "", "fp64"));
}

// Complex FP32 has candidates of few moduli by norms, one of 16 moduli with a wide window, and native.
TEST(DeviceChecked, ComplexFp32TakesFewModuliInSmallCases) {
  for (const auto& [distribution, ending] :
       {std::pair("uniform", ":scale=norm"), std::pair("phi:0.5", ":scale=norm"),
        std::pair("graded-inner:25", "ozaki2:moduli=16"), std::pair("span:80", "native")}) {
    GemmCase test{
        .m = 70, .n = 33, .k = 500, .op_b = KINTSUGI_OP_C, .distribution = distribution, .policy = "emulate"};
    SCOPED_TRACE(describe(test));
    const Handle handle;
    GemmDataOf<std::complex<float>> data(test);
    DeviceGemm<std::complex<float>>(data).run_well(handle);
    EXPECT_TRUE(scheme_of(handle.report()).ends_with(ending)) << handle.report();
    expect_within<std::complex<float>>(test, (2 * 500 + 8) * 0x1p-24);
  }
}

TEST(DeviceChecked, Fp64KeepsItsContractOnAnyRangeInSmallCases) {
  for (const char* distribution : {"uniform", "uniform01", "phi:2", "phi:4", "type3", "graded:1000",
                                   "graded-inner:900", "diagonal:100", "gram-diagonal:1500", "crossed:60",
                                   "cancellation:60", "cancellation:300", "span:2000", "subnormal-mixed"}) {
    for (const std::int64_t k : {1, 3, 64, 257})
      expect_within<double>(emulated(13, 9, k, distribution, "fp64"), (static_cast<double>(k) + 8) * 0x1p-53);
  }
}

TEST(DeviceChecked, TolerancesAreKeptInSmallCases) {
  for (const char* distribution :
       {"uniform", "phi:1", "phi:4", "graded:200", "cancellation:60", "span:120"}) {
    for (const std::int64_t k : {7, 300}) {
      GemmCase test = emulated(40, 30, k, distribution, "1e-13");
      test.op_a = KINTSUGI_OP_T;
      test.batch = 2;
      expect_within<double>(test, 1e-13, {.pointers = true});
      test.accuracy = "1e-6";
      expect_within<double>(test, 1e-6);
      test.batch = 1;
      expect_within<std::complex<double>>(test, 1e-6);
      test.policy.clear();  // native is not proved for it
      test.accuracy = "3e-7";
      expect_within<float>(test, 3e-7);
    }
  }
}

// Sums cancel, so |AB| gives no lower bound of |A||B|; rows have few elements, so norms give none either. The
// product of magnitudes proves the elements.
TEST(DeviceChecked, CancellationIsProvedFromMagnitudesInSmallCases) {
  // A tolerance below the bound of native products, so that the candidates are all checked.
  GemmDataOf<double> data(emulated(150, 50, 64, "uniform", "1e-15"));
  for (std::int64_t p = 0; p < 32; ++p) {
    for (std::int64_t i = 0; i < 150; ++i) {
      if (p % 8 != 0) data.a()(i, p) = 0;
      data.a()(i, p + 32) = data.a()(i, p);
    }
    for (std::int64_t j = 0; j < 50; ++j) data.b()(p + 32, j) = -data.b()(p, j);
  }
  const Handle handle;
  DeviceGemm<double>(data).run_well(handle);
  EXPECT_EQ(handle.report().at("recomputed_elements"), 0) << handle.report();
  EXPECT_FALSE(is_by_norms(handle.report())) << handle.report();
  for (std::int64_t i = 0; i < 150; ++i) EXPECT_EQ(data.c()(i, 3), 0) << i;
}

TEST(DeviceChecked, ComplexFp64KeepsItsContractInSmallCases) {
  for (const char* distribution : {"uniform", "phi:3", "graded:300", "cancellation:60", "span:400"}) {
    GemmCase test = emulated(33, 21, 90, distribution, "fp64");
    test.op_b = KINTSUGI_OP_C;
    expect_within<std::complex<double>>(test, (2 * 90 + 8) * 0x1p-53);
  }
}

// An element's proof depends on its row and column only, not on blocks of C or batch position.
TEST(DeviceChecked, BitsDoNotDependOnRunBatchPositionOrLimit) {
  for (const char* accuracy : {"fp64", "1e-10"}) {
    GemmCase test = emulated(4300, 140, 50, "phi:3", accuracy);
    const auto bits = device_bits<double>(test);
    EXPECT_EQ(device_bits<double>(test), bits) << "another run";
    GemmCase batch = emulated(130, 70, 50, "phi:3", accuracy);
    const auto single_candidates = device_bits<double>(batch);
    batch.batch = 3;
    const auto all = device_bits<double>(batch);
    EXPECT_TRUE(std::equal(single_candidates.begin(), single_candidates.end(), all.begin()));
    GemmCase limited = test;
    limited.workspace_limit = std::int64_t{400} << 20;
    GemmDataOf<double> data(limited);
    DeviceGemm<double> device(data);
    const kintsugi_status status = device.run();
    if (status == KINTSUGI_WORKSPACE_TOO_SMALL) continue;
    ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
    device.fetch();
    EXPECT_EQ(bits_of(data.result()), bits);
  }
}

TEST(DeviceChecked, CallsCanBeCapturedInSmallCases) {
  for (const char* accuracy : {"exact", "fp64"}) {
    GemmCase test = emulated(130, 70, 90, "phi:4", accuracy);
    test.beta = 0.5;
    SCOPED_TRACE(describe(test));
    const Handle handle;
    const Stream stream;
    GemmDataOf<double> data(test);
    DeviceGemm<double> device(data, {.device_scalars = true, .queue = stream.queue()});
    const kintsugi_problem problem = device.problem();
    const kintsugi_options options = device.options();
    const kintsugi_operands operands = device.operands();
    kintsugi_plan plan = nullptr;
    ASSERT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    const CapturedCall call(stream, handle, plan, operands);
    const auto bits = device_bits<double>(test);
    for (int replay = 0; replay < 3; ++replay) {
      core::cuda::copy_to_device({}, device.c().data(), data.raw_c().data(),
                                 data.raw_c().size() * sizeof(double));
      call.replay();
      GemmDataOf<double> result(test);
      result.raw_c() = device.c().host();
      EXPECT_EQ(bits_of(result.result()), bits) << "replay " << replay;
    }
    kintsugi_plan_destroy(plan);
  }
}

}  // namespace
}  // namespace kintsugi::test
