// A scheme's a-priori bounds for given operands, and the check whether elements keep them.
#pragma once

#include <vector>

#include "lab/metrics.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// Returns the report of the handle's last execution.
Json report_of(kintsugi_handle handle);

// Returns the splits that ran, with their bounds inside and outside the window; null for native. Splits and
// bounds come from the report if the scheme was adapted to the operands, else from the plan.
Json bounds_of(const Json& plan, const Json& report);

// Returns the scheme's a-priori bound, and whether every compared element keeps it
// (docs/schema/accuracy.schema.json). Returns null if the scheme has no bound for these operands.
template <class T>
Json check_bound(const Json& bounds, core::MatrixView<const T> a, core::MatrixView<const T> b,
                 const std::vector<lab::ElementError>& elements);

extern template Json check_bound(const Json&, core::MatrixView<const float>, core::MatrixView<const float>,
                                 const std::vector<lab::ElementError>&);
extern template Json check_bound(const Json&, core::MatrixView<const double>, core::MatrixView<const double>,
                                 const std::vector<lab::ElementError>&);

}  // namespace kintsugi::tools
