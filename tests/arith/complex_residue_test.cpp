// Moduli of complex products, and which of them are the cheapest.
#include "arith/residue/complex_residue.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kintsugi::core {
namespace {

constexpr ComplexBasis whole{residue_detail::complex_moduli.with_root,
                             residue_detail::complex_moduli.count - residue_detail::complex_moduli.with_root};

TEST(ComplexModuli, ArePairwiseCoprimeAndHaveTheRootsThatTheyClaim) {
  double bits = 0;
  for (int s = 0; s < whole.count(); ++s) {
    const int m = whole.modulus(s);
    EXPECT_LE(m, 256);
    for (int t = 0; t < s; ++t) EXPECT_EQ(std::gcd(m, whole.modulus(t)), 1) << m;
    const int w = whole.root(s);
    if (whole.has_root(s)) {
      EXPECT_EQ((w * w + 1) % m, 0) << m;
      EXPECT_EQ(m % 2, 1) << m << " has no half";
    }
    if (s < 16) bits += std::log2(m);
  }
  EXPECT_NEAR(bits, 117.7, 0.05);  // FACTS section 5: sixteen with roots
}

TEST(ComplexBasis, SlicesFollowEachOther) {
  const ComplexBasis basis{3, 2};
  EXPECT_EQ(basis.slices(), 12);
  int next = 0;
  for (int t = 0; t < basis.count(); ++t) {
    EXPECT_EQ(basis.first_slice(t), next);
    next += basis.has_root(t) ? 2 : 3;
  }
  EXPECT_EQ(next, basis.slices());
}

TEST(ComplexBasis, TheCheapestOfAllHoldsTheBits) {
  for (int bits = 1; bits <= residue_bits(whole); ++bits) {
    const ComplexBasis found = cheapest_basis(bits);
    ASSERT_FALSE(found.empty()) << bits;
    EXPECT_GE(residue_bits(found), bits);
    for (int a = 0; a <= whole.with_root; ++a) {
      for (int b = 0; b <= whole.without; ++b) {
        const ComplexBasis other{a, b};
        if (other.slices() < found.slices()) {
          ASSERT_LT(residue_bits(other), bits) << a << " + " << b;
        }
      }
    }
  }
  EXPECT_TRUE(cheapest_basis(residue_bits(whole) + 1).empty());
}

// Every program of real moduli has a cheaper complex one: less than three quarters of the embedding's 4 N
// products.
TEST(ComplexBasis, IsCheaperThanTheEmbedding) {
  for (int count = 2; count <= max_moduli; ++count) {
    const ComplexBasis basis = cheapest_basis(residue_bits(count));
    ASSERT_FALSE(basis.empty()) << count;
    EXPECT_LE(basis.slices(), 3 * count) << count;
  }
  EXPECT_LE(cheapest_basis(residue_bits(16)).slices(), 35);  // of 64
}

}  // namespace
}  // namespace kintsugi::core
