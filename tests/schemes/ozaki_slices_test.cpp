// Tests how many slices, products and blocks of C ozaki-fp16 and ozaki-fp64 take.
#include <gtest/gtest.h>

#include <cmath>

#include "schemes/program.hpp"
#include "tests/schemes/correct_rounding.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

// Algorithm 3 of dgemm-tc, written anew from its text: rounded slices and sums in long double.
struct Count {
  int slices;
  bool exhausted;
};
Count counted(GemmDataOf<double>& data, int bits, double u) {
  const auto& test = data.test();
  std::vector<long double> weights(test.k);
  for (std::int64_t p = 0; p < test.k; ++p) {
    for (std::int64_t j = 0; j < test.n; ++j) weights[p] += std::fabs(data.b()(p, j));
  }
  int max_count = 0;
  bool any_exhausted = true;
  for (std::int64_t i = 0; i < test.m; ++i) {
    std::vector<long double> residuals(test.k);
    long double total = 0;
    for (std::int64_t p = 0; p < test.k; ++p) {
      residuals[p] = data.a()(i, p);
      total += std::fabs(residuals[p]) * weights[p];
    }
    bool satisfied = false;
    int d = 0;
    while (!satisfied) {
      long double largest = 0;
      for (const auto x : residuals) largest = std::max(largest, std::fabs(x));
      if (largest == 0) break;
      const long double grid = std::exp2(std::ceil(std::log2(largest)) - bits);
      long double slice = 0;
      for (std::int64_t p = 0; p < test.k; ++p) {
        const long double part = std::nearbyint(residuals[p] / grid) * grid;
        residuals[p] -= part;
        slice += std::fabs(part) * weights[p];
      }
      ++d;
      satisfied = d >= 2 && 2 * std::sqrt(static_cast<double>(test.k)) * u * total > (d + 1) * slice;
    }
    if (d >= max_count) any_exhausted = d > max_count ? !satisfied : any_exhausted || !satisfied;
    max_count = std::max(max_count, d);
  }
  return {max_count, any_exhausted};
}

json counts_of(GemmCase test) {
  GemmDataOf<double> data(test);
  const Handle handle;
  data.run_well(handle);
  return handle.report().at("error_free");
}

TEST(Ozaki, SliceCountsFollowAlgorithmThree) {
  for (const char* distribution :
       a_part_of({"phi:1", "graded:40", "uniform", "phi:0.1", "phi:2", "span:30"})) {
    for (const std::int64_t k : {30, 250, 1100}) {
      GemmCase test{.m = 12, .n = 10, .k = k, .distribution = distribution, .engine = "reference"};
      GemmDataOf<double> data(test);
      for (const bool wide : {false, true}) {
        test.scheme = wide ? "ozaki-fp64:mode=dp" : "ozaki-fp16";
        const int bits = static_cast<int>(std::floor(((wide ? 53 : 24) - std::ceil(std::log2(k))) / 2));
        const Count expected = counted(data, bits, 0x1p-53);
        const json counts = counts_of(test);
        const int d = expected.slices;
        EXPECT_EQ(counts.at("slices_a"), d) << distribution << " " << k;
        if (!expected.exhausted) {
          EXPECT_EQ(counts.at("fast_blocks"), 1);
          EXPECT_EQ(counts.at("products"), d * (d + 1) / 2);
        }
      }
    }
  }
}

// dgemm-tc, section 5.2: 66 products, so 11 slices, at n = 7168 and phi = 0.1. The integer grid needs one
// slice fewer.
TEST(Ozaki, GridOfSigmaTakesThePapersSlices) {
  GemmCase test{.m = 8, .n = 8, .k = 7168, .distribution = "phi:0.1", .engine = "reference"};
  test.accumulator = "fp32";
  for (const auto& [scheme, slices] :
       {std::pair{"ozaki-fp16:grid=sigma", 11}, std::pair{"ozaki-fp16:grid=integer", 10}}) {
    test.scheme = scheme;
    const json counts = counts_of(test);
    EXPECT_EQ(counts.at("slices_a"), slices) << scheme;
    EXPECT_EQ(counts.at("products"), slices * (slices + 1) / 2) << scheme;
  }
}

