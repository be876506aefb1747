// Rounding-error bounds of all vectors of an operand.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Sets bounds[v] for every row v of `operand` (vectors x k). Elements are scaled by ranges[v] and rounded to
// integers, as in the split into residues. NaN and infinities count as zeros. `inner_factors`: factors of the
// inner indices; empty: none.
template <class View>
void find_rounding_bounds(const View& operand, std::span<const VectorRange> ranges,
                          std::span<const double> inner_factors, std::span<RoundingBound> bounds,
                          int threads);

}  // namespace kintsugi::core
