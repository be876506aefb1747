// Vectorised split into floating-point slices that are stored in panels (SliceStorage::panels).
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// True if split_panel() gives the slices of split_element() for vectors of these ranges. This requires that
// the rule rounds residuals to a floating format, and that no slice can exceed the format's largest number.
bool can_split_panels(const SplitRule& rule, std::span<const VectorRange> ranges);

// Writes the panel that begins with vector `first`: slices of vectors first ... last - 1 of `operand`. The
// panel's other vectors become zero.
template <class View>
void split_panel(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                 const Slices& slices, std::int64_t first, std::int64_t last);

}  // namespace kintsugi::core
