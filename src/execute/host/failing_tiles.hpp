// The half-precision program for tiles that fail Eq. 9 of MixPert (docs/schemes/mixpert.md).
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/schedule.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// One operand of a block of C: the elements themselves, and the scales and slices of its vectors.
template <class View>
struct TiledOperand {
  View elements;
  std::span<const VectorRange> ranges;
  Slices slices;
};

// Writes group 1 of `sums`: the sums of the half-precision products of those pairs of a tile of A and a tile
// of B in which at least one tile fails. Returns false, with nothing written, if no tile fails. View:
// OperandView of float or std::complex<float>.
template <class View>
bool add_failing_tiles(const TiledOperand<View>& a, const TiledOperand<View>& b, const Accumulators& sums,
                       int threads);

}  // namespace kintsugi::core
