// Memory for the sums of a device's native product before they are added to C.
#pragma once

#include <cstddef>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Whether a plan looks at native sums before it adds them to C.
bool looks_at_sums(const Plan& plan);

// Bytes for sums of all of C, or of as many items or columns as fit into 64 MiB; 0 where nobody looks at
// them.
std::size_t most_native_sum_bytes(const Plan& plan);

}  // namespace kintsugi::core
