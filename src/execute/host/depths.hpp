// Mean depths of vectors, by which the grid of a reproducible product is accepted.
#pragma once

#include <span>

#include "arith/range.hpp"

namespace kintsugi::core {

// Sets `elements` and `depth` of every vector's range. Precondition: `largest` is set. A sum of depths that
// needs more than 31 bits is set to unknown_depth. View: OperandView of any element type.
template <class View>
void find_depths(const View& operand, std::span<VectorRange> ranges, int threads);

}  // namespace kintsugi::core