// Small integers have no residual before Algorithm 3 has enough slices: then no product is left out, and the
// result is exact.
TEST(Ozaki, FastModeKeepsAllProductsIfNoResidualIsLeft) {
  GemmCase test{.m = 20,
                .n = 20,
                .k = 60,
                .distribution = "integer:900",
                .scheme = "ozaki-fp16",
                .engine = "reference"};
  const json counts = counts_of(test);
  EXPECT_EQ(counts.at("fast_blocks"), 0);
  EXPECT_EQ(counts.at("products").get<double>(),
            counts.at("slices_a").get<double>() * counts.at("slices_b").get<double>());
  expect_correctly_rounded<double>(test, "ozaki-fp16");
}

// Row 3 has no residual left after as many slices as Algorithm 3 wants for the other rows, so all its
// products with B must be kept.
TEST(Ozaki, RowsWithoutAResidualKeepAllProducts) {
  GemmDataOf<double> data(GemmCase{
      .m = 4, .n = 8, .k = 1024, .distribution = "uniform01", .scheme = "ozaki-fp16", .engine = "reference"});
  for (std::int64_t p = 0; p < 1024; ++p) {
    for (std::int64_t i = 0; i < 3; ++i) data.a()(i, p) = std::ceil(data.a()(i, p) * 32768);
    data.a()(3, p) = p == 0 ? 1 : p == 1 ? 0x1p-60 : 0;
  }
  data.run_well();
  for (const auto& element : element_errors(data)) {
    ASSERT_LE(std::fabs(element.error), 0x1p-50 * element.absolute) << element.i;
  }
}

TEST(Ozaki, ParametersSetSlicesProductsAndBlocks) {
  GemmCase test{.m = 258, .n = 130, .k = 8, .engine = "reference"};
  test.scheme = "ozaki-fp16:slices=5";
  json counts = counts_of(test);
  EXPECT_EQ(counts.at("slices_a"), 5);
  EXPECT_EQ(counts.at("slices_b"), 5);
  EXPECT_EQ(counts.at("products"), 15);
  EXPECT_EQ(counts.at("blocks"), 1);
  test.scheme = "ozaki-fp16:slices=5:fast=off:block=128";
  counts = counts_of(test);
  EXPECT_EQ(counts.at("products"), 25);
  EXPECT_EQ(counts.at("blocks"), 6);  // 3 x 2 blocks of 86 x 65
  EXPECT_EQ(counts.at("fast_blocks"), 0);
  EXPECT_GE(counts.at("seconds").at("products"), 0);
}

// Every block has a number of slices of its own.
TEST(Ozaki, BlocksHaveTheirOwnSlices) {
  GemmCase test{.m = 256, .n = 20, .k = 40, .scheme = "ozaki-fp16:block=128", .engine = "reference"};
  GemmDataOf<double> data(test);
  for (std::int64_t i = 0; i < 128; ++i) {
    for (std::int64_t p = 0; p < 40; ++p) data.a()(i, p) = static_cast<double>(i % 7 - 3);
  }
  const Handle handle;
  data.run_well(handle);
  const json counts = handle.report().at("error_free");
  EXPECT_EQ(counts.at("blocks"), 2);
  EXPECT_EQ(counts.at("fast_blocks"), 1);
}

// k products of slices stay below 2^24 or 2^53; FP32 operands get mode sp, FP64 operands mode dp.
TEST(Ozaki, BitsOfASliceAndModeFitKAndType) {
  const auto bits = [](const char* scheme, core::OperandType type, std::int64_t k) {
    return core::fitted_program(*core::find_scheme(scheme), type, k).split_a.residual_exponent;
  };
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1), 11);
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1024), 7);
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1025), 6);
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1 << 24), 4);  // blocks of 65536
  EXPECT_EQ(bits("ozaki-fp16:k-block=1024", core::OperandType::f64, 1 << 24), 7);
  EXPECT_EQ(bits("ozaki-fp64", core::OperandType::f64, 2048), 21);
  EXPECT_EQ(bits("ozaki-fp64:k-block=64", core::OperandType::f64, std::int64_t{1} << 30), 16);
  using Mode = core::Ozaki1Parameters::Mode;
  EXPECT_EQ(core::fitted_program(*core::find_scheme("ozaki-fp16"), core::OperandType::f32, 9).ozaki1.mode,
            Mode::sp);
  EXPECT_EQ(core::fitted_program(*core::find_scheme("ozaki-fp16"), core::OperandType::f64, 9).ozaki1.mode,
            Mode::dp);
}

}  // namespace
}  // namespace kintsugi::test
