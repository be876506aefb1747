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
  std::vector<VectorNorm> norms;
  std::vector<std::int32_t> tops;
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
    const std::int32_t top[1] = {norm_top(5, sum_bits, norm.bits)};
    if (!zero) extremes.add(norm, top);
    norms.push_back(norm);
    tops.push_back(top[0]);
    scales.push_back(zero ? 0 : top[0] - range.largest);
    Vector integer;
    for (const double x : vector) integer.push_back(std::nearbyint(std::ldexp(x, scales.back())));
    integers.push_back(integer);
  }
};

// The least power of two that `proves` takes, of 1 and below.
double least_power(const std::function<bool(double)>& proves) {
  double power = 1;
  if (!proves(power)) return INFINITY;
  while (power > 0x1p-200 && proves(power / 2)) power /= 2;
  return power;
}

// That all entries are proved for.
double proved_coefficient(const Side& a, const Side& b) {
  return least_power([&](double coefficient) {
    return proves(a.extremes, b.extremes, 0, {coefficient, INFINITY});
  });
}
double proved_typical(const Side& a, const Side& b) {
  const auto length = static_cast<std::int64_t>(a.vectors.front().size());
  return least_power([&](double typical) {
    return proves(a.extremes, b.extremes, 0, NormDemand::of(INFINITY, typical, length));
  });
}

// |AB - S| / |A||B| at its largest, and the root of its mean square; sums of 2^(R + 1) in 113 bits leave more than enough.
struct Deviation {
  double largest = 0;
  double typical = 0;
};
__extension__ using Float = __float128;
Float unit(int scale) {
  return static_cast<Float>(std::ldexp(1.0, -scale / 2)) * std::ldexp(1.0, scale / 2 - scale);
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
      squares += std::pow(static_cast<double>(magnitude / magnitudes), 2);
    }
  }
  const auto entries = static_cast<double>(a.vectors.size() * b.vectors.size());
  return {static_cast<double>(largest), std::sqrt(squares / entries)};
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

// Of FP64, as the plan has it: a third of a unit typically.
NormDemand fp64_demand(std::int64_t length) {
  return NormDemand::of(static_cast<double>(length) * 0x1p-53, 0x1p-53 / 3, length);
}

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
          ASSERT_LE(deviation_of(a, b).largest, proved) << "k = " << length << ", " << bits << " bits";
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

// Of elements whose last bits know nothing of each other: not those that are powers of two, or zero but for a few.
TEST_F(NormProof, SaysHowFarEntriesTypicallyAre) {
  const std::function<double()> elements[] = {
      [&] { return uniform(); },
      [&] { return std::fabs(uniform()); },
      [&] { return spread(0.5); },
      [&] { return spread(2); },
      [&] { return random_() % 3 == 0 ? 0 : normal(); },
  };
  for (const auto& of_a : elements) {
    for (const auto& of_b : elements) {
      for (const int length : {1, 17, 300, 1000}) {
        const Side a(draw(20, length, of_a), 115);
        const Side b(draw(20, length, of_b), 115);
        ASSERT_LE(deviation_of(a, b).typical, 1.1 * proved_typical(a, b)) << "k = " << length;
      }
    }
  }
}

// What the first rungs are made for, by 15, 16 and 20 moduli; eight bits less do not do.
TEST_F(NormProof, IsEnoughForTheContracts) {
  struct Case {
    double phi;
    int bits;
  };
  for (const Case& test : {Case{0, 117}, Case{0.5, 117}, Case{1, 125}, Case{2, 155}}) {
    const auto element = [&] { return spread(test.phi); };
    const std::vector<Vector> a = draw(100, 4096, element);
    const std::vector<Vector> b = draw(100, 4096, element);
    const auto does = [&](int bits) {
      return proves(Side(a, bits).extremes, Side(b, bits).extremes, 0, fp64_demand(4096));
    };
    EXPECT_TRUE(does(test.bits)) << test.phi;
    EXPECT_FALSE(does(test.bits - (test.phi < 2 ? 8 : 16))) << test.phi;
  }
}

// A long sum forgives no coarse split: the certain bound is met long before the typical one.
TEST_F(NormProof, AsksLongSumsForMoreThanTheCoefficient) {
  const std::vector<Vector> a = draw(50, 8192, [&] { return uniform(); });
  const Side coarse(a, 109);
  const NormDemand demand = fp64_demand(8192);
  EXPECT_TRUE(proves(coarse.extremes, coarse.extremes, 0, {demand.coefficient, INFINITY}));
  EXPECT_FALSE(proves(coarse.extremes, coarse.extremes, 0, demand));
}

// Whatever rules a proof out does so beside the best of partners, and says nothing of most others.
TEST_F(NormProof, IsRuledOutByNoVectorThatItHolds) {
  int out = 0;
  int not_proved = 0;
  for (int round = 0; round < 400; ++round) {
    const double phi = static_cast<double>(random_() % 30) / 10;
    const int length = 1 << random_() % 10;
    const int bits = 100 + static_cast<int>(random_() % 40);
    const Side a(draw(1, length, [&] { return spread(phi); }), bits);
    const Side b(draw(1, length, [&] { return uniform(); }), bits + static_cast<int>(random_() % 30));
    const NormDemand demand = fp64_demand(length);
    const bool proved = proves(a.extremes, b.extremes, 0, demand);
    const bool ruled_out = rules_proof_out(a.norms.front(), a.tops.front(), demand);
    EXPECT_FALSE(proved && ruled_out) << "phi = " << phi << ", k = " << length << ", " << bits << " bits";
    out += ruled_out ? 1 : 0;
    not_proved += proved ? 0 : 1;
  }
  EXPECT_GT(out, not_proved / 2);
  EXPECT_LT(not_proved, 350);
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
