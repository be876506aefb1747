// Tests how kernels select the checked candidate that computes a block of C.
#include "engines/cuda/recombine/checked/checks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kintsugi::test {
namespace {

using namespace core;

// Candidates of 20, 21, 23 and 25 moduli, k = 8192.
DeviceCheckedChain chain_of_four() {
  DeviceCheckedChain chain;
  chain.count = 4;
  const int moduli[] = {20, 21, 23, 25};
  const int tops[] = {69, 72, 80, 87};
  for (int c = 0; c < 4; ++c) {
    chain.terms[c] = moduli[c];
    chain.top_a[c] = chain.top_b[c] = tops[c];
  }
  chain.exact_sum_cost = 17000;
  return chain;
}

TEST(DeviceChecks, ChanceOfAnOpenElementIsItsErrorInUnitsOfTheLastPlace) {
  EXPECT_EQ(chance_of_open(1, 0, 53), 0);
  EXPECT_EQ(chance_of_open(0, 1, 53), 1);
  EXPECT_EQ(chance_of_open(1, 0x1p-55, 53), 0x1p-2);
  EXPECT_EQ(chance_of_open(-1.75, 0x1p-55, 53), 0x1p-2);
  EXPECT_EQ(chance_of_open(0x1p100, 0x1p70, 24), 0x1p-6);
  EXPECT_EQ(chance_of_open(3, 10, 53), 1);
}

// An element is open if a boundary between two roundings is nearer to its sum than the sum's error.
TEST(DeviceChecks, ChanceOfAnOpenElementIsThatOfRandomSums) {
  std::mt19937_64 random(5);
  for (const double deviation : {0x1p-27, 0x1p-30}) {
    int open = 0;
    double chances = 0;
    constexpr int rounds = 20000;
    for (int i = 0; i < rounds; ++i) {
      const double x = std::ldexp(static_cast<double>(random() >> 11), -53) * 4 - 2;
      open += static_cast<float>(x - deviation) != static_cast<float>(x + deviation) ? 1 : 0;
      chances += chance_of_open(x, deviation, 24);
    }
    EXPECT_NEAR(chances, open, 0.1 * open + 50) << deviation;
  }
}

TEST(DeviceChecks, CheapestCandidateCountsOpenElements) {
  const DeviceCheckedChain chain = chain_of_four();
  const auto cheapest = [&](std::initializer_list<double> open) {
    double cost = 0;
    const int found = cheapest_candidate(chain, 0, open.begin(), cost);
    EXPECT_EQ(cost, chain.terms[found] + 17000 * open.begin()[found]);
    return found;
  };
  EXPECT_EQ(cheapest({2.8e-5, 5.8e-7, 0, 0}), 0) << "phi = 0.5";
  EXPECT_EQ(cheapest({1.2e-3, 1.1e-5, 0, 0}), 1) << "phi = 1";
  EXPECT_EQ(cheapest({0.11, 0.02, 5.5e-6, 0}), 2) << "phi = 2";
  EXPECT_EQ(cheapest({0.54, 0.21, 3.2e-3, 2.8e-5}), 3) << "phi = 4";
  EXPECT_EQ(cheapest({1, 1, 1, 1}), 0) << "every candidate leaves all elements open";
  EXPECT_EQ(cheapest({0, 0, 0, 0}), 0);
}

TEST(DeviceChecks, NextCandidateIsTheCheapestWayToTheOpenElements) {
  const DeviceCheckedChain chain = chain_of_four();
  EXPECT_EQ(next_candidate(chain, 0, 0), 4);
  EXPECT_EQ(next_candidate(chain, 0, 1e-3), 4) << "exact sums cost 17 terms, the next candidate 21";
  EXPECT_EQ(next_candidate(chain, 0, 2e-3), 2)
      << "exact sums cost 34 terms, the next candidate 21 and an eighth of the sums";
  EXPECT_EQ(next_candidate(chain, 0, 1), 3);
  EXPECT_EQ(next_candidate(chain, 2, 1), 3);
  EXPECT_EQ(next_candidate(chain, 3, 1), 4) << "no candidate is left but exact sums";
}

TEST(DeviceChecks, MasksCoverBlocksOf128Rows) {
  EXPECT_EQ(DeviceOpenElements::masks_for_rows(1), 4);
  EXPECT_EQ(DeviceOpenElements::masks_for_rows(128), 4);
  EXPECT_EQ(DeviceOpenElements::masks_for_rows(129), 8);
  std::uint32_t masks[64] = {};
  DeviceOpenElements open;
  open.masks = masks;
  open.masks_per_column = 8;
  EXPECT_EQ(open.tile(128, 3).masks, masks + 4 + 3 * 8);
}

}  // namespace
}  // namespace kintsugi::test
