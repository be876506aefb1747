#include "split/split.hpp"

#include <algorithm>

#include "arith/residue/complex_residue.hpp"
#include "base/vectorised.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Number of elements of one vector that are split together.
constexpr int lanes = 64;

// Limbs of the integers of lanes elements (arith/residue/residue.hpp).
struct ResidueLimbs {
  alignas(64) double limb[max_limbs][lanes];
};

// Writes `count` limbs of the integer nearest to x[e] * factors.first * factors.second, for each e.
KINTSUGI_VECTORIZED void take_limbs(const double* x, TwoFactors factors, int count, ResidueLimbs& limbs) {
  alignas(64) double integers[lanes];
  for (int e = 0; e < lanes; ++e) integers[e] = nearest_integer(x[e] * factors.first * factors.second);
  for (int l = count - 1; l >= 0; --l) {
    for (int e = 0; e < lanes; ++e) limbs.limb[l][e] = take_limb(integers[e], l);
  }
}

// Takes the limbs of double-double numbers. A number becomes the sum of two integers: the integer nearest to
// `high`, and the integer nearest to the rest of `high` plus `low`. This sum differs from the number by at
// most 1/2 and one rounding. Each limb is the sum of the limbs of the two integers.
KINTSUGI_VECTORIZED void take_pair_limbs(const double* high, const double* low, TwoFactors factors, int count,
                                         ResidueLimbs& limbs) {
  alignas(64) double upper[lanes];
  alignas(64) double lower[lanes];
  for (int e = 0; e < lanes; ++e) {
    const double scaled = high[e] * factors.first * factors.second;
    upper[e] = nearest_integer(scaled);
    lower[e] = nearest_integer((scaled - upper[e]) + low[e] * factors.first * factors.second);
  }
  for (int l = count - 1; l >= 0; --l) {
    for (int e = 0; e < lanes; ++e) limbs.limb[l][e] = take_limb(upper[e], l) + take_limb(lower[e], l);
  }
}

template <class View>
void load_limbs(const View& operand, std::span<const double> inner_factors, std::int64_t v,
                std::int64_t begin, std::int64_t end, TwoFactors factors, int count, ResidueLimbs& limbs) {
  alignas(64) double elements[lanes] = {};
  load_elements(operand, inner_factors, v, begin, end, elements);
  take_limbs(elements, factors, count, limbs);
}

void load_limbs(const MatrixView<const DoubleDouble>& operand, std::span<const double> inner_factors,
                std::int64_t v, std::int64_t begin, std::int64_t end, TwoFactors factors, int count,
                ResidueLimbs& limbs) {
  alignas(64) double high[lanes] = {};
  alignas(64) double low[lanes] = {};
  load_elements(operand, inner_factors, v, begin, end, high, low);
  take_pair_limbs(high, low, factors, count, limbs);
}

// Writes the residues modulo moduli[t] of integers of `count` limbs.
KINTSUGI_VECTORIZED void store_residues(const ResidueLimbs& limbs, int count, int t, std::int8_t* target) {
  alignas(64) double sums[lanes];
  const double* weights = residue_detail::limb_residues[t].data();
  for (int e = 0; e < lanes; ++e) sums[e] = limbs.limb[0][e] * weights[0];
  for (int l = 1; l < count; ++l) {
    const double weight = weights[l];
    for (int e = 0; e < lanes; ++e) sums[e] += limbs.limb[l][e] * weight;
  }
  const std::int32_t modulus = moduli[t];
  const double inverse = 1.0 / modulus;
  for (int e = 0; e < lanes; ++e)
    target[e] = static_cast<std::int8_t>(small_residue(sums[e], modulus, inverse));
}

}  // namespace

// Writes whole groups of `lanes` elements. The last group may have fewer elements; the vectors of slices are
// padded to a multiple of `lanes`.
template <class View>
void split_block_into_residues(const View& operand, const SplitRule& rule,
                               std::span<const VectorRange> ranges, const Slices& slices,
                               std::span<const double> inner_factors, std::int64_t first, std::int64_t last) {
  static_assert(Slices::k_multiple % lanes == 0);
  const int limb_count = limbs_of(rule.integer_bits());
  for (std::int64_t begin = 0; begin < operand.columns; begin += lanes) {
    const std::int64_t end = std::min(operand.columns, begin + lanes);
    for (std::int64_t v = first; v < last; ++v) {
      ResidueLimbs limbs;
      load_limbs(operand, inner_factors, v, begin, end, two_factors(ranges[v].scale), limb_count, limbs);
      for (int t = 0; t < rule.slices; ++t)
        store_residues(limbs, limb_count, t, slices.vector<std::int8_t>(t, v) + begin);
    }
  }
}

