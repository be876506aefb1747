// Tests the moduli of complex products, and that the basis with the fewest slices is found.
#include "arith/residue/complex_residue.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kintsugi::core {
namespace {

constexpr ComplexBasis all_moduli{
    residue_detail::complex_moduli.with_root,
    residue_detail::complex_moduli.count - residue_detail::complex_moduli.with_root};

TEST(ComplexModuli, ArePairwiseCoprimeAndHaveRootsOfMinusOne) {
  double bits = 0;
  for (int s = 0; s < all_moduli.count(); ++s) {
    const int m = all_moduli.modulus(s);
    EXPECT_LE(m, 256);
    for (int t = 0; t < s; ++t) EXPECT_EQ(std::gcd(m, all_moduli.modulus(t)), 1) << m;
    const int w = all_moduli.root(s);
    if (all_moduli.has_root(s)) {
      EXPECT_EQ((w * w + 1) % m, 0) << m;
      EXPECT_EQ(m % 2, 1) << "2 has no inverse modulo " << m;
    }
    if (s < 16) bits += std::log2(m);
  }
  EXPECT_NEAR(bits, 117.7, 0.05);  // of the sixteen moduli with roots
}

TEST(ComplexBasis, SlicesAreNumberedWithoutGaps) {
  const ComplexBasis basis{3, 2};
  EXPECT_EQ(basis.slices(), 12);
  int next = 0;
  for (int t = 0; t < basis.count(); ++t) {
    EXPECT_EQ(basis.first_slice(t), next);
    next += basis.has_root(t) ? 2 : 3;
  }
  EXPECT_EQ(next, basis.slices());
}

TEST(ComplexBasis, CheapestBasisHasTheFewestSlicesThatHoldTheBits) {
  for (int bits = 1; bits <= residue_bits(all_moduli); ++bits) {
    const ComplexBasis found = cheapest_basis(bits);
    ASSERT_FALSE(found.empty()) << bits;
    EXPECT_GE(residue_bits(found), bits);
    for (int a = 0; a <= all_moduli.with_root; ++a) {
      for (int b = 0; b <= all_moduli.without; ++b) {
        const ComplexBasis basis{a, b};
        if (basis.slices() < found.slices()) {
          ASSERT_LT(residue_bits(basis), bits) << a << " + " << b;
        }
      }
    }
  }
  EXPECT_TRUE(cheapest_basis(residue_bits(all_moduli) + 1).empty());
}

// N real moduli cost the embedding 4 N products; a complex basis of as many bits has at most 3 N slices.
TEST(ComplexBasis, HasLessThanThreeQuartersOfTheEmbeddingsProducts) {
  for (int count = 2; count <= max_moduli; ++count) {
    const ComplexBasis basis = cheapest_basis(residue_bits(count));
    ASSERT_FALSE(basis.empty()) << count;
    EXPECT_LE(basis.slices(), 3 * count) << count;
  }
  EXPECT_LE(cheapest_basis(residue_bits(16)).slices(), 35);  // of 64
}

}  // namespace
}  // namespace kintsugi::core
