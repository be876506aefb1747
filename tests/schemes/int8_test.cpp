// Integer programs: exact sums, the same bits everywhere, and no wrap of an int32 accumulator.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "schemes/bound.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

const std::vector<std::string> integer_schemes{"int8x6", "quantensor", "quantensor:slices=1",
                                               "quantensor:slices=3"};

GemmData product(GemmCase test, const std::string& scheme, const std::string& engine) {
  test.scheme = scheme;
  test.engine = engine;
  GemmData data(test);
  data.run_well();
  return data;
}

TEST(IntegerPrograms, GiveTheSameBitsOnEveryEngine) {
  for (const std::string& scheme : integer_schemes) {
    for (const char* distribution : a_part_of({"uniform", "phi:2", "subnormal", "offset:100"})) {
      const GemmCase test{.m = 37, .n = 29, .k = 1500, .distribution = distribution};
      EXPECT_EQ(bits_of(product(test, scheme, "reference").result()),
                bits_of(product(test, scheme, "cpu").result()))
          << scheme << " " << distribution;
    }
  }
}

TEST(IntegerPrograms, KeepTheirBitsUnderPermutationsOfK) {
  for (const std::string& scheme : integer_schemes) {
    const GemmCase test{.m = 6, .n = 5, .k = 301, .distribution = "phi:1", .scheme = scheme, .engine = "cpu"};
    GemmData plain(test), permuted(test);
    for (std::int64_t p = 0; p < 301; ++p) {
      const std::int64_t source = p * 8 % 301;  // 8 is a unit modulo 301 = 7 * 43
      for (std::int64_t i = 0; i < 6; ++i) permuted.a()(i, p) = plain.a()(i, source);
      for (std::int64_t j = 0; j < 5; ++j) permuted.b()(p, j) = plain.b()(source, j);
    }
    plain.run_well();
    permuted.run_well();
    EXPECT_EQ(bits_of(plain.result()), bits_of(permuted.result())) << scheme;
  }
}

// All elements +-127, k on both sides of the limit of an int32: sums are added outside the accumulators
// before they wrap.
TEST(IntegerPrograms, LongSumsOfTheLargestDigitsAreExact) {
  if (!thorough) GTEST_SKIP() << "long sums";
  // 126.5 is 127 2^0 - 128 2^-8 on the grid, and 126 + 64 2^-7 quantised, without the product of the
  // residuals where there are two slices.
  const std::map<std::string, double> products{{"int8x6", 126.5 * 126.5},
                                               {"quantensor:slices=1", 126.0 * 126.0},
                                               {"quantensor", 126.5 * 126.5 - 0.25},
                                               {"quantensor:slices=3", 126.5 * 126.5}};
  for (const auto& [scheme, product] : products) {
    const auto check = [&](const char* engine, std::int64_t k) {
      GemmData data(GemmCase{.m = 1, .n = 2, .k = k, .scheme = scheme, .engine = engine});
      for (std::int64_t p = 0; p < k; ++p) {
        data.a()(0, p) = 126.5F;
        data.b()(p, 0) = 126.5F;
        data.b()(p, 1) = -126.5F;
      }
      data.run_well();
      EXPECT_EQ(data.c()(0, 0), static_cast<float>(product * static_cast<double>(k)))
          << scheme << ", k = " << k;
      EXPECT_EQ(data.c()(0, 1), -data.c()(0, 0));
    };
    for (const std::int64_t k : {131071, 131072, 133144, 133145, 300000}) check("reference", k);
    check("cpu", 133145);
  }
}

// The bound depends on the accumulator: without k-blocks, three terms of 2^15 indices could wrap.
TEST(IntegerPrograms, HaveNoBoundIfSumsCouldWrap) {
  core::Program program = core::find_scheme("int8x6")->program;
  const auto relative = [&](std::int64_t k) {
    return core::error_bound(program, core::Accumulator::int32, k, true, true).relative;
  };
  EXPECT_LT(relative(1 << 20), 1e-15);
  program.schedule.k_block = 0;
  EXPECT_LT(relative(43690), 1e-15);
  EXPECT_TRUE(std::isinf(relative(43691)));
}

// These schemes lose more than one fp32 product may, so the planner never selects them for fp32.
TEST(IntegerPrograms, DoNotReachFp32) {
  EXPECT_GT(core::split_loss(core::find_scheme("int8x6")->program),
            core::contract_of_type(core::OperandType::f32, 1));
  EXPECT_LT(core::split_loss(core::find_scheme("int8x6")->program), 0x1p-18);
  EXPECT_GT(core::split_loss(core::find_scheme("quantensor")->program), 0x1p-14);
}

TEST(Quantensor, EverySliceGainsSevenBits) {
  double last = 1;
  for (const int slices : {1, 2, 3}) {
    const std::string scheme = "quantensor:slices=" + std::to_string(slices);
    GemmData data = product({.m = 40, .n = 40, .k = 200}, scheme, "reference");
    const double frobenius = frobenius_error(element_errors(data));
    EXPECT_LT(frobenius, last / 50) << slices;
    last = frobenius;
  }
  EXPECT_LT(last, 1e-6);
}

}  // namespace
}  // namespace kintsugi::test
