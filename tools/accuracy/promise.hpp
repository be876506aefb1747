// What a scheme promises for the operands that it was given, and whether the checked elements keep it.
#pragma once

#include <vector>

#include "lab/metrics.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// What the handle's last execution did.
Json report_of(kintsugi_handle handle);

// The splits that ran and the bound that they promise, from the plan or, where the scheme fitted itself to
// the operands, from the report. Null for native.
Json promise_of(const Json& plan, const Json& report);

// The scheme's a-priori bound, and whether every checked element keeps it (docs/schema/accuracy.schema.json);
// null where nothing is promised.
template <class T>
Json bound_of(const Json& promise, core::MatrixView<const T> a, core::MatrixView<const T> b,
              const std::vector<lab::ElementError>& elements);

extern template Json bound_of(const Json&, core::MatrixView<const float>, core::MatrixView<const float>,
                              const std::vector<lab::ElementError>&);
extern template Json bound_of(const Json&, core::MatrixView<const double>, core::MatrixView<const double>,
                              const std::vector<lab::ElementError>&);

}  // namespace kintsugi::tools
