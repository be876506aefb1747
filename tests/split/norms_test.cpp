// Compares scales by norms with exact sums of squares in GMP integers.
#include <gmp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "arith/residue/residue_scale.hpp"
#include "schemes/ozaki2.hpp"
#include "split/norms.hpp"
#include "split/ranges.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

class Integer {
 public:
  Integer() { mpz_init(value_); }
  explicit Integer(double integer) { mpz_init_set_d(value_, integer); }
  Integer(const Integer& other) { mpz_init_set(value_, other.value_); }
  Integer& operator=(const Integer& other) {
    mpz_set(value_, other.value_);
    return *this;
  }
  ~Integer() { mpz_clear(value_); }

  void add_square(const Integer& x) { mpz_addmul(value_, x.value_, x.value_); }
  // True if it is at most 2^exponent.
  bool within(int exponent) const {
    Integer limit(1);
    mpz_mul_2exp(limit.value_, limit.value_, static_cast<mp_bitcnt_t>(exponent));
    return mpz_cmp(value_, limit.value_) <= 0;
  }

 private:
  mpz_t value_;
};

// Sum over p of RN(2^scale x_p)^2.
Integer squares(const MatrixView<const double>& view, std::int64_t v, int scale) {
  Integer sum;
  for (std::int64_t p = 0; p < view.columns; ++p)
    sum.add_square(Integer(std::nearbyint(std::ldexp(view(v, p), scale))));
  return sum;
}

SplitRule rule_of(int moduli, ScaleRule scales, std::int64_t k) {
  Program program = schemes::ozaki2_program(moduli);
  program.split_a.scales = scales;
  schemes::fit_ozaki2(program, OperandType::f64, k);
  return program.split_a;
}

TEST(BitsOfSum, AreTheFewestThatHoldTheSum) {
  EXPECT_EQ(bits_of_sum(0), 0);
  EXPECT_EQ(bits_of_sum(1), 0);
  for (int bits = 1; bits < 64; ++bits) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    EXPECT_EQ(bits_of_sum(power), bits);
    EXPECT_EQ(bits_of_sum(power - 1), bits == 1 ? 0 : bits);
    EXPECT_EQ(bits_of_sum(power + 1), bits + 1);
  }
}

class Norms : public testing::TestWithParam<const char*> {
 protected:
  static constexpr std::int64_t vectors = 21;

  void make(std::int64_t k, std::uint64_t seed) {
    elements_.assign(static_cast<std::size_t>(vectors * k), 0);
    const MatrixView<double> view{elements_.data(), vectors, k, 1, vectors};
    measure::fill(measure::parse_distribution(GetParam()), measure::Side::a, seed, view);
    view_ = {elements_.data(), vectors, k, 1, vectors};
    ranges_.assign(vectors, VectorRange{});
  }

  std::vector<double> elements_;
  MatrixView<const double> view_;
  std::vector<VectorRange> ranges_;
};

// |a'_i|^2 <= 2^R, and the scale is no smaller than that by exponents. A scale two bits larger would break
// the bound, except where the norm's digits are rounded up too far.
TEST_P(Norms, IntegersStayBelowTheBound) {
  for (const std::int64_t k : {1, 3, 64, 65, 500}) {
    make(k, 17 + static_cast<std::uint64_t>(k));
    for (const int moduli : {3, 5, 9, 16, 34, 49}) {
      const SplitRule rule = rule_of(moduli, ScaleRule::norm, k);
      find_ranges(view_, rule, ranges_, 2);
      std::vector<VectorRange> before = ranges_;
      scale_by_norms(view_, rule, std::span(ranges_), 3);
      for (std::int64_t v = 0; v < vectors; ++v) {
        if ((ranges_[v].flags & VectorRange::all_zero) != 0) continue;
        const int scale = ranges_[v].scale;
        ASSERT_GE(scale, before[v].scale) << moduli << " moduli, k " << k << ", vector " << v;
        ASSERT_TRUE(squares(view_, v, scale).within(rule.sum_bits)) << moduli << ", k " << k << ", " << v;
        const int top = scale + ranges_[v].largest;
        ASSERT_LE(top + 1, rule.integer_bits() + 1);
        if (top >= norm_digits + 6 && k <= 65) {
          EXPECT_FALSE(squares(view_, v, scale + 2).within(rule.sum_bits)) << moduli << ", k " << k;
        }
      }
    }
  }
}

