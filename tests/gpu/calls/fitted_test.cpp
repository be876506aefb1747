// Tests residual exponents that the device fits to the operands: they give the bits of programs that the host
// fits.
#include <cmath>

#include "gpu/calls/device_stream.hpp"
#include "schemes/program.hpp"

namespace kintsugi::test {
namespace {

using core::DeviceReport;
using core::DeviceSelection;
using core::VectorRange;

VectorRange range_up_to(int largest) {
  VectorRange range;
  core::extend(range, std::ldexp(1.0, largest));
  return range;
}

// Tests every largest exponent that fp16 takes, in A or in B, with several planned residual exponents.
TEST(DeviceFit, FitEqualsTheHostsInSmallCases) {
  const core::Scheme& scheme = *core::find_scheme("h2sgemm:sb=eq6");
  for (int largest = -30; largest <= 16; ++largest) {
    for (const int planned : {0, 8, 12, 26, core::max_residual_exponent + 1}) {
      SCOPED_TRACE("largest exponent " + std::to_string(largest) + ", planned " + std::to_string(planned));
      core::DeviceCandidates candidates{
          {{.dynamic_range = 100, .exponent = 15}}, 1, true, *scheme.program.split_a.format, planned};
      const bool is_of_a = largest % 2 == 0;
      const DeviceArray<VectorRange> a(std::vector{range_up_to(is_of_a ? largest : -40)});
      const DeviceArray<VectorRange> b(std::vector{range_up_to(is_of_a ? -40 : largest)});
      const DeviceArray<DeviceSelection> selection(1);
      const DeviceArray<DeviceReport> report(std::vector<DeviceReport>(1));
      core::DeviceSide side_a, side_b;
      side_a.matrix.rows = side_b.matrix.rows = 1;
      side_a.ranges = a.data();
      side_b.ranges = b.data();
      core::cuda::select({}, side_a, side_b, {}, candidates, selection.data(), {report.data()});
      const DeviceSelection selected = selection.host()[0];
      const DeviceReport counts = report.host()[0];
      EXPECT_EQ(selected.candidate, largest <= 15 ? 0 : DeviceSelection::none);
      EXPECT_EQ(counts.fitted, largest <= 15 ? 1 : 0);
      EXPECT_EQ(counts.unreachable, largest <= 15 ? 0 : 1);
      if (largest > 15) continue;
      core::Program program = scheme.program;
      program.set_residual_exponent(planned, scheme.fitted_groups);
      core::RangeSummary summary;
      summary.largest = largest;
      scheme.adapt(program, summary, summary, 1);
      EXPECT_EQ(selected.fit.residual.residual_exponent, program.split_a.residual_exponent);
      EXPECT_EQ(selected.fit.residual.first_rounding, program.split_a.first_rounding);
      EXPECT_EQ(selected.fit.weight, std::ldexp(1.0F, -program.split_a.residual_exponent));
      EXPECT_EQ(counts.fit, selected.fit.residual);
    }
  }
}

// Multiplies A of every batch item by its own power of two.
void scale_items(GemmDataOf<float>& data, const GemmCase& test, const std::vector<int>& exponents) {
  for (std::int64_t t = 0; t < test.batch; ++t) {
    const float factor = std::ldexp(1.0F, exponents[static_cast<std::size_t>(t) % exponents.size()]);
    const MatrixView<float> a = data.a(t);
    for (std::int64_t p = 0; p < a.columns; ++p) {
      for (std::int64_t i = 0; i < a.rows; ++i) a(i, p) *= factor;
    }
    a(0, 0) = 0x1.fff8p0F * factor;  // rounds up to the next power of two in fp16
  }
}

// Host matrices on the engine cuda are fitted by the host.
std::vector<std::uint32_t> bits_fitted_by_the_host(const GemmCase& test, const std::vector<int>& exponents) {
  GemmCase on_host_memory = test;
  on_host_memory.engine = "cuda";
  GemmDataOf<float> data(on_host_memory);
  scale_items(data, on_host_memory, exponents);
  data.run_well();
  return bits_of(data.result());
}

void expect_bits_of_the_host(const GemmCase& test, const std::vector<int>& exponents, const DeviceRun& run) {
  SCOPED_TRACE(describe(test) + " first exponent " + std::to_string(exponents.front()));
  GemmDataOf<float> data(test);
  scale_items(data, test, exponents);
  const Handle handle;
  DeviceGemm<float>(data, run).run_well(handle);
  ASSERT_EQ(bits_of(data.result()), bits_fitted_by_the_host(test, exponents)) << handle.report();
  EXPECT_EQ(handle.report()["items_unreachable"], 0) << handle.report();
}

TEST(DeviceFit, ProductsHaveTheBitsOfTheHostsFitInSmallCases) {
  for (const char* scheme : {"h2sgemm", "h2sgemm:sb=eq6", "h2sgemm:sb=10", "h2sgemm:sb=0", "h2sgemm-element",
                             "h2sgemm-element:sb=eq6"}) {
    for (const std::vector<int>& exponents : {std::vector{0, -9, 14}, {15, 5, -30}, {-20, 13, 15}}) {
      for (const kintsugi_op op : {KINTSUGI_OP_N, KINTSUGI_OP_T}) {
        expect_bits_of_the_host(
            {.m = 70, .n = 131, .k = 99, .op_a = op, .pad_a = 1, .batch = 3, .beta = 0.5, .scheme = scheme},
            exponents, {.pointers = op == KINTSUGI_OP_T, .device_scalars = true});
      }
      expect_bits_of_the_host({.m = 300, .n = 64, .k = 2100, .op_b = KINTSUGI_OP_T, .scheme = scheme},
                              exponents, {});
    }
  }
}

TEST(DeviceFit, FitIsReportedInSmallCases) {
  for (const int exponent : {0, 15}) {
    GemmCase test{.m = 9, .n = 8, .k = 7, .scheme = "h2sgemm:sb=eq6"};
    const Handle handle;
    GemmDataOf<float> data(test);
    scale_items(data, test, {exponent});
    DeviceGemm<float>(data).run_well(handle);
    const json adapted = handle.report()["adapted"];
    ASSERT_FALSE(adapted.is_null()) << handle.report();
    EXPECT_EQ(adapted["split_a"]["residual_exponent"], exponent == 15 ? 10 : 26) << adapted;
    EXPECT_EQ(adapted["split_b"]["residual_exponent"], exponent == 15 ? 10 : 26) << adapted;
  }
  GemmCase as_planned{.m = 9, .n = 8, .k = 7, .scheme = "h2sgemm"};
  const Handle handle;
  GemmDataOf<float> data(as_planned);
  DeviceGemm<float>(data).run_well(handle);
  EXPECT_TRUE(handle.report()["adapted"].is_null()) << handle.report();
}

// Operands that would need a lower residual exponent than the given one.
TEST(DeviceFit, GivenExponentsAreKeptOrMakeNansInSmallCases) {
  GemmCase test{.m = 9, .n = 8, .k = 7, .batch = 2, .scheme = "h2sgemm:sb=13"};
  const Handle handle;
  GemmDataOf<float> data(test);
  scale_items(data, test, {13, 14});
  DeviceGemm<float>(data).run_well(handle);
  EXPECT_EQ(handle.report()["items_unreachable"], 1) << handle.report();
  EXPECT_FALSE(std::isnan(data.c(0)(0, 0)));
  EXPECT_TRUE(std::isnan(data.c(1)(0, 0)));
}

// B is prepared; A needs another residual exponent at each execution.
TEST(DeviceFit, PreparedOperandsAreFittedToTheOtherOperandInSmallCases) {
  GemmCase test{.m = 70, .n = 31, .k = 130, .scheme = "h2sgemm:sb=eq6"};
  for (const bool borrow : {false, true}) {
    for (const int exponent : {-3, 8, 15}) {
      SCOPED_TRACE("exponent " + std::to_string(exponent) + (borrow ? ", borrowed" : ", copied"));
      GemmDataOf<float> data(test);
      scale_items(data, test, {exponent});
      DeviceGemm<float> device(data);
      const auto problem = device.problem();
      const auto options = device.options();
      kintsugi_plan plan = nullptr;
      kintsugi_prepared b = nullptr;
      ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      kintsugi_operands operands = device.operands();
      const auto prepare = borrow ? kintsugi_prepare_borrowed : kintsugi_prepare;
      ASSERT_EQ(prepare(nullptr, plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      operands.prepared_b = b;
      ASSERT_EQ(kintsugi_plan_execute(nullptr, plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
      device.fetch();
      EXPECT_EQ(bits_of(data.result()), bits_fitted_by_the_host(test, {exponent}));
      kintsugi_prepared_destroy(b);
      kintsugi_plan_destroy(plan);
    }
  }
}

TEST(DeviceFit, ReplaysAreFittedToTheirOwnDataInSmallCases) {
  GemmCase test{.m = 70, .n = 31, .k = 130, .scheme = "h2sgemm-element:sb=eq6"};
  const Stream stream;
  GemmDataOf<float> data(test);
  DeviceGemm<float> device(data, {.queue = stream.queue()});
  const auto problem = device.problem();
  const auto options = device.options();
  kintsugi_plan plan = nullptr;
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  const kintsugi_operands operands = device.operands();
  const CapturedCall call(stream, nullptr, plan, operands);
  for (const int exponent : {0, 15, -12}) {
    GemmDataOf<float> scaled(test);
    scale_items(scaled, test, {exponent});
    core::cuda::copy_to_device({}, device.a().data(), scaled.raw_a().data(),
                               scaled.raw_a().size() * sizeof(float));
    call.replay();
    scaled.raw_c() = device.c().host();
    EXPECT_EQ(bits_of(scaled.result()), bits_fitted_by_the_host(test, {exponent})) << exponent;
  }
  kintsugi_plan_destroy(plan);
}

}  // namespace
}  // namespace kintsugi::test
