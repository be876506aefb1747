// A scheme's promise for given operands, and the check that elements keep it.
#pragma once

#include <vector>

#include "lab/metrics.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// Returns the report of the handle's last execution.
Json report_of(kintsugi_handle handle);

// Returns the splits that ran and the bound that they promise, from the plan or, if the scheme fitted itself
// to the operands, from the report. Null for native.
Json promise_of(const Json& plan, const Json& report);

// Returns the scheme's a-priori bound, and whether every checked element keeps it
// (docs/schema/accuracy.schema.json); null if nothing is promised.
template <class T>
Json bound_of(const Json& promise, core::MatrixView<const T> a, core::MatrixView<const T> b,
              const std::vector<lab::ElementError>& elements);

extern template Json bound_of(const Json&, core::MatrixView<const float>, core::MatrixView<const float>,
                              const std::vector<lab::ElementError>&);
extern template Json bound_of(const Json&, core::MatrixView<const double>, core::MatrixView<const double>,
                              const std::vector<lab::ElementError>&);

}  // namespace kintsugi::tools
