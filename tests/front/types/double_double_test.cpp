// Compares products of double-double matrices, through the C ABI, with MPFR.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "double_double_case.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/number_kind.hpp"

namespace kintsugi::test {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::string>& every_distribution() {
  static const std::vector<std::string> names{"uniform",
                                              "uniform01",
                                              "phi:0.5",
                                              "phi:2",
                                              "phi:4",
                                              "type1",
                                              "type4",
                                              "offset:-100",
                                              "graded:40",
                                              "graded-inner:60",
                                              "diagonal:100",
                                              "crossed:60",
                                              "span:60",
                                              "span:2000",
                                              "cancellation:30",
                                              "cancellation:100",
                                              "cancellation:200",
                                              "subnormal",
                                              "subnormal-mixed",
                                              "integer:9",
                                              "powers-of-two:60",
                                              "gram-diagonal:300"};
  return names;
}

// Draws scalars whose low words are not zero.
void draw_scalars(std::mt19937& random, GemmCase& test) {
  constexpr double scalars[] = {1, -1, 0.3, -1.7, 1e-9, 3e8};
  if (random() % 2 == 0) test.alpha = scalars[random() % 6], test.alpha_im = test.alpha * 0x1.23456789p-55;
  if (random() % 2 == 0) test.beta = scalars[random() % 6], test.beta_im = test.beta * -0x1.89abcdefp-57;
}

GemmCase drawn_case(std::mt19937& random, const std::string& distribution, std::int64_t k) {
  GemmCase test{.m = 5, .n = 4, .k = k, .distribution = distribution};
  draw_scalars(random, test);
  test.op_a = static_cast<kintsugi_op>(random() % 3);
  test.op_b = static_cast<kintsugi_op>(random() % 3);
  test.layout = static_cast<kintsugi_layout>(random() % 2);
  test.pad_a = static_cast<std::int64_t>(random() % 3);
  test.seed = random();
  return test;
}

void expect_correctly_rounded(PairData& data) {
  const PairReference reference(data);
  data.run_well();
  const std::vector<DoubleDouble> result = data.result();
  for (std::size_t e = 0; e < result.size(); ++e) {
    const DoubleDouble expected = rounded_pair(reference.values[e]);
    ASSERT_EQ(result[e].hi, expected.hi) << data.test().distribution << " k " << data.test().k << " at " << e;
    ASSERT_EQ(result[e].lo, expected.lo) << data.test().distribution << " k " << data.test().k << " at " << e;
  }
}

// Expects |C - R| <= coefficient (|alpha| |A||B| + |beta C|) + 2^-1073 and normalized pairs.
void expect_within(PairData& data, double coefficient) {
  const PairReference reference(data);
  data.run_well();
  const std::vector<DoubleDouble> result = data.result();
  for (std::size_t e = 0; e < result.size(); ++e) {
    if (std::isinf(result[e].hi)) {
      ASSERT_EQ(result[e].hi, rounded_pair(reference.values[e]).hi);
      continue;
    }
    const Mpfr allowed = Mpfr(coefficient) * reference.magnitudes[e] + power_of_two(-1073);
    const Mpfr excess = magnitude(exact_value(result[e]) - reference.values[e]) - allowed;
    ASSERT_LE(excess.sign(), 0) << data.test().distribution << " k " << data.test().k << " at " << e << ": "
                                << result[e].hi << " + " << result[e].lo;
    ASSERT_EQ(result[e].hi, result[e].hi + result[e].lo);
  }
}

TEST(DoubleDoubleGemm, ExactIsCorrectlyRounded) {
  std::mt19937 random(41);
  for (const std::string& engine : engines_here()) {
    for (const std::string& distribution : every_distribution()) {
      for (const std::int64_t k : {1, 7, 64}) {
        if (!thorough && k == 64) continue;
        GemmCase test = drawn_case(random, distribution, k);
        test.engine = engine;
        test.accuracy = "exact";
        PairData data(test);
        expect_correctly_rounded(data);
      }
    }
  }
}

// The contract is (k + 8) 2^-104 |A||B|.
TEST(DoubleDoubleGemm, TheDefaultContractIsKeptUnderEveryPolicy) {
  std::mt19937 random(42);
  for (const std::string& distribution : every_distribution()) {
    for (const std::int64_t k : {1, 2, 33}) {
      for (const char* policy : {"native", "emulate", "auto"}) {
        GemmCase test = drawn_case(random, distribution, k);
        test.beta = test.beta_im = 0;
        test.alpha = 1, test.alpha_im = 0;
        test.engine = engines_here().back();
        test.policy = policy;
        const bool underflows = distribution.starts_with("subnormal") || distribution == "span:2000";
        if (underflows && std::string(policy) == "native") continue;  // products below 2^-968 lose low words
        PairData data(test);
        expect_within(data, (static_cast<double>(k) + 8) * 0x1p-104);
      }
    }
  }
}

TEST(DoubleDoubleGemm, TolerancesTakeFewerModuli) {
  int products = 0;
  for (const char* accuracy : {"1e-12", "1e-20", "1e-30"}) {
    PairData data(GemmCase{.m = 8,
                           .n = 7,
                           .k = 50,
                           .distribution = "phi:1",
                           .engine = engines_here().back(),
                           .policy = "emulate",
                           .accuracy = accuracy});
    const json candidate = PlanOf(data).describe().at("candidates").at(0);
    EXPECT_GT(candidate.at("program").at("products"), products) << accuracy;
    products = candidate.at("program").at("products");
    expect_within(data, std::stod(accuracy));
  }
}

TEST(DoubleDoubleGemm, ExactIsCorrectlyRoundedForOverflowTiesAndSubnormals) {
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double below = 0x1p970 * (1 - 0x1p-53);  // the largest low word beside `huge`
  const std::vector<std::vector<std::pair<DoubleDouble, DoubleDouble>>> sums{
      {{{huge, below}, 1}},
      {{{huge, below}, 1}, {0x1p916, 0x1p-1}},     // a tie beside infinity
      {{{huge, below}, 1}, {0x1p916, 0x1p-2}},     // below it
      {{{huge, below}, 2}, {{huge, below}, -2}},   // 0
      {{{huge, below}, 2}, {{-huge, -below}, 1}},  // itself
      {{{1, 0x1p-54}, {1, 0x1p-54}}},              // 1 + 2^-53 + 2^-108
      {{1, 1}, {0x1p-500, 0x1p-500}},              // 1 + 2^-1000
      {{1, 1}, {0x1p-53, 1}},                      // a tie of hi
      {{1, 1}, {0x1p-53, 1}, {tiny, 1}},           // above it
      {{1, 1}, {0x1p-53, 1}, {tiny, -1}},          // below it
      {{1, 1}, {0x1p-53, 1}, {0x1p-106, 1}},
      {{{1 + 0x1p-52, 0}, 1}, {0x1p-53, 1}, {tiny, -1}},  // RN(x - hi) is half of hi's last place
      {{tiny, 0.5}},                                      // a tie: zero
      {{tiny, 0.5}, {tiny, tiny}},                        // above it
      {{0x1p-1000, 1}, {tiny, 0.75}},
      {{1, 0}},
  };
  for (const std::string& engine : engines_here()) {
    for (std::size_t s = 0; s < sums.size(); ++s) {
      PairData data(GemmCase{.k = std::ssize(sums[s]), .engine = engine, .accuracy = "exact"});
      for (std::size_t p = 0; p < sums[s].size(); ++p) {
        data.a()(0, static_cast<std::int64_t>(p)) = sums[s][p].first;
        data.b()(static_cast<std::int64_t>(p), 0) = sums[s][p].second;
      }
      SCOPED_TRACE(s);
      expect_correctly_rounded(data);
    }
  }
}

// Double-double arithmetic turns an overflow into NaN; the native product gives the infinity or the finite
// sum.
TEST(DoubleDoubleGemm, NativeOverflowsOnlyIfTheExactResultDoes) {
  for (const std::string& engine : engines_here()) {
    PairData data(GemmCase{.m = 2, .k = 2, .engine = engine, .policy = "native"});
    const double huge = std::numeric_limits<double>::max();
    data.a()(0, 0) = data.a()(0, 1) = data.a()(1, 0) = huge;
    data.a()(1, 1) = -huge;
    data.b()(0, 0) = data.b()(1, 0) = {1.5, 0x1p-60};
    data.run_well();
    EXPECT_EQ(data.c()(0, 0), DoubleDouble(infinity));
    EXPECT_EQ(data.c()(1, 0), DoubleDouble(0));
  }
}

TEST(DoubleDoubleGemm, SpecialValuesFollowTheTable) {
  for (const char* policy : {"native", "emulate"}) {
    for (const std::string& engine : engines_here()) {
      PairData data(GemmCase{.m = 3, .n = 2, .k = 4, .engine = engine, .policy = policy});
      data.a()(0, 1) = {not_a_number, 3};
      data.a()(1, 2) = {-infinity, not_a_number};  // its low word is not read
      data.b()(2, 0) = {2, 0x1p-60};
      data.b()(2, 1) = 0;
      data.run_well();
      EXPECT_TRUE(std::isnan(data.c()(0, 0).hi) && std::isnan(data.c()(0, 1).hi));
      EXPECT_EQ(data.c()(1, 0), DoubleDouble(-infinity)) << policy << engine;
      EXPECT_TRUE(std::isnan(data.c()(1, 1).hi));
      EXPECT_TRUE(std::isfinite(data.c()(2, 0).hi) && std::isfinite(data.c()(2, 1).hi));
    }
  }
}

TEST(DoubleDoubleGemm, AlphaOfZeroScalesKeepsOrClearsC) {
  GemmCase test{.m = 3, .n = 2, .k = 5, .alpha = 0, .beta = 1.7, .beta_im = 0x1.3p-55};
  PairData data(test);
  expect_correctly_rounded(data);
  test.beta = 1, test.beta_im = 0;
  PairData kept(test);
  kept.c()(1, 1) = {not_a_number, 5};
  const auto before = bits_of(kept.raw_c());
  kept.run_well();
  EXPECT_EQ(bits_of(kept.raw_c()), before);
  test.beta = 0;
  PairData cleared(test);
  cleared.run_well();
  for (const DoubleDouble& x : cleared.result()) EXPECT_EQ(x, DoubleDouble(0));
}

// A pair that is not normalized counts as the sum of its words.
TEST(DoubleDoubleGemm, AnyPairCountsAsItsSum) {
  for (const char* policy : {"native", "emulate"}) {
    GemmCase test{.m = 4, .n = 3, .k = 6, .engine = engines_here().back(), .policy = policy};
    PairData normalized(test), unnormalized(test);
    for (std::int64_t p = 0; p < 6; ++p) {
      for (std::int64_t i = 0; i < 4; ++i) {
        unnormalized.a()(i, p) = {0.5, static_cast<double>(i - p)};
        normalized.a()(i, p) = static_cast<double>(i - p) + 0.5;
      }
    }
    normalized.run_well();
    unnormalized.run_well();
    EXPECT_EQ(bits_of(unnormalized.result()), bits_of(normalized.result())) << policy;
  }
}

TEST(DoubleDoubleGemm, NamedSchemesAreTakenOrRefused) {
  for (const char* scheme : {"ozaki2:moduli=49", "superaccumulator"}) {
    PairData data(GemmCase{.m = 6, .n = 5, .k = 20, .scheme = scheme, .engine = engines_here().back()});
    expect_correctly_rounded(data);
  }
  PairData by_type(GemmCase{.m = 6, .n = 5, .k = 20, .scheme = "ozaki2"});
  EXPECT_EQ(PlanOf(by_type).describe().at("candidates").at(0).at("program").at("products"), 30);
  expect_within(by_type, 0x1p-100);
  PairData sixteen(GemmCase{.m = 6, .n = 5, .k = 20, .scheme = "ozaki2:moduli=16"});
  EXPECT_EQ(PlanOf(sixteen).describe().at("candidates").at(0).at("program").at("products"), 16);
  PairData refused(GemmCase{.scheme = "int52"});
  EXPECT_EQ(refused.run(), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("scheme int52 does not take dd operands"));
}

}  // namespace
}  // namespace kintsugi::test
