// Integer programs: exact sums, the same bits everywhere, and no wrap of an int32 accumulator.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "schemes/bound.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

const std::vector<std::string> integer_schemes{"int8x6",
                                               "quantensor",
                                               "quantensor:slices=1",
                                               "quantensor:slices=3",
                                               "quantensor:slices=1:scale=max",
                                               "quantensor:scale=max",
                                               "quantensor:slices=3:scale=max"};

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
  double last_by_maxima = 1;
  for (const int slices : {1, 2, 3}) {
    const auto error_of = [&](const std::string& scheme) {
      GemmData data = product({.m = 40, .n = 40, .k = 200}, scheme, "reference");
      return frobenius_error(element_errors(data));
    };
    const std::string scheme = "quantensor:slices=" + std::to_string(slices);
    const double frobenius = error_of(scheme);
    const double by_maxima = error_of(scheme + ":scale=max");
    EXPECT_LT(frobenius, last / 50) << slices;
    EXPECT_LT(by_maxima, std::min(frobenius, last_by_maxima / 50)) << slices;
    last = frobenius;
    last_by_maxima = by_maxima;
  }
  EXPECT_LT(last, 1e-6);
}

// ---------------------------------------------------------------- scale=max by plain loops

// Slices and weights of one vector of FP32 numbers, without a power of two.
struct PlainSlices {
  std::vector<std::vector<int>> integers;
  std::vector<double> weights;

  PlainSlices(std::vector<double> residuals, int slices) {
    for (int s = 0; s < slices; ++s) {
      double largest = 0;
      for (const double r : residuals) largest = std::max(largest, std::fabs(r));
      weights.push_back(static_cast<double>(static_cast<float>(largest / 127)));
      integers.emplace_back();
      for (double& r : residuals) {
        const double integer = weights.back() == 0 ? 0 : std::nearbyint(r / weights.back());
        integers.back().push_back(static_cast<int>(integer));
        r -= integer * weights.back();
      }
    }
  }
};

double plain_element(const PlainSlices& a, const PlainSlices& b, int slices) {
  // The order of the groups: schemes/quantensor.hpp.
  static const std::vector<std::pair<std::size_t, std::size_t>> terms{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2},
                                                                      {2, 0}, {1, 2}, {2, 1}, {2, 2}};
  double sum = 0;
  const std::size_t count = slices == 1 ? 1 : slices == 2 ? 3 : 9;
  for (std::size_t g = 0; g < count; ++g) {
    const auto [s, t] = terms[g];
    std::int64_t integer = 0;
    for (std::size_t p = 0; p < a.integers[s].size(); ++p)
      integer += std::int64_t{a.integers[s][p]} * b.integers[t][p];
    sum += a.weights[s] * b.weights[t] * static_cast<double>(integer);
  }
  return sum;
}

TEST(QuantensorByMaxima, GivesThePlainLoopsBits) {
  std::mt19937_64 random(66);
  const auto to = [&](int most) { return static_cast<std::int64_t>(1 + random() % most); };
  for (int round = 0; round < 60; ++round) {
    const int slices = 1 + round % 3;
    const GemmCase test{.m = to(20),
                        .n = to(20),
                        .k = to(300),
                        .layout = round % 2 == 0 ? KINTSUGI_COLUMN_MAJOR : KINTSUGI_ROW_MAJOR,
                        .distribution = round % 4 == 0 ? "phi:1" : "uniform",
                        .seed = random()};
    GemmData data = product(test, "quantensor:slices=" + std::to_string(slices) + ":scale=max",
                            round % 5 == 0 ? "reference" : "cpu");
    for (std::int64_t i = 0; i < test.m; ++i) {
      for (std::int64_t j = 0; j < test.n; ++j) {
        std::vector<double> a, b;
        for (std::int64_t p = 0; p < test.k; ++p) {
          a.push_back(data.a()(i, p));
          b.push_back(data.b()(p, j));
        }
        const double expected = plain_element({a, slices}, {b, slices}, slices);
        ASSERT_EQ(data.c()(i, j), static_cast<float>(expected)) << round << ": " << i << ", " << j;
      }
    }
  }
}

// A vector of one element is that element in every slice count: 127 times its weight.
TEST(QuantensorByMaxima, KeepsSingleElements) {
  for (const float x : {1.0F, -3.0F, 0x1p-140F, 0x1.fffffep127F, 0.0F}) {
    GemmData data(
        GemmCase{.m = 1, .n = 1, .k = 1, .scheme = "quantensor:slices=3:scale=max", .engine = "cpu"});
    data.a()(0, 0) = x;
    data.b()(0, 0) = 1;
    data.run_well();
    EXPECT_EQ(data.c()(0, 0), x);
  }
}

TEST(QuantensorByMaxima, IsRefusedWithOtherParameters) {
  for (const char* name : {"quantensor:scale=min", "quantensor:scale", "quantensor:slices=4:scale=max"})
    EXPECT_THROW(core::find_scheme(name), core::Error) << name;
}

}  // namespace
}  // namespace kintsugi::test