#define INSTANTIATE(View)                                                                              \
  template void split_block_into_residues(const View&, const SplitRule&, std::span<const VectorRange>, \
                                          const Slices&, std::span<const double>, std::int64_t,        \
                                          std::int64_t);
KINTSUGI_FOR_ALL_VIEWS(INSTANTIATE)
#undef INSTANTIATE

namespace {

// Residues of real and imaginary parts modulo one modulus.
struct Residues {
  alignas(64) double re[lanes];
  alignas(64) double im[lanes];
};

// Sets the residues of integers of `count` limbs modulo one modulus. weights[l] is congruent to 2^(42 l).
KINTSUGI_VECTORIZED void reduce_limbs(const ResidueLimbs& limbs, int count, const double* weights,
                                      std::int32_t modulus, double* residues) {
  alignas(64) double sums[lanes] = {};
  for (int l = 0; l < count; ++l) {
    const double weight = weights[l];
    for (int e = 0; e < lanes; ++e) sums[e] += limbs.limb[l][e] * weight;
  }
  const double inverse = 1.0 / modulus;
  for (int e = 0; e < lanes; ++e) residues[e] = small_residue(sums[e], modulus, inverse);
}

// Stores re + factor * im modulo the modulus.
KINTSUGI_VECTORIZED void store_combination(const Residues& residues, double factor, std::int32_t modulus,
                                           std::int8_t* target) {
  const double inverse = 1.0 / modulus;
  for (int e = 0; e < lanes; ++e) {
    target[e] =
        static_cast<std::int8_t>(small_residue(residues.re[e] + factor * residues.im[e], modulus, inverse));
  }
}

KINTSUGI_VECTORIZED void store(const double* residues, std::int8_t* target) {
  for (int e = 0; e < lanes; ++e) target[e] = static_cast<std::int8_t>(residues[e]);
}

struct Elements {
  alignas(64) double re[lanes] = {};
  alignas(64) double im[lanes] = {};
};

void store_residues(const Elements& elements, int scale, const SplitRule& rule, const Slices& slices,
                    std::int64_t v, std::int64_t begin) {
  const ComplexBasis& basis = rule.complex_basis;
  const int limb_count = limbs_of(rule.integer_bits());
  ResidueLimbs re, im;
  take_limbs(elements.re, two_factors(scale), limb_count, re);
  take_limbs(elements.im, two_factors(scale), limb_count, im);
  for (int t = 0; t < basis.count(); ++t) {
    const int modulus = basis.modulus(t);
    const auto target = [&](int s) {
      return slices.vector<std::int8_t>(basis.first_slice(t) + s, v) + begin;
    };
    Residues residues;
    const double* weights = basis.limb_residues(t).data();
    reduce_limbs(re, limb_count, weights, modulus, residues.re);
    reduce_limbs(im, limb_count, weights, modulus, residues.im);
    if (basis.has_root(t)) {
      store_combination(residues, basis.root(t), modulus, target(0));
      store_combination(residues, -basis.root(t), modulus, target(1));
    } else {
      store(residues.re, target(0));
      store(residues.im, target(1));
      store_combination(residues, 1, modulus, target(2));
    }
  }
}

}  // namespace

template <class T>
void split_block_into_complex_residues(const EmbeddedView<T>& operand, const SplitRule& rule,
                                       std::span<const VectorRange> ranges, const Slices& slices,
                                       std::span<const double> inner_factors, std::int64_t first,
                                       std::int64_t last) {
  const auto& matrix = operand.matrix;
  const double sign = operand.conjugated ? -1 : 1;
  for (std::int64_t begin = 0; begin < matrix.columns; begin += lanes) {
    const std::int64_t end = std::min(matrix.columns, begin + lanes);
    for (std::int64_t v = first; v < last; ++v) {
      Elements elements;
      for (std::int64_t p = begin; p < end; ++p) {
        const double factor = inner_factors.empty() ? 1 : inner_factors[2 * p];
        elements.re[p - begin] = factor * finite_or_zero(matrix(v, p).real());
        elements.im[p - begin] = sign * factor * finite_or_zero(matrix(v, p).imag());
      }
      store_residues(elements, ranges[operand.right ? 2 * v : v].scale, rule, slices, v, begin);
    }
  }
}

template void split_block_into_complex_residues(const EmbeddedView<float>&, const SplitRule&,
                                                std::span<const VectorRange>, const Slices&,
                                                std::span<const double>, std::int64_t, std::int64_t);
template void split_block_into_complex_residues(const EmbeddedView<double>&, const SplitRule&,
                                                std::span<const VectorRange>, const Slices&,
                                                std::span<const double>, std::int64_t, std::int64_t);

}  // namespace kintsugi::core
