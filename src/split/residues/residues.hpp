// Residues of many elements at once.
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Number of elements of one vector that are split together.
inline constexpr int residue_lanes = 64;

// Limbs of the integers of residue_lanes elements (arith/residue/residue.hpp).
struct ResidueLimbs {
  alignas(64) double limb[max_limbs][residue_lanes];
};

// Writes `count` limbs of the integer nearest to x[e] * factors.first * factors.second, for each e.
void take_limbs(const double* x, TwoFactors factors, int count, ResidueLimbs& limbs);

// Writes vectors first ... last - 1 of the slices: the results of split_into_residues() for all elements. NaN
// and infinities count as zeros. `inner_factors`: factors of the inner indices; empty: none.
template <class View>
void split_block_into_residues(const View& operand, const SplitRule& rule,
                               std::span<const VectorRange> ranges, const Slices& slices,
                               std::span<const double> inner_factors, std::int64_t first, std::int64_t last);

}  // namespace kintsugi::core
