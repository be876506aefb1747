// What norms prove of products of integers, against the products themselves.
#include "arith/norm_proof.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace kintsugi::core {
namespace {

using Vector = std::vector<double>;
using Extremes = NormExtremes<1>;

// Vectors along k of one operand, scaled by norms for sums of so many bits, and the integers that they become.
struct Side {
  std::vector<Vector> vectors;
  std::vector<Vector> integers;
  std::vector<int> scales;
  Extremes extremes;

  Side(std::vector<Vector> of, int sum_bits) : vectors(std::move(of)) {
    for (const Vector& vector : vectors) add(vector, sum_bits);
  }

  void add(const Vector& vector, int sum_bits) {
    VectorRange range;
    std::int64_t exponents = 0;
    std::int64_t elements = 0;
    for (const double x : vector) {
      extend(range, x);
      if (x == 0) continue;
      exponents += std::ilogb(x);
      ++elements;
    }
    const bool zero = elements == 0;
    const auto typical = zero ? 0
                              : static_cast<std::int32_t>(std::floor(static_cast<double>(exponents) /
                                                                     static_cast<double>(elements)));
    const NormScaling scaling = norm_scaling(range, typical);
    NormSums sums;
    for (const double x : vector) sums.add(x, scaling);
    const VectorNorm norm = sums.norm(typical, scaling, static_cast<std::int64_t>(vector.size()));
    const std::int32_t tops[1] = {norm_top(5, sum_bits, norm.bits)};
    if (!zero) extremes.add(norm, tops);
    scales.push_back(zero ? 0 : tops[0] - range.largest);
    Vector integer;
    for (const double x : vector) integer.push_back(std::nearbyint(std::ldexp(x, scales.back())));
    integers.push_back(integer);
  }
};

// The least power of two that all entries are proved for.
double proved_coefficient(const Side& a, const Side& b) {
  double coefficient = 1;
  if (!proves(a.extremes, b.extremes, 0, coefficient)) return INFINITY;
  while (coefficient > 0x1p-200 && proves(a.extremes, b.extremes, 0, coefficient / 2)) coefficient /= 2;
  return coefficient;
}

// The largest |AB - S| / |A||B|; sums of 2^(R + 1) in 113 bits leave more than enough.
__extension__ using Float = __float128;
Float unit(int scale) {
  return static_cast<Float>(std::ldexp(1.0, -scale / 2)) * std::ldexp(1.0, scale / 2 - scale);
}

double largest_deviation(const Side& a, const Side& b) {
  Float largest = 0;
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
      if (magnitudes == 0) return INFINITY;
      largest = std::max(largest, magnitude / magnitudes);
    }
  }
  return static_cast<double>(largest);
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

constexpr double fp64_contract = 8 * 0x1p-53;  // at k = 1, less the last rounding

TEST_F(NormProof, HoldsForAllEntries) {
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
  for (const auto& of_a : elements) {
    for (const auto& of_b : elements) {
      for (const int length : {1, 2, 17, 300}) {
        for (const int bits : {44, 77, 115, 123}) {
          const Side a(draw(6, length, of_a), bits);
          const Side b(draw(6, length, of_b), bits);
          const double proved = proved_coefficient(a, b);
          proofs += proved < 1 ? 1 : 0;
          // Products of subnormal numbers are rounded by __float128 no more than those of others.
          ASSERT_LE(largest_deviation(a, b), proved) << "k = " << length << ", " << bits << " bits";
        }
      }
    }
  }
  EXPECT_GT(proofs, 500);
}

// Vectors that never meet: |A||B| is zero, and nothing can be proved of what rounding leaves.
TEST_F(NormProof, NeedsVectorsThatMeet) {
  std::vector<Vector> a = draw(2, 64, [&] { return spread(0.5); });
  std::vector<Vector> b = draw(2, 64, [&] { return spread(0.5); });
  for (std::size_t p = 0; p < 64; ++p) (p < 32 ? a : b)[0][p] = 0;
  EXPECT_EQ(proved_coefficient(Side(a, 123), Side(b, 123)), INFINITY);
}

// What the first rungs are made for; a modulus less does not do.
TEST_F(NormProof, IsEnoughForTheContracts) {
  struct Case {
    double phi;
    int bits;
  };
  for (const Case& test : {Case{0, 117}, Case{0.5, 123}, Case{1, 130}, Case{2, 146}}) {
    const auto element = [&] { return spread(test.phi); };
    const std::vector<Vector> a = draw(100, 4096, element);
    const std::vector<Vector> b = draw(100, 4096, element);
    EXPECT_TRUE(proves(Side(a, test.bits).extremes, Side(b, test.bits).extremes, 0, fp64_contract))
        << test.phi;
    EXPECT_FALSE(proves(Side(a, test.bits - 10).extremes, Side(b, test.bits - 10).extremes, 0, fp64_contract))
        << test.phi;
  }
}

TEST_F(NormProof, LeavesOutVectorsOfZeros) {
  std::vector<Vector> a = draw(3, 100, [&] { return uniform(); });
  const std::vector<Vector> b = draw(3, 100, [&] { return uniform(); });
  const double proved = proved_coefficient(Side(a, 123), Side(b, 123));
  a.emplace_back(100, 0.0);
  EXPECT_EQ(proved_coefficient(Side(a, 123), Side(b, 123)), proved);
  EXPECT_LT(proved, fp64_contract);
}

}  // namespace
}  // namespace kintsugi::core
