// Split by real scales: the largest residual of a vector becomes 127 in each slice.
//
//   r_0 = 2^scale x     w_s = max_p |r_s| / 127     slice_s = RN(r_s / w_s)     r_(s+1) = r_s - w_s slice_s
//
// A weight w_s is rounded to fp32, so its products with integers of 8 bits are exact in double. It is 0 where
// no residual is left. NaN and infinities count as zeros.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// True if the rule's slices are scaled by maxima. The marker is an integer format whose residuals have no
// power of two.
constexpr bool scales_by_maxima(const SplitRule& rule) {
  return rule.kind == SplitKind::rounded_residuals && !rule.format->floating && rule.residual_exponent == 0;
}

// Sets weights[v * rule.slices + s] for all vectors v and slices s. View: OperandView of float or
// std::complex<float>.
template <class View>
void find_slice_weights(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                        int threads, float* weights);

// Writes vectors first ... last - 1 of packed slices.
template <class View>
void split_block_by_maxima(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                           const Slices& slices, std::int64_t first, std::int64_t last);

}  // namespace kintsugi::core
