// Products of slices in wide integers, against exact sums.
#include "arith/weighted_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "arith/exact/exact_sum.hpp"

namespace kintsugi::test {
namespace {

using core::ExactSum;
using core::WideInteger;

TEST(ProductSums, AreExact) {
  std::mt19937_64 random(3);
  constexpr int limbs = 6;
  for (int trial = 0; trial < 2000; ++trial) {
    WideInteger<limbs> sum;
    ExactSum exact;
    for (int p = 0; p < 1 + trial % 40; ++p) {
      const auto integer = static_cast<std::int64_t>(random()) >> (1 + random() % 62);
      const int position = static_cast<int>(random() % 311);
      core::add_product(sum, integer, position);
      const bool negative = integer < 0;
      exact.add_integer(static_cast<std::uint64_t>(negative ? -integer : integer), position, negative);
    }
    // In every third sum two large terms cancel.
    if (trial % 3 == 0) {
      core::add_product(sum, std::int64_t{1} << 61, 300);
      core::add_product(sum, -(std::int64_t{1} << 61), 300);
    }
    EXPECT_EQ(core::rounded<double>(core::signed_number(sum, 0)), exact.to_double()) << "trial " << trial;
  }
}

TEST(ProductSums, TakeEveryPosition) {
  for (int position = 0; position < 320; ++position) {
    for (const std::int64_t integer : {std::int64_t{1}, std::int64_t{-1}, std::int64_t{-3} << 40}) {
      WideInteger<6> sum;
      core::add_product(sum, integer, position);
      EXPECT_EQ(core::rounded<double>(core::signed_number(sum, -100)),
                std::ldexp(static_cast<double>(integer), position - 100));
    }
  }
}

TEST(RunningTerms, StayWithinDoublesRange) {
  EXPECT_EQ(core::running_term(3, 0), 3 * 0x1p800);
  EXPECT_EQ(core::running_term(-(std::int64_t{1} << 62), 0), -0x1p862);
  EXPECT_EQ(core::running_term(1, 1874), 0x1p-1074);
  EXPECT_EQ(core::running_term(1, 4000), 0);
}

}  // namespace
}  // namespace kintsugi::test
