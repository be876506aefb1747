// Tests h2sgemm's Eqs. 3-5 against values by hand, a count of all residuals, and a simulation.
#include "lab/numerics/underflow.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/status.hpp"

namespace kintsugi::lab {
namespace {

TEST(Underflow, LeadingZerosEqualValuesByHand) {
  const auto p = [](int n) {
    return leading_zeros_probability(n, HighPart::truncated) +
           leading_zeros_probability(n, HighPart::rounded_up);
  };
  EXPECT_EQ(p(-2), 0);
  EXPECT_EQ(p(-1), 0x1p-13);
  EXPECT_EQ(p(0), 0.5);
  EXPECT_EQ(p(11), 0x1p-12);
  EXPECT_EQ(p(12), 0x1p-13);
  EXPECT_EQ(leading_zeros_probability(12, HighPart::rounded_up), 0);
  EXPECT_EQ(p(13), 0);
  double sum = 0;
  for (int n = -1; n <= 12; ++n) sum += p(n);
  EXPECT_EQ(sum, 1);
}

// Counts all 2^13 residuals below an even and below an odd high part.
TEST(Underflow, LeadingZerosEqualTheCountOfAllResiduals) {
  int counts[2][14] = {};
  for (int bits = 0; bits < 1 << 14; ++bits) {
    const int last = bits >> 13;  // last bit of the high part
    const int below = bits & 0x1fff;
    const bool up = below > 0x1000 || (below == 0x1000 && last == 1);
    const int residual = up ? 0x2000 - below : below;
    const int n = residual == 0 ? 12 : 12 - std::bit_width(static_cast<unsigned>(residual));
    ++counts[up ? 1 : 0][n + 1];
  }
  for (int n = -1; n <= 12; ++n) {
    EXPECT_EQ(counts[0][n + 1] * 0x1p-14, leading_zeros_probability(n, HighPart::truncated)) << n;
    EXPECT_EQ(counts[1][n + 1] * 0x1p-14, leading_zeros_probability(n, HighPart::rounded_up)) << n;
  }
}

TEST(Underflow, ProbabilitiesEqualValuesByHand) {
  // N >= 3, above 10 % as the paper's Fig. 2(a) has it.
  EXPECT_EQ(underflow_or_gradual_probability(0), 0x1p-3 - 0x1p-13);
  EXPECT_EQ(underflow_or_gradual_probability(9), 0x1p-13);
  EXPECT_EQ(underflow_or_gradual_probability(10), 0);
  EXPECT_EQ(underflow_or_gradual_probability(-4), 1);
  EXPECT_EQ(underflow_probability(0), 0);
  EXPECT_EQ(underflow_probability(-1), 0x1p-13);
  EXPECT_EQ(underflow_probability(-12), 0.5 - 0x1p-13);
  EXPECT_EQ(underflow_probability(-13), 1 - 0x1p-13);
  EXPECT_EQ(underflow_probability(-14), 1);
  // A residual scaled by 2^12 is that of a number twelve binades above.
  for (int exponent = -14; exponent <= 3; ++exponent) {
    EXPECT_EQ(underflow_probability(exponent, 12), underflow_probability(exponent + 12));
    EXPECT_EQ(underflow_or_gradual_probability(exponent, 12),
              underflow_or_gradual_probability(exponent + 12));
  }
}

// Allows six standard deviations, so that one of 10^9 comparisons fails by chance.
void expect_share(double share, double probability, std::int64_t samples) {
  const double deviation = std::sqrt(probability * (1 - probability) / static_cast<double>(samples));
  EXPECT_NEAR(share, probability, 6 * deviation + 1e-12);
}

TEST(Underflow, SimulationAgreesWhereTheHighPartIsNormal) {
  constexpr std::int64_t samples = 50000;
  for (const int residual_exponent : {0, 6, 12}) {
    for (int exponent = -14; exponent <= 14; ++exponent) {
      SCOPED_TRACE(exponent);
      const UnderflowShares shares = simulate_underflow(exponent, residual_exponent, samples, 7);
      expect_share(shares.underflow, underflow_probability(exponent, residual_exponent), samples);
      expect_share(shares.underflow_or_gradual, underflow_or_gradual_probability(exponent, residual_exponent),
                   samples);
      expect_share(shares.zero_residual, 0x1p-13, samples);
      EXPECT_EQ(shares.overflowed, 0);
      EXPECT_LE(shares.lost, shares.underflow);
    }
  }
}

// Residuals in (2^-25, 2^-24) are "underflow" by Eq. 4 and become 2^-24.
TEST(Underflow, RoundingKeepsHalfOfWhatEquationFourCallsUnderflow) {
  constexpr std::int64_t samples = 50000;
  const UnderflowShares shares = simulate_underflow(-12, 0, samples, 7);
  expect_share(shares.underflow, 0.5, samples);
  // Lost up to 2^-25: N >= 2 but for r = 0, and the smallest residual of N = 1.
  expect_share(shares.lost, 0.25, samples);
}

TEST(Underflow, SubnormalHighPartsAndOverflowAreCounted) {
  // The high part is subnormal: its residual is at most 2^-25.
  const UnderflowShares low = simulate_underflow(-16, 0, 1000, 1);
  EXPECT_DOUBLE_EQ(low.underflow, 1);
  EXPECT_DOUBLE_EQ(low.lost + low.zero_residual, 1);
  const UnderflowShares high = simulate_underflow(15, 0, 100000, 1);
  expect_share(high.overflowed, 0x1p-12, 100000);
  EXPECT_THROW(simulate_underflow(16, 0, 10, 1), core::Error);
  EXPECT_THROW(simulate_underflow(-127, 0, 10, 1), core::Error);
}

TEST(Underflow, RandomNumbersHaveTheirExponent) {
  measure::Random random(1);
  int negative = 0;
  for (int draw = 0; draw < 1000; ++draw) {
    const float x = random_of_exponent(random, -9);
    EXPECT_EQ(std::ilogb(x), -9);
    negative += std::signbit(x) ? 1 : 0;
  }
  EXPECT_GT(negative, 400);
  EXPECT_LT(negative, 600);
}

TEST(RetainedAtExponent, CuttingBothSlicesLeaves22Places) {
  const measure::SplitDescription cut{"fp16", 2, "towards-zero", "towards-zero", 0, false, 0};
  const RetainedAtExponent kept = retained_at_exponent(cut, 0, 1 << 16, 1);
  EXPECT_EQ(kept.fewest, 21);
  EXPECT_EQ(kept.fewest_places, 22);
}

TEST(RetainedAtExponent, DependsOnTheResidualsScale) {
  const measure::SplitDescription fp16_pair{"fp16", 2, "nearest-even", "nearest-even", 0, false, 0};
  measure::SplitDescription scaled = fp16_pair;
  scaled.residual_exponent = 12;
  const auto bits_at = [](const measure::SplitDescription& split, int exponent) {
    return retained_at_exponent(split, exponent, 20000, 1);
  };
  EXPECT_EQ(bits_at(fp16_pair, 0).fewest, 23);
  EXPECT_GT(bits_at(fp16_pair, 0).mean, 23);
  EXPECT_EQ(bits_at(fp16_pair, -14).fewest, 11);  // the residual is lost
  EXPECT_EQ(bits_at(scaled, -14).fewest, 23);
  EXPECT_EQ(bits_at(scaled, 16).fewest, 0);  // overflow, whatever the residual's scale
}

}  // namespace
}  // namespace kintsugi::lab
