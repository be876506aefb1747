// Sums over all vectors of an operand for programs of residues: norms, as exact sums of integers
// (arith/residue/residue_scale.hpp), and rounding-error bounds.
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/residue/norm_proof.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Sets the scale of every row v of `operand` (vectors x k) by ScaleRule::norm. NaN and infinities count as
// zeros. Precondition: ranges[v] has the row's exponents.
template <class View>
void scale_by_norms(const View& operand, const SplitRule& rule, std::span<VectorRange> ranges, int threads);

// Sets norms[v] of rows first ... last - 1 of `operand` (vectors x k), at most vectors_per_strip, that are
// neither zero nor have special values; all others stay as they are. The sums are integers, so that layout
// does not change them. Precondition: ranges[v] has the row's exponents.
template <class View>
void find_norms(const View& operand, std::span<const VectorRange> ranges, std::span<VectorNorm> norms,
                std::int64_t first, std::int64_t last);

// The same for all rows, in parallel.
template <class View>
void find_norms(const View& operand, std::span<const VectorRange> ranges, std::span<VectorNorm> norms,
                int threads);

// Returns the least L >= 0 such that sum over p of D_vp^2 <= 2^L for all rows v of `operand`. D_vp is the
// magnitude of element (v, p), rounded up to an integer of norm_digits bits
// (arith/residue/residue_scale.hpp). `inner_factors`: factors of the inner indices with which `ranges` was
// computed; empty: none.
template <class View>
int largest_norm_bits(const View& operand, std::span<const VectorRange> ranges,
                      std::span<const double> inner_factors, int threads);

// Sets bounds[v] for every row v of `operand` (vectors x k). Elements are scaled by ranges[v] and rounded to
// integers, as in the split into residues. NaN and infinities count as zeros. `inner_factors`: factors of the
// inner indices; empty: none.
template <class View>
void find_rounding_bounds(const View& operand, std::span<const VectorRange> ranges,
                          std::span<const double> inner_factors, std::span<RoundingBound> bounds,
                          int threads);

}  // namespace kintsugi::core
