// Tests that norms prove no product of integers whose error exceeds the bound, by computing the products.
#include "arith/residue/norm_proof.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace kintsugi::core {
namespace {

using Vector = std::vector<double>;
using Extremes = NormExtremes<1>;

// Vectors along k of one operand, scaled by norms for sums of so many bits, and the integers that they
// become.
struct Side {
  std::vector<Vector> vectors;
  std::vector<Vector> integers;
  std::vector<int> scales;
  std::vector<VectorNorm> norms;
  std::vector<std::int32_t> tops;
  std::vector<bool> zeros;

  Side(std::vector<Vector> drawn, int sum_bits) : vectors(std::move(drawn)) {
    for (const Vector& vector : vectors) add(vector, sum_bits);
  }

  void add(const Vector& vector, int sum_bits) {
    VectorRange range;
    for (const double x : vector) extend(range, x);
    const bool zero = std::all_of(vector.begin(), vector.end(), [](double x) { return x == 0; });
    NormSums sums;
    for (const double x : vector) sums.add(x, norm_scaling(range));
    const VectorNorm norm = sums.norm(static_cast<std::int64_t>(vector.size()));
    norms.push_back(norm);
    tops.push_back(norm_top(5, sum_bits, norm.bits));
    zeros.push_back(zero);
    scales.push_back(zero ? 0 : tops.back() - range.largest);
    Vector integer;
    for (const double x : vector) integer.push_back(std::nearbyint(std::ldexp(x, scales.back())));
    integers.push_back(integer);
  }
  std::int64_t length() const { return static_cast<std::int64_t>(vectors.front().size()); }
  std::int64_t least_elements() const {
    std::int64_t least = length();
    for (std::size_t v = 0; v < norms.size(); ++v) {
      if (!zeros[v]) least = std::min<std::int64_t>(least, norms[v].elements);
    }
    return least;
  }
  Extremes extremes(const NormTerms& terms, double coefficient) const {
    Extremes result;
    for (std::size_t v = 0; v < norms.size(); ++v) {
      const std::int32_t top[1] = {tops[v]};
      if (!zeros[v]) result.add(norms[v], top, terms, coefficient);
    }
    return result;
  }
};

// True if norms prove all pairs for that coefficient.
bool proves(const Side& a, const Side& b, double coefficient) {
  const NormTerms terms = NormTerms::of(a.length(), a.least_elements(), b.least_elements());
  return proves(a.extremes(terms, coefficient), b.extremes(terms, coefficient), 0, terms, coefficient);
}

// The smallest power of two that is a proved coefficient for all elements.
double proved_coefficient(const Side& a, const Side& b) {
  double coefficient = 1;
  if (!proves(a, b, coefficient)) return INFINITY;
  while (coefficient > 0x1p-200 && proves(a, b, coefficient / 2)) coefficient /= 2;
  return coefficient;
}

// Largest |AB - S| / (|A||B|), and the root of the mean square of |AB - S| / (|a_i||b_j|). 113 bits hold sums
// of 2^(R + 1) with bits to spare.
struct Deviation {
  double largest = 0;
  double typical = 0;
};
__extension__ using Float = __float128;
Float unit(int scale) {
  return static_cast<Float>(std::ldexp(1.0, -scale / 2)) * std::ldexp(1.0, scale / 2 - scale);
}

double square_of(const Vector& vector) {
  return std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0);
}

Deviation deviation_of(const Side& a, const Side& b) {
  Float largest = 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.vectors.size(); ++i) {
    for (std::size_t j = 0; j < b.vectors.size(); ++j) {
      Float difference = 0;
      Float magnitudes = 0;
      const Float unit_a = unit(a.scales[i]);
      const Float unit_b = unit(b.scales[j]);
      for (std::size_t p = 0; p < a.vectors[i].size(); ++p) {
        const Float product = static_cast<Float>(a.vectors[i][p]) * b.vectors[j][p];
        difference += product - a.integers[i][p] * unit_a * (b.integers[j][p] * unit_b);
        magnitudes += product < 0 ? -product : product;
      }
      const Float magnitude = difference < 0 ? -difference : difference;
      if (magnitude == 0) continue;
      if (magnitudes == 0) return {INFINITY, INFINITY};
      largest = std::max(largest, magnitude / magnitudes);
      squares +=
          std::pow(static_cast<double>(magnitude), 2) / (square_of(a.vectors[i]) * square_of(b.vectors[j]));
    }
  }
  const auto elements = static_cast<double>(a.vectors.size() * b.vectors.size());
  return {static_cast<double>(largest), std::sqrt(squares / elements)};
}

std::vector<Vector> draw(int vectors, int length, const std::function<double()>& element) {
  std::vector<Vector> result(static_cast<std::size_t>(vectors), Vector(static_cast<std::size_t>(length)));
  for (Vector& vector : result) {
    for (double& x : vector) x = element();
  }
  return result;
}

class NormProof : public testing::Test {
 protected:
  double uniform() { return std::uniform_real_distribution<>(-0.5, 0.5)(random_); }
  double normal() { return std::normal_distribution<>()(random_); }
  double spread(double phi) { return uniform() * std::exp(phi * normal()); }

  std::mt19937_64 random_{7};
};

// Coefficient of FP64's contract without the last rounding.
double fp64_contract(std::int64_t length) { return static_cast<double>(length + 7) * 0x1p-53; }

