// A scheme's a-priori bounds for given operands, and the check that elements keep them.
#pragma once

#include <vector>

#include "lab/metrics.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// Returns the report of the handle's last execution.
Json report_of(kintsugi_handle handle);

// Returns the splits that ran, and their bounds inside and outside the window. They come from the report if
// the scheme adapted itself to the operands, else from the plan. Null for native.
Json bounds_of(const Json& plan, const Json& report);

// Returns the scheme's a-priori bound, and whether every compared element keeps it
// (docs/schema/accuracy.schema.json); null if nothing is promised.
template <class T>
Json check_bound(const Json& bounds, core::MatrixView<const T> a, core::MatrixView<const T> b,
                 const std::vector<lab::ElementError>& elements);

extern template Json check_bound(const Json&, core::MatrixView<const float>, core::MatrixView<const float>,
                                 const std::vector<lab::ElementError>&);
extern template Json check_bound(const Json&, core::MatrixView<const double>, core::MatrixView<const double>,
                                 const std::vector<lab::ElementError>&);

}  // namespace kintsugi::tools
