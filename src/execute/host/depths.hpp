// Mean depths of vectors, by which the grid of a reproducible product is accepted.
#pragma once

#include <span>

#include "arith/range.hpp"

namespace kintsugi::core {

// Sets elements and depth of every vector's range, which has its largest exponent. A depth of more than 31
// bits stays unknown. View: OperandView of any element type.
template <class View>
void find_depths(const View& operand, std::span<VectorRange> ranges, int threads);

}  // namespace kintsugi::core
