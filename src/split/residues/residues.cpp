#include "split/residues/residues.hpp"

#include <algorithm>

#include "base/vectorised.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

constexpr int lanes = residue_lanes;

}  // namespace

KINTSUGI_VECTORIZED void take_limbs(const double* x, TwoFactors factors, int count, ResidueLimbs& limbs) {
  alignas(64) double integers[lanes];
  for (int e = 0; e < lanes; ++e) integers[e] = nearest_integer(x[e] * factors.first * factors.second);
  for (int l = count - 1; l >= 0; --l) {
    for (int e = 0; e < lanes; ++e) limbs.limb[l][e] = take_limb(integers[e], l);
  }
}

namespace {

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

template void split_block_into_residues(const MatrixView<const float>&, const SplitRule&,
                                        std::span<const VectorRange>, const Slices&, std::span<const double>,
                                        std::int64_t, std::int64_t);
template void split_block_into_residues(const MatrixView<const double>&, const SplitRule&,
                                        std::span<const VectorRange>, const Slices&, std::span<const double>,
                                        std::int64_t, std::int64_t);
template void split_block_into_residues(const MatrixView<const DoubleDouble>&, const SplitRule&,
                                        std::span<const VectorRange>, const Slices&, std::span<const double>,
                                        std::int64_t, std::int64_t);
template void split_block_into_residues(const EmbeddedView<float>&, const SplitRule&,
                                        std::span<const VectorRange>, const Slices&, std::span<const double>,
                                        std::int64_t, std::int64_t);
template void split_block_into_residues(const EmbeddedView<double>&, const SplitRule&,
                                        std::span<const VectorRange>, const Slices&, std::span<const double>,
                                        std::int64_t, std::int64_t);

}  // namespace kintsugi::core
