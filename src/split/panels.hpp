// Splits into panels of floating slices, many elements at a time.
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// True if split_panel() gives the slices of split_element() for vectors of these ranges: the rule makes
// residuals of a floating format, and no slice can exceed its largest number.
bool can_split_panels(const SplitRule& rule, std::span<const VectorRange> ranges);

// Writes the slices of vectors first ... last - 1 of `operand`, at most a panel that begins at `first`, and
// zeros for vectors that are missing in the panel.
template <class View>
void split_panel(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                 const Slices& slices, std::int64_t first, std::int64_t last);

}  // namespace kintsugi::core
