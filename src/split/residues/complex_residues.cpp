#include "split/residues/complex_residues.hpp"

#include <algorithm>

#include "arith/residue/complex_residue.hpp"
#include "base/vectorised.hpp"
#include "split/residues/residues.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Residues of real and imaginary parts modulo one modulus.
struct Residues {
  alignas(64) double re[residue_lanes];
  alignas(64) double im[residue_lanes];
};

// Sets the residues of integers of `count` limbs modulo one modulus. weights[l] is congruent to 2^(42 l).
KINTSUGI_VECTORIZED void reduce_limbs(const ResidueLimbs& limbs, int count, const double* weights,
                                      std::int32_t modulus, double* residues) {
  alignas(64) double sums[residue_lanes] = {};
  for (int l = 0; l < count; ++l) {
    const double weight = weights[l];
    for (int e = 0; e < residue_lanes; ++e) sums[e] += limbs.limb[l][e] * weight;
  }
  const double inverse = 1.0 / modulus;
  for (int e = 0; e < residue_lanes; ++e) residues[e] = small_residue(sums[e], modulus, inverse);
}

// Stores re + factor * im modulo the modulus.
KINTSUGI_VECTORIZED void store_combination(const Residues& residues, double factor, std::int32_t modulus,
                                           std::int8_t* target) {
  const double inverse = 1.0 / modulus;
  for (int e = 0; e < residue_lanes; ++e) {
    target[e] =
        static_cast<std::int8_t>(small_residue(residues.re[e] + factor * residues.im[e], modulus, inverse));
  }
}

KINTSUGI_VECTORIZED void store(const double* residues, std::int8_t* target) {
  for (int e = 0; e < residue_lanes; ++e) target[e] = static_cast<std::int8_t>(residues[e]);
}

struct Elements {
  alignas(64) double re[residue_lanes] = {};
  alignas(64) double im[residue_lanes] = {};
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
  for (std::int64_t begin = 0; begin < matrix.columns; begin += residue_lanes) {
    const std::int64_t end = std::min(matrix.columns, begin + residue_lanes);
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
