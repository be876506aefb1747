// Tests that every scheme stays within its own a-priori bound, element by element, on every distribution.
#include "schemes/bound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/scheme_bound.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core {
namespace {

using test::element_errors;
using test::GemmCase;
using test::GemmData;

struct BoundCase {
  const Scheme* scheme;
  const Engine* engine;
  Accumulator accumulator;
};

std::vector<BoundCase> bound_cases() {
  std::vector<BoundCase> cases;
  for (const Scheme* scheme : all_schemes()) {
    if (!test::worth_the_time(scheme->name)) continue;
    for (const Engine* engine : all_engines()) {
      if (!engine->unavailable_reason().empty()) continue;
      for (const Accumulator accumulator : engine->accumulators(scheme->program.format().id)) {
        // The planner offers none of these: they need subnormal slices.
        if (is_direct(scheme->program) && flushes_subnormals(accumulator)) continue;
        cases.push_back({scheme, engine, accumulator});
      }
    }
  }
  return cases;
}

class SchemeBound : public testing::TestWithParam<BoundCase> {
 protected:
  // Largest error over allowed error; -1 when an operand overflows a slice and nothing is promised.
  double worst_ratio(const std::string& distribution, std::int64_t k, std::uint64_t seed) {
    const auto& [scheme, engine, accumulator] = GetParam();
    GemmData data(GemmCase{.m = 13,
                           .n = 11,
                           .k = k,
                           .distribution = distribution,
                           .seed = seed,
                           .scheme = std::string(scheme->name),
                           .engine = std::string(engine->name()),
                           .accumulator = accumulator_name(accumulator)});
    const test::Allowance<float> allowed(*scheme, *engine, test::constant(data.a()), test::constant(data.b()),
                                         accumulator);
    if (allowed.overflows()) return -1;
    EXPECT_EQ(data.run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    double worst = 0;
    for (const auto& element : element_errors(data)) {
      worst = std::max(worst, std::abs(element.error) / allowed(element));
    }
    return worst;
  }
};

TEST_P(SchemeBound, HoldsOnEveryDistribution) {
  const char* distributions[] = {"uniform",
                                 "uniform01",
                                 "phi:0.5",
                                 "phi:1",
                                 "phi:2",
                                 "phi:4",
                                 "type1",
                                 "type2",
                                 "type3",
                                 "type4",
                                 "offset:-10",
                                 "offset:-30",
                                 "offset-nonnegative:-14",
                                 "graded:40",
                                 "graded-inner:30",
                                 "diagonal:20",
                                 "span:16",
                                 "span:17",
                                 "span:28",
                                 "span:29",
                                 "span:60",
                                 "cancellation:20",
                                 "subnormal",
                                 "subnormal-mixed",
                                 "integer:9",
                                 "powers-of-two:12"};
  std::uint64_t seed = 100;
  for (const char* distribution : distributions) {
    for (const std::int64_t k : {1, 65, 2, 5, 17, 64, 200}) {
      if (!test::thorough && k != 65) continue;
      EXPECT_LE(worst_ratio(distribution, k, ++seed), 1) << distribution << ", k = " << k;
    }
  }
}

TEST_P(SchemeBound, HoldsForLongSums) {
  for (const char* distribution : {"uniform", "uniform01", "phi:2"}) {
    EXPECT_LE(worst_ratio(distribution, test::thorough ? 4096 : 700, 7), 1) << distribution;
  }
}

// Some inputs come near to the bound, so the tests above would see a larger error.
TEST_P(SchemeBound, IsWithinAFactorOfFourOfTheWorstError) {
  if (GetParam().scheme->program.split_a.kind == SplitKind::successive)
    GTEST_SKIP()
        << "a-priori bounds hold for two slices only; ozaki_bounds_test.cpp tests those of all slices";
  if (GetParam().scheme->program.split_a.kind == SplitKind::direct_residuals)
    GTEST_SKIP() << "the bound is the contract; engines/direct_products_test.cpp comes near to it";
  // Tiles of one inner index fail Eq. 9 of MixPert, and the half-precision program hardly errs.
  const std::int64_t k = GetParam().scheme->program.split_a.kind == SplitKind::tiles ? 4 : 1;
  double worst = 0;
  for (std::uint64_t seed = 1; seed < 200 && worst <= 0.25; ++seed)
    worst = std::max(worst, worst_ratio("uniform", k, seed));
  EXPECT_GT(worst, 0.25);
}

INSTANTIATE_TEST_SUITE_P(All, SchemeBound, testing::ValuesIn(bound_cases()), [](const auto& test) {
  std::string name = std::string(test.param.scheme->name) + "_" + std::string(test.param.engine->name()) +
                     "_" + accumulator_name(test.param.accumulator);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Windows, EqualThoseOfThePagesInDocsSchemes) {
  EXPECT_EQ(window_range(find_scheme("fp16x3")->program.split_a), 16);
  EXPECT_EQ(window_range(find_scheme("fp16x3-wide")->program.split_a), 28);
  const SplitRule& fp16_rule = find_scheme("fp16")->program.split_a;
  EXPECT_TRUE(in_window(fp16_rule, {.dynamic_range = 28, .largest = 14, .smallest = -14}));
  EXPECT_FALSE(in_window(fp16_rule, {.dynamic_range = 28, .largest = 14, .smallest = -15}));
  EXPECT_FALSE(in_window(fp16_rule, {.dynamic_range = 28, .largest = 15, .smallest = 0}));
  EXPECT_TRUE(can_overflow(fp16_rule, {.dynamic_range = 28, .largest = 15, .smallest = 0}));
  EXPECT_FALSE(can_overflow(find_scheme("fp16x3")->program.split_a,
                            {.dynamic_range = 99, .largest = 127, .smallest = 0}));
}

// Rounds a scaled element to the slices' sum, in units where its vector's maximum is 2^14.
double split_sum(const SplitRule& rule, double x) {
  double sum = 0;
  split_element(rule, x, 0, [&](int s, std::uint64_t pattern) {
    sum += std::ldexp(decode(*rule.format, pattern), -s * rule.residual_exponent);
  });
  return sum;
}

// Inside the window every element keeps its bits; in the binade below it some elements do not.
TEST(Windows, EndWhereElementsLoseBits) {
  for (const char* name : {"fp16x3", "fp16x3-wide"}) {
    const SplitRule& rule = find_scheme(name)->program.split_a;
    const auto worst_in_binade = [&](int exponent) {
      double worst = 0;
      for (int i = 0; i < (1 << 23); i += test::thorough ? 3 : 101) {
        const double x = std::ldexp(1.0 + std::ldexp(i, -23), exponent);
        worst = std::max(worst, std::abs(x - split_sum(rule, x)) / std::ldexp(1.0, exponent));
      }
      return worst;
    };
    const int lowest = 14 - window_range(rule);
    EXPECT_LE(worst_in_binade(lowest), 0x1p-23) << name;
    EXPECT_GE(worst_in_binade(lowest - 1), 0x1p-22) << name;
  }
}

// k = 1 and 2 can miss the fp32 contract under H200 accumulation, by 11 % and 5 %: found by climbing
// from random starts. The planner does not claim it there (below).
TEST(Contract, HasCounterexamplesBelowItsProof) {
  const std::vector<std::vector<float>> xs{{0x1.001ffap+14F}, {0x1.001ffap+14F, 0x1.7fbd54p+2F}};
  const std::vector<std::vector<float>> ys{{0x1.005ffap+14F}, {0x1.001ffap+14F, 0x1.804aacp+3F}};
  const double expected[] = {1.10, 1.04};
  for (std::size_t c = 0; c < xs.size(); ++c) {
    const auto k = static_cast<std::int64_t>(xs[c].size());
    GemmData data(GemmCase{
        .m = 1, .n = 1, .k = k, .scheme = "fp16x3-wide", .engine = "reference", .accumulator = "h200"});
    for (std::int64_t p = 0; p < k; ++p) {
      data.a()(0, p) = xs[c][p];
      data.b()(p, 0) = ys[c][p];
    }
    data.run_well();
    const auto element = element_errors(data).front();
    EXPECT_GT(std::abs(element.error) / (contract_of_type(OperandType::f32, k) * element.absolute),
              expected[c])
        << "k = " << k;
  }
}

// The fp32 contract is proved from k = 5 or 66 on, depending on the accumulator.
TEST(Contract, IsProvedFromSmallLengthsOn) {
  for (const char* name : {"fp16x3", "fp16x3-wide"}) {
    const Program& program = find_scheme(name)->program;
    const int span = window_range(program.split_a);
    const auto proved = [&](Accumulator accumulator, std::int64_t k) {
      return relative_bound(program, error_bound(program, accumulator, k, true, true), OperandType::f32, k,
                            span, span) <= contract_of_type(OperandType::f32, k);
    };
    for (std::int64_t k = 1; k <= 100000; k = k < 200 ? k + 1 : k * 5 / 4) {
      EXPECT_EQ(proved(Accumulator::h200, k), k >= 5) << name << " " << k;
      EXPECT_EQ(proved(Accumulator::fp32, k), k >= 66) << name << " " << k;
    }
  }
}

// A vector of random numbers as a split scales it, with its range and mean depth.
struct DepthVector {
  std::vector<double> elements;
  RangeSummary summary;
};

// One element in ten is zero for each of `zeros`; all others lie within `widest` + 1 binades.
DepthVector draw_depth_vector(measure::Random& random, std::int64_t k, std::int64_t widest,
                              std::int64_t zeros, int top_exponent) {
  DepthVector vector;
  VectorRange range;
  for (std::int64_t p = 0; p < k; ++p) {
    const bool zero = random.integer(0, 9) < zeros;
    vector.elements.push_back(
        zero ? 0 : std::ldexp(1 + random.unit(), -static_cast<int>(random.integer(0, widest))));
    extend(range, vector.elements.back());
  }
  range.depth = 0;
  for (double& x : vector.elements) {
    if (x == 0) continue;
    ++range.elements;
    range.depth += range.largest - std::ilogb(x);
    x = std::ldexp(x, top_exponent - range.largest);
  }
  vector.summary = summarize({&range, 1});
  return vector;
}

// The bound of a sum of products at its mean depth covers the bounds of all its products; those of zeros lose
// nothing.
void expect_depth_covers(const Program& program, const DepthVector& a, const DepthVector& b, int depth) {
  const auto k = static_cast<std::int64_t>(a.elements.size());
  const ErrorBound bound = error_bound(program, Accumulator::h200, k, false, false);
  double magnitudes = 0;
  double floors = 0;
  for (std::size_t p = 0; p < a.elements.size(); ++p) {
    const double x = a.elements[p];
    const double y = b.elements[p];
    if (x == 0 || y == 0) continue;
    magnitudes += x * y;
    floors += bound.floor_a * y + bound.floor_b * x + bound.floor_both / static_cast<double>(k);
  }
  EXPECT_LE(bound.relative * magnitudes + floors,
            bound_at_depth(program, bound, OperandType::f32, k, depth) * magnitudes)
      << "k = " << k << ", depth " << depth;
}

TEST(Depth, BoundCoversTheSumOfItsProducts) {
  measure::Random random(std::random_device{}());
  const Program& program = find_scheme("fp16x3")->program;
  const int top = program.split_a.top_exponent;
  int proved = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::int64_t k = random.integer(1, 60);
    const std::int64_t widest = random.integer(0, 40);
    const std::int64_t zeros = random.integer(0, 3);
    const DepthVector a = draw_depth_vector(random, k, widest, zeros, top);
    const DepthVector b = draw_depth_vector(random, k, widest, zeros, top);
    int depth = 0;
    while (depth < 100 && !are_within_depth(a.summary, b.summary, k, depth)) ++depth;
    if (depth == 100) continue;
    ++proved;
    expect_depth_covers(program, a, b, depth);
  }
  EXPECT_GT(proved, 1000);
}

TEST(Depth, IsLimitedByNonZeroPairsAndUnknownDepths) {
  const RangeSummary deep{.min_elements = 100, .depth = 800};
  const RangeSummary level{.min_elements = 100, .depth = 0};
  EXPECT_TRUE(are_within_depth(deep, level, 100, 8));
  EXPECT_FALSE(are_within_depth(deep, level, 100, 7));
  EXPECT_FALSE(are_within_depth(deep, level, 150, 8)) << "of 150 indices only 50 need have two non-zeros";
  EXPECT_TRUE(are_within_depth(deep, level, 150, 16));
  EXPECT_FALSE(are_within_depth(level, level, 200, 100))
      << "the 100 non-zeros of each may be at different indices";
  const RangeSummary unknown{.min_elements = 100, .depth = VectorRange::unknown_depth};
  EXPECT_FALSE(are_within_depth(level, unknown, 100, 1 << 30));
  EXPECT_FALSE(are_within_depth(unknown, level, 100, 1 << 30));
  EXPECT_TRUE(are_within_depth(summarize({}), deep, 100, 8)) << "zeros lose nothing";
}

}  // namespace
}  // namespace kintsugi::core