TEST_F(NormProof, HoldsForAllElements) {
  const std::function<double()> elements[] = {
      [&] { return uniform(); },
      [&] { return std::fabs(uniform()); },
      [&] { return spread(0.5); },
      [&] { return spread(1); },
      [&] { return spread(3); },
      [&] { return random_() % 3 == 0 ? 0 : normal(); },
      [&] { return random_() % 40 == 0 ? normal() : 0; },
      [&] { return std::ldexp(uniform(), static_cast<int>(random_() % 9)); },
      [&] { return std::ldexp(1.0, -static_cast<int>(random_() % 300)); },
      [&] { return std::ldexp(uniform(), -1060); },
      [&] { return std::ldexp(uniform(), 1020); },
  };
  int proofs = 0;
  for (const auto& draw_a : elements) {
    for (const auto& draw_b : elements) {
      for (const int length : {1, 2, 17, 300}) {
        for (const int bits : {44, 77, 115, 123}) {
          const Side a(draw(6, length, draw_a), bits);
          const Side b(draw(6, length, draw_b), bits);
          const double proved = proved_coefficient(a, b);
          proofs += proved < 1 ? 1 : 0;
          // Products of subnormal numbers are rounded by __float128 no more than those of others.
          ASSERT_LE(deviation_of(a, b).largest, proved) << "k = " << length << ", " << bits << " bits";
        }
      }
    }
  }
  EXPECT_GT(proofs, 500);
}

// Vectors whose non-zero elements never meet: |A||B| is zero, so no rounding error can be proved small beside
// it.
TEST_F(NormProof, FailsForVectorsWithoutCommonNonZeros) {
  std::vector<Vector> a = draw(2, 64, [&] { return spread(0.5); });
  std::vector<Vector> b = draw(2, 64, [&] { return spread(0.5); });
  for (std::size_t p = 0; p < 64; ++p) (p < 32 ? a : b)[0][p] = 0;
  EXPECT_EQ(proved_coefficient(Side(a, 123), Side(b, 123)), INFINITY);
}

// The least number of moduli (norm_emulations()) rests on this: 115 bits give a sixteenth of FP64's unit for
// all elements whose last bits are independent. Powers of two, and vectors of few elements, are not
// independent.
TEST_F(NormProof, TypicalErrorOf115BitsIsASixteenthOfFp64sUnit) {
  const std::function<double()> elements[] = {
      [&] { return uniform(); },   [&] { return std::fabs(uniform()); },
      [&] { return spread(0.5); }, [&] { return spread(2); },
      [&] { return spread(4); },   [&] { return random_() % 3 == 0 ? 0 : normal(); },
  };
  double largest = 0;
  for (const auto& draw_a : elements) {
    for (const auto& draw_b : elements) {
      for (const int length : {17, 300, 1000}) {
        const Side a(draw(20, length, draw_a), 115);
        const Side b(draw(20, length, draw_b), 115);
        largest = std::max(largest, deviation_of(a, b).typical);
      }
    }
  }
  EXPECT_LE(largest, 0x1p-53 / 16);
  EXPECT_GT(largest, 0x1p-53 / 64);
}

// 15 moduli (115 bits) are enough for operands up to phi = 1, and 17 (130 bits) for phi = 2; the bits that
// are too few are those of about one modulus less than these operands take.
TEST_F(NormProof, NeedsTheBitsOfTheCandidates) {
  struct Case {
    double phi;
    int bits;
    int too_few;
  };
  for (const Case& test :
       {Case{0, 101, 93}, Case{0.5, 102, 93}, Case{1, 107, 97}, Case{2, 125, 115}, Case{3, 155, 141}}) {
    const auto element = [&] { return spread(test.phi); };
    const std::vector<Vector> a = draw(100, 4096, element);
    const std::vector<Vector> b = draw(100, 4096, element);
    const auto proves_contract = [&](int bits) {
      return proves(Side(a, bits), Side(b, bits), fp64_contract(4096));
    };
    EXPECT_TRUE(proves_contract(test.bits)) << test.phi;
    EXPECT_FALSE(proves_contract(test.too_few)) << test.phi;
  }
}

// A vector that is not proved even beside a vector of its own norms rules the proof out, whatever the others
// are.
TEST_F(NormProof, IsRuledOutByOneVector) {
  std::vector<Vector> a = draw(20, 300, [&] { return uniform(); });
  const std::vector<Vector> b = draw(20, 300, [&] { return uniform(); });
  const double contract = fp64_contract(300);
  const Side narrow(a, 115);
  EXPECT_TRUE(proves(narrow, Side(b, 115), contract));
  for (std::size_t v = 0; v < a.size(); ++v)
    EXPECT_FALSE(rules_proof_out(narrow.norms[v], narrow.tops[v], 300, contract));
  a.push_back(draw(1, 300, [&] { return spread(4); }).front());
  const Side with_wide_vector(a, 115);
  EXPECT_TRUE(rules_proof_out(with_wide_vector.norms.back(), with_wide_vector.tops.back(), 300, contract));
  EXPECT_FALSE(proves(with_wide_vector, Side(b, 115), contract));
  EXPECT_EQ(with_wide_vector.extremes({300, 300}, contract).grid[0], LogarithmAbove::infinite);
}

TEST_F(NormProof, LeavesOutVectorsOfZeros) {
  std::vector<Vector> a = draw(3, 100, [&] { return uniform(); });
  const std::vector<Vector> b = draw(3, 100, [&] { return uniform(); });
  const double proved = proved_coefficient(Side(a, 123), Side(b, 123));
  a.emplace_back(100, 0.0);
  EXPECT_EQ(proved_coefficient(Side(a, 123), Side(b, 123)), proved);
  EXPECT_LT(proved, 8 * 0x1p-53);
}

}  // namespace
}  // namespace kintsugi::core
