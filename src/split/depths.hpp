// Mean depths of vectors, by which candidates accept operands of wide dynamic range (are_within_depth() of
// split/ranges.hpp).
#pragma once

#include <span>

#include "arith/range.hpp"

namespace kintsugi::core {

// Sets `elements` and `depth` of every vector's range. A depth that needs more than 31 bits becomes
// unknown_depth. Precondition: `largest` is set. View: OperandView of any element type.
template <class View>
void find_depths(const View& operand, std::span<VectorRange> ranges, int threads);

}  // namespace kintsugi::core