// The largest norm bounds the squares of every vector, with factors along k and without.
TEST_P(Norms, TheLargestHoldsForAll) {
  make(130, 5);
  const SplitRule rule = rule_of(16, ScaleRule::exponent, 130);
  std::vector<double> inner(130);
  for (std::size_t p = 0; p < inner.size(); ++p) inner[p] = std::ldexp(1.0, static_cast<int>(p % 7) - 3);
  for (const bool with_factors : {false, true}) {
    const std::span<const double> factors =
        with_factors ? std::span<const double>(inner) : std::span<const double>{};
    find_ranges(view_, rule, ranges_, 1, factors);
    const int bits = largest_norm_bits(view_, ranges_, factors, 2);
    EXPECT_EQ(bits, largest_norm_bits(view_, ranges_, factors, 1));
    std::vector<double> scaled = elements_;
    for (std::int64_t p = 0; with_factors && p < 130; ++p) {
      for (std::int64_t v = 0; v < vectors; ++v) scaled[v + p * vectors] *= inner[p];
    }
    const MatrixView<const double> view{scaled.data(), vectors, 130, 1, vectors};
    for (std::int64_t v = 0; v < vectors; ++v) {
      if ((ranges_[v].flags & VectorRange::all_zero) != 0) continue;
      EXPECT_TRUE(squares(view, v, ranges_[v].scale).within(bits + 2 * (rule.top_exponent - norm_digits)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Distributions, Norms,
                         testing::Values("uniform", "uniform01", "phi:2", "phi:4", "span:900", "subnormal",
                                         "subnormal-mixed", "offset:1000", "integer:9", "power-of-two:511",
                                         "cancellation:200"));

// Elements far below the maximum, which a product of powers of two turns to zero, count as one digit; zeros
// and special values as none.
TEST(NormsOfCorners, TinyElementsCountOneDigitZerosAndSpecialsNone) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  std::vector<double> x{std::numeric_limits<double>::max(), tiny, 0, std::numeric_limits<double>::infinity(),
                        tiny};
  const MatrixView<const double> view{x.data(), 1, 5, 5, 1};
  std::vector<VectorRange> ranges(1);
  const SplitRule rule = rule_of(16, ScaleRule::norm, 5);
  find_ranges(view, rule, std::span(ranges), 1);
  EXPECT_EQ(largest_norm_bits(view, ranges, {}, 1), bits_of_sum((std::uint64_t{1} << 30) + 2));
  std::vector<double> zeros(5);
  const MatrixView<const double> zero{zeros.data(), 1, 5, 5, 1};
  find_ranges(zero, rule, std::span(ranges), 1);
  EXPECT_EQ(largest_norm_bits(zero, ranges, {}, 1), 0);
  scale_by_norms(zero, rule, std::span(ranges), 1);
  EXPECT_EQ(ranges[0].scale, 0);
}

// The high word of a double-double element may be below the element, so norms take the next double above.
TEST(NormsOfCorners, DoubleDoubleElementsAreRoundedAwayFromZero) {
  std::vector<DoubleDouble> x{{1, 0x1p-60}, {-1, -0x1p-60}, {1, -0x1p-60}};
  const MatrixView<const DoubleDouble> view{x.data(), 3, 1, 1, 1};
  std::vector<VectorRange> ranges(3);
  find_ranges(view, rule_of(30, ScaleRule::norm, 1), std::span(ranges), 1);
  EXPECT_EQ(largest_norm_bits(view, ranges, {}, 1), 2 * norm_digits + 1);
  EXPECT_EQ(away_from_zero({std::numeric_limits<double>::max(), 1}), std::numeric_limits<double>::max());
  EXPECT_EQ(away_from_zero({1, -0x1p-60}), 1);
}

// Norms of 37 vectors of 130 elements, in each layout, against sums of single elements.
template <class T>
void expect_norms_of_single_elements() {
  constexpr std::int64_t vectors = 37, k = 130, stride = 40;
  std::mt19937_64 random(7);
  std::vector<T> x(static_cast<std::size_t>(stride * k * 2));
  for (T& element : x) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
    element =
        static_cast<T>(random() % 9 == 0 ? 0 : uniform * std::exp2(static_cast<int>(random() % 200) - 100));
  }
  x[1] = std::numeric_limits<T>::denorm_min();
  x[4] = std::numeric_limits<T>::infinity();
  const MatrixView<const T> views[] = {{x.data(), vectors, k, 1, stride},
                                       {x.data(), vectors, k, k + 1, 1},
                                       {x.data(), vectors, k, 2, 2 * vectors}};
  for (const MatrixView<const T>& view : views) {
    std::vector<VectorRange> ranges(vectors);
    std::vector<VectorNorm> norms(vectors);
    find_ranges(view, rule_of(15, ScaleRule::norm, k), std::span(ranges), 2, {}, std::span(norms));
    for (std::int64_t v = 0; v < vectors; ++v) {
      if (ranges[v].flags != 0) continue;
      NormSums sums;
      for (std::int64_t p = 0; p < k; ++p) sums.add(static_cast<double>(view(v, p)), norm_scaling(ranges[v]));
      const VectorNorm expected = sums.norm(k);
      EXPECT_EQ(norms[v].elements, expected.elements);
      EXPECT_EQ(norms[v].bits, expected.bits);
      EXPECT_EQ(norms[v].mean, expected.mean);
      EXPECT_EQ(norms[v].mean_exponent, expected.mean_exponent);
      EXPECT_EQ(norms[v].depth, expected.depth);
    }
  }
}

TEST(VectorNorms, AreSumsOverSingleElementsInEveryLayout) {
  expect_norms_of_single_elements<float>();
  expect_norms_of_single_elements<double>();
}

}  // namespace
}  // namespace kintsugi::core
