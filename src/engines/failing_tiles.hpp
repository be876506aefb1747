// Sums of programs with an exponent per tile, and the half-precision program for tiles that fail Eq. 9 of
// MixPert (docs/schemes/mixpert.md).
#pragma once

#include <span>

#include "arith/range.hpp"
#include "recombine/accumulators.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// One operand of a block of C: its elements, and the ranges and slices of its vectors.
template <class View>
struct TiledOperand {
  View elements;
  std::span<const VectorRange> ranges;
  Slices slices;
};

// Writes group 1 of `sums`: the half-precision products of all pairs of a tile of A and a tile of B of which
// at least one tile fails. Returns false and writes nothing if no tile fails. View: OperandView of float or
// std::complex<float>.
template <class View>
bool add_failing_tiles(const TiledOperand<View>& a, const TiledOperand<View>& b, const Accumulators& sums,
                       int threads);

}  // namespace kintsugi::core
