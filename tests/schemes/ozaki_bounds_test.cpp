// Error bounds of ozaki-fp16 and ozaki-fp64, and the errors that they allow.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/fuzz_promise.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

TEST(Ozaki, KeepsItsBounds) {
  for (const std::string scheme :
       {"ozaki-fp16", "ozaki-fp16:mode=sp", "ozaki-fp64:mode=dp", "ozaki-fp16:slices=1",
        "ozaki-fp16:slices=3", "ozaki-fp16:slices=3:fast=off", "ozaki-fp64:mode=dp:slices=2",
        "ozaki-fp16:grid=sigma", "ozaki-fp16:grid=sigma:slices=1", "ozaki-fp16:grid=sigma:slices=3"}) {
    for (const char* distribution :
         a_part_of({"phi:2", "subnormal", "uniform", "graded:40", "cancellation:30", "span:200"})) {
      for (const std::int64_t k : a_part_of({65, 1, 700})) {
        GemmDataOf<double> data(GemmCase{
            .m = 13, .n = 11, .k = k, .distribution = distribution, .scheme = scheme, .engine = "reference"});
        const Allowance<double> allowed(*core::find_scheme(scheme), *core::find_engine("reference"),
                                        constant(data.a()), constant(data.b()));
        data.run_well();
        for (const auto& element : element_errors(data))
          ASSERT_LE(std::abs(element.error), allowed(element)) << scheme << " " << distribution << " " << k;
      }
    }
  }
}

// All errors must be within the bound of the report, which depends on the slices that were taken.
void expect_reported_bound(GemmDataOf<double>& data) {
  const Handle handle;
  data.run_well(handle);
  const json adapted = handle.report().at("adapted");
  const auto norms_of = [&](core::MatrixView<const double> vectors, const char* split) {
    return measure::vector_norms(vectors, measure::split_window(fuzz::split_of(adapted.at(split))));
  };
  const measure::VectorNorms a = norms_of(constant(data.a()), "split_a");
  const measure::VectorNorms b = norms_of(constant(data.b()).transposed(), "split_b");
  const measure::BoundCoefficients bound = fuzz::coefficients_of(adapted.at("bound_in_window"));
  for (const auto& element : element_errors(data)) {
    EXPECT_LE(std::abs(element.error), measure::allowed_error<double>(bound, element, a, b))
        << "element (" << element.i << ", " << element.j << "), bound " << adapted.at("bound_in_window");
  }
}

// Two slices leave no residual of row 0, but Algorithm 3 of the DGEMM-TC paper wants more slices for it, so
// all slices of B are multiplied. Algorithm 3 is content with two slices of row 1, which leave a residual:
// that is an error that the bound must allow.
TEST(Ozaki, ReportedBoundCoversRowsWithAResidual) {
  for (const auto& [scheme, bits] :
       {std::pair{"ozaki-fp16:mode=sp", 11}, std::pair{"ozaki-fp64:mode=sp", 26}}) {
    SCOPED_TRACE(scheme);
    GemmDataOf<double> data(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = scheme, .engine = "reference"});
    const double below_first_slice = std::ldexp(1, -bits - 2);
    data.a()(0, 0) = data.a()(1, 0) = data.b()(0, 0) = 1;
    data.b()(0, 1) = data.b()(1, 0) = 0;
    data.b()(1, 1) = 0x1p10;
    data.a()(0, 1) = below_first_slice;
    data.a()(1, 1) = 0x1p-35 * (1 + below_first_slice);
    expect_reported_bound(data);
    EXPECT_EQ(data.c()(1, 1), 0x1p-25) << "the second slice is not the last of row 1";
  }
}

// Operands of zeros or special values have no slices; the bounds of the report still must not be negative.
TEST(Ozaki, BoundsWithoutSlicesAreNotNegative) {
  for (const std::string scheme : {"ozaki-fp16", "ozaki-fp64:mode=sp", "ozaki-fp64:mode=dp"}) {
    GemmDataOf<double> data(GemmCase{.m = 3, .n = 2, .k = 1, .scheme = scheme, .engine = "reference"});
    for (std::int64_t i = 0; i < 3; ++i) data.a()(i, 0) = 0;
    data.b()(0, 1) = std::numeric_limits<double>::infinity();
    const Handle handle;
    data.run_well(handle);
    const json bound = handle.report().at("adapted").at("bound_outside_window");
    for (const auto& [name, coefficient] : bound.items())
      EXPECT_GE(coefficient.get<double>(), 0) << scheme << " " << name;
  }
}

// Each product of slices that is left out, at its largest: |slice s| <= 2^(1 - s gain) u_i, s counted from 0
// (bound.cpp; gain = bits per slice + 1, u_i = 1).
TEST(Ozaki, BoundCoversAllProductsThatAreLeftOut) {
  constexpr std::int64_t k = 65536;
  for (const int d : {1, 2, 3, 4, 8, 32}) {
    const std::string scheme = "ozaki-fp16:slices=" + std::to_string(d);
    const auto program = core::fitted_program(*core::find_scheme(scheme), core::OperandType::f64, k);
    const int gain = program.split_a.residual_exponent + 1;
    const auto slice = [&](int s) { return std::ldexp(1, 1 - s * gain); };
    double left_out = slice(d) * slice(d);  // the residuals of A and B after d slices
    for (int p = 1; p < d; ++p) {
      for (int q = std::max(1, d - p); q < d; ++q) left_out += slice(p) * slice(q);
    }
    const core::ErrorBound bound = core::error_bound(program, core::Accumulator::fp32, k, true, true);
    EXPECT_GE(bound.floor_both, static_cast<double>(k) * left_out) << d;
    EXPECT_LE(bound.floor_both, static_cast<double>(k) * (1.1 * left_out + 0x1p-42)) << d;
  }
}

// Some error exceeds 2 % of the bound of two slices.
TEST(Ozaki, BoundIsWithinAFactorOfFiftyOfTheWorstError) {
  const std::string scheme = "ozaki-fp16:slices=2";
  GemmDataOf<double> data(GemmCase{.m = 40, .n = 40, .k = 1, .scheme = scheme, .engine = "reference"});
  const Allowance<double> allowed(*core::find_scheme(scheme), *core::find_engine("reference"),
                                  constant(data.a()), constant(data.b()));
  data.run_well();
  double worst = 0;
  for (const auto& element : element_errors(data))
    worst = std::max(worst, std::abs(element.error) / allowed(element));
  EXPECT_GT(worst, 0.02);
}

// Errors are at most twice what Algorithm 3 aims at for FP64 or FP32; its criterion is an estimate.
TEST(Ozaki, ReachesTheAccuracyOfItsMode) {
  for (const char* distribution : a_part_of({"phi:1", "phi:0.1", "phi:2"})) {
    for (const auto& [scheme, u] :
         {std::pair{"ozaki-fp16", 0x1p-53}, std::pair{"ozaki-fp16:mode=sp", 0x1p-24}}) {
      GemmDataOf<double> data(GemmCase{.m = 24,
                                       .n = 24,
                                       .k = 1000,
                                       .distribution = distribution,
                                       .scheme = scheme,
                                       .engine = "reference"});
      data.run_well();
      for (const auto& element : element_errors(data))
        ASSERT_LE(std::abs(element.error), 2 * std::sqrt(1000.0) * u * element.absolute)
            << scheme << distribution;
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
