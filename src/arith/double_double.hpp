// Double-double results: exact sums rounded once to double-double, and epilogues with double-double scalars.
#pragma once

#include <array>
#include <cmath>
#include <limits>

#include "arith/epilogue.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/exact_sum.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::core {

namespace exact_detail {

// x - high, where high is x rounded to nearest.
template <int Limbs>
ExactNumber<Limbs + 1> residual_of(const ExactNumber<Limbs>& x, double high) {
  const ExactNumber<1> exact_high = exact(high);
  const int shift = exact_high.exponent - x.exponent;
  if (high == 0 || shift < 0) return {};  // x rounds to 0, or has no bits below the lowest of `high`
  const auto x_integer = WideInteger<Limbs + 1>::shifted(x.magnitude, 0);
  const auto high_integer = WideInteger<Limbs + 1>::shifted(exact_high.magnitude, shift);
  const bool high_exceeds_x = x_integer.less_than(high_integer);
  ExactNumber<Limbs + 1> residual{high_exceeds_x ? high_integer : x_integer, x.exponent,
                                  x.negative != high_exceeds_x};
  residual.magnitude.subtract(high_exceeds_x ? x_integer : high_integer);
  return residual;
}

}  // namespace exact_detail

// x rounded once to the nearest double-double number: hi = RN(x), lo = RN(x - hi), then normalized so that hi
// is RN(hi + lo). Infinite if hi overflows.
template <int Limbs>
DoubleDouble rounded_to_pair(const ExactNumber<Limbs>& x) {
  const double high = rounded<double>(x);
  if (!is_finite(high)) return {high, 0};
  return normalized({high, rounded<double>(exact_detail::residual_of(x, high))});
}

inline DoubleDouble rounded_to_pair(const ExactSum& sum) {
  const double high = sum.to_double();
  if (!is_finite(high)) return {high, 0};
  ExactSum residual = sum;
  residual.add(-high);
  return normalized({high, residual.to_double()});
}

namespace exact_detail {

// Rounded sum of a few terms. Terms whose bits lie close together are added in one wide integer, others in a
// superaccumulator.
template <int Limbs>
class DoubleDoubleTerms {
 public:
  template <int OtherLimbs>
  void add(const ExactNumber<OtherLimbs>& x) {
    if (x.magnitude.length() == 0) return;
    ExactNumber<Limbs>& term = terms_[count_++];
    term = {WideInteger<Limbs>::shifted(x.magnitude, 0), x.exponent, x.negative};
    top_ = std::max(top_, top_of(term));
    bottom_ = std::min(bottom_, term.exponent);
  }

  DoubleDouble rounded() const {
    if (count_ == 0) return 0;
    return top_ - bottom_ < bits - carries ? rounded_to_pair(sum()) : rounded_to_pair(wide_sum());
  }

 private:
  // The largest sum has two products of a word of alpha with x, and four of a word of beta with a word of c.
  static constexpr std::size_t max_terms = 6;
  static constexpr int width = Limbs + 6;  // limbs of the wide integer: terms may lie some 380 bits apart
  static constexpr int bits = WideInteger<width>::bits;
  static constexpr int carries = 5;  // bits for the carries of six terms and the sign

  ExactNumber<width> sum() const {
    WideInteger<width> total;
    for (std::size_t t = 0; t < count_; ++t)
      add_shifted(total, terms_[t].magnitude, terms_[t].exponent - bottom_, terms_[t].negative);
    return signed_number(total, bottom_);
  }

  ExactSum wide_sum() const {
    ExactSum total;
    for (std::size_t t = 0; t < count_; ++t) {
      for (int l = 0; l < Limbs; ++l)
        total.add_integer(terms_[t].magnitude.limb[l], terms_[t].exponent + 64 * l, terms_[t].negative);
    }
    return total;
  }

  std::array<ExactNumber<Limbs>, max_terms> terms_{};
  std::size_t count_ = 0;
  int top_ = std::numeric_limits<int>::min();     // exponent above the highest bit of all terms
  int bottom_ = std::numeric_limits<int>::max();  // exponent of the lowest bit of all terms
};

}  // namespace exact_detail

// special_epilogue() of arith/epilogue.hpp for pairs. alpha, beta and c are normalized: an infinity or NaN is
// in the high word.
inline DoubleDouble special_epilogue(int sign, const DoubleDouble& alpha, const DoubleDouble& beta,
                                     const DoubleDouble* c) {
  return special_epilogue<double>(sign, alpha.hi, beta.hi, c == nullptr ? nullptr : &c->hi);
}

// alpha * x + beta * c, rounded once to double-double; c is null when beta = 0.
template <int Limbs>
DoubleDouble exact_epilogue(const ExactNumber<Limbs>& x, const DoubleDouble& alpha, const DoubleDouble& beta,
                            const DoubleDouble* c) {
  using namespace exact_detail;
  if (c == nullptr && alpha == DoubleDouble(1)) return rounded_to_pair(x);
  const DoubleDouble old = c == nullptr ? DoubleDouble() : normalized(*c);
  if (!is_finite(alpha.hi) || !is_finite(beta.hi) || !is_finite(old.hi)) {
    const int sign = x.magnitude.length() == 0 ? 0 : x.negative ? -1 : 1;
    return special_epilogue(sign, alpha, beta, c == nullptr ? nullptr : &old);
  }
  DoubleDoubleTerms<std::max(Limbs + 1, 2)> terms;
  for (const double factor : {alpha.hi, alpha.lo}) {
    if (factor != 0) terms.add(times(x, exact(factor)));
  }
  for (const double factor : {beta.hi, beta.lo}) {
    if (c == nullptr || factor == 0) continue;
    terms.add(times(exact(factor), exact(old.hi)));
    terms.add(times(exact(factor), exact(old.lo)));
  }
  return terms.rounded();
}

// beta * c, rounded once to nearest.
inline DoubleDouble scaled_element(const DoubleDouble& beta, const DoubleDouble& c, RoundingMode) {
  return exact_epilogue(ExactNumber<1>{}, DoubleDouble(), beta, &c);
}

// alpha * sum + beta * c of an exact sum, rounded once; c is null when beta = 0.
inline DoubleDouble rounded_pair_result(const ExactSum& sum, const DoubleDouble& alpha,
                                        const DoubleDouble& beta, const DoubleDouble* c) {
  const DoubleDouble old = c == nullptr ? DoubleDouble() : normalized(*c);
  if (!is_finite(alpha.hi) || !is_finite(beta.hi) || !is_finite(old.hi))
    return special_epilogue(sum.sign(), alpha, beta, c == nullptr ? nullptr : &old);
  ExactSum result = sum;
  result.multiply(alpha.hi);
  if (alpha.lo != 0) {
    ExactSum crossed = sum;
    crossed.multiply(alpha.lo);
    result.add(crossed);
  }
  for (const double factor : {beta.hi, beta.lo}) {
    result.add_product(factor, old.hi);
    result.add_product(factor, old.lo);
  }
  return rounded_to_pair(result);
}

// Adds the dot product of two contiguous vectors of normalized pairs to the sum.
inline void add_products(ExactSum& sum, const DoubleDouble* a, const DoubleDouble* b, std::int64_t count) {
  for (std::int64_t p = 0; p < count; ++p) {
    for (const double x : {a[p].hi, a[p].lo}) {
      sum.add_product(x, b[p].hi);
      sum.add_product(x, b[p].lo);
    }
  }
}

}  // namespace kintsugi::core
