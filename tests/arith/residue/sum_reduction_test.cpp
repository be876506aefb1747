// Tests that reductions of sums give the remainders of a division.
#include "arith/residue/sum_reduction.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

namespace kintsugi::core {
namespace {

template <SumRange Range>
void expect_residue(const SumReduction<Range>& reduction, std::int32_t sum, int modulus) {
  const std::int64_t remainder = std::int64_t{sum} % modulus;
  ASSERT_EQ(reduction(sum) & 0xffU, remainder < 0 ? remainder + modulus : remainder)
      << sum << " modulo " << modulus;
}

// Calls visit(sum) for sums around 0, for the extremes of sums with `bits` bits, for extremes of their bytes,
// and for random ones.
template <class Visit>
void for_each_sum(int bits, std::mt19937_64& random, const Visit& visit) {
  const auto narrow = [&](std::int64_t sum) {  // bits `bits` to 63 are copies of the sign
    return static_cast<std::int32_t>(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) << (64 - bits)) >> (64 - bits));
  };
  const std::int64_t end = std::int64_t{1} << (bits - 1);
  for (int offset = 0; offset < 1000; ++offset) {
    for (const std::int64_t sum : {std::int64_t{offset} - 500, offset - end, end - 1 - offset})
      visit(static_cast<std::int32_t>(sum));
  }
  constexpr std::array<std::int64_t, 3> bytes{0, 128, 255};
  for (std::size_t i = 0; i < 81; ++i)
    visit(narrow(bytes.at(i % 3) | bytes.at(i / 3 % 3) << 8 | bytes.at(i / 9 % 3) << 16 |
                 bytes.at(i / 27) << 24));
  for (int draw = 0; draw < 3000; ++draw) visit(narrow(static_cast<std::int64_t>(random())));
}

TEST(SumReduction, SumsAreReducedAsByDivision) {
  std::mt19937_64 random(9);
  for (int modulus = 2; modulus <= 256; ++modulus) {
    const auto index = static_cast<std::size_t>(modulus) - 2;
    for_each_sum(32, random,
                 [&](std::int32_t sum) { expect_residue(int32_reductions.at(index), sum, modulus); });
    if (!reduces_int25(static_cast<std::uint32_t>(modulus))) continue;
    for_each_sum(25, random,
                 [&](std::int32_t sum) { expect_residue(int25_reductions.at(index), sum, modulus); });
  }
}

TEST(SumReduction, OnlyFactorsOf255HaveNoReductionOfShortSums) {
  for (std::uint32_t modulus = 2; modulus <= 256; ++modulus)
    EXPECT_EQ(reduces_int25(modulus), std::gcd(modulus, 255U) == 1) << modulus;
}

}  // namespace
}  // namespace kintsugi::core
