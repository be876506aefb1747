// A scheme's a-priori bounds for given operands, and the check whether elements keep them.
#pragma once

#include <vector>

#include "support.hpp"
#include "tools/measure/bound_check.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

// Returns the split that a member of a plan's description describes. The result refers to strings of `split`,
// which must outlive it.
measure::SplitDescription description_of(const Json& split);

// Returns the splits that ran, with their bounds inside and outside the window; null for native. Splits and
// bounds come from the report if the scheme was adapted to the operands, else from the plan.
Json bounds_of(const Json& plan, const Json& report);

// Returns the scheme's a-priori bound, and whether every compared element keeps it
// (lab/schema/accuracy.schema.json). Returns null if the scheme has no bound for these operands.
template <class T>
Json check_bound(const Json& bounds, core::MatrixView<const T> a, core::MatrixView<const T> b,
                 const std::vector<measure::ElementError>& elements);

extern template Json check_bound(const Json&, core::MatrixView<const float>, core::MatrixView<const float>,
                                 const std::vector<measure::ElementError>&);
extern template Json check_bound(const Json&, core::MatrixView<const double>, core::MatrixView<const double>,
                                 const std::vector<measure::ElementError>&);

}  // namespace kintsugi::tools
