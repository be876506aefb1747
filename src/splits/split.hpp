// The host loop of a split: one walk over the operand, whatever the split's kind.
#pragma once

#include <span>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "splits/slices.hpp"

namespace kintsugi::core {

// Writes all slices of `operand` (vectors x k) with the scales in `ranges`, padding included.
// View: OperandView of any type of entries. NaN and infinities become zero: the flags in `ranges` carry them (recombine/special_values.hpp).
template <class View>
void split_operand(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                   const Slices& slices, int threads, std::span<const double> inner = {});

}  // namespace kintsugi::core
