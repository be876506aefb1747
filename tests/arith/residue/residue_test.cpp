// Tests moduli, the bits that they hold, and residues.
#include "arith/residue/residue.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kintsugi::core {
namespace {

TEST(Moduli, ArePairwiseCoprimeAndTheLargest) {
  double bits = 0;
  for (int s = 0; s < max_moduli; ++s) {
    bits += std::log2(moduli[s]);
    for (int t = 0; t < s; ++t) EXPECT_EQ(std::gcd(moduli[s], moduli[t]), 1);
    if (s > 0) {
      EXPECT_LT(moduli[s], moduli[s - 1]);
    }
  }
  EXPECT_EQ(moduli[0], 256);
  EXPECT_EQ(moduli[1], 255);
  EXPECT_EQ(moduli[2], 253);
  EXPECT_NEAR(bits, 341.9, 0.05);
}

// Integers below a quarter of the product are found again: log2 of the products are 125.4, 170.1, 253.8,
// 341.9.
TEST(Moduli, HoldTheBitsOfAQuarterOfTheirProduct) {
  EXPECT_EQ(residue_bits(16), 123);
  EXPECT_EQ(residue_bits(22), 168);
  EXPECT_EQ(residue_bits(34), 251);
  EXPECT_EQ(residue_bits(49), 339);
}

// Residues of the nearest integer, as int8 holds them; the expected ones are computed one bit of the power of
// two at a time.
TEST(Residues, AreThoseOfTheNearestInteger) {
  std::mt19937_64 random(2);
  for (int draw = 0; draw < 3000; ++draw) {
    const double x = std::ldexp(static_cast<double>(random()) * (draw % 2 == 0 ? 1 : -1),
                                -static_cast<int>(random() % 90));
    const int scale = static_cast<int>(random() % 130);
    if (std::ilogb(x) + scale > 169) continue;
    const double integer =
        std::ldexp(x, scale) < 0x1p53 ? std::nearbyint(std::ldexp(x, scale)) : std::ldexp(x, scale);
    int exponent = 0;
    const double fraction = std::frexp(integer, &exponent);
    const auto significand = static_cast<std::int64_t>(std::ldexp(std::fabs(fraction), 53));
    split_into_residues(max_moduli, 171, x, scale, [&](int t, std::uint64_t pattern) {
      const int m = moduli[t];
      std::int64_t expected = significand % m;
      // significand 2^(exponent - 53): halved modulo an odd m, exactly where it is even.
      std::int64_t rest = significand;
      for (int e = exponent - 53; e > 0; --e) expected = 2 * expected % m;
      if (exponent < 53) {
        rest = significand >> (53 - exponent);
        expected = exponent <= 0 ? 0 : rest % m;
      }
      if (integer < 0) expected = (m - expected) % m;
      const int residue = static_cast<std::int8_t>(pattern);
      ASSERT_EQ(((residue % m) + m) % m, expected) << x << " 2^" << scale << " mod " << m;
    });
  }
}

}  // namespace
}  // namespace kintsugi::core
