// The half-precision program of tiles that fail Eq. 9 (docs/schemes/mixpert.md).
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/schedule.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// One operand of a block of C: original elements, scales and slices of its vectors.
template <class View>
struct TiledOperand {
  View elements;
  std::span<const VectorRange> ranges;
  Slices slices;
};

// Writes group 1 of `sums`: the products, in half precision, of every pair of tiles of A and B of which at
// least one fails. Returns false, with nothing written, if no tile of the block fails. View: OperandView of
// float or std::complex<float>.
template <class View>
bool add_failing_tiles(const TiledOperand<View>& a, const TiledOperand<View>& b, const Accumulators& sums,
                       int threads);

}  // namespace kintsugi::core
