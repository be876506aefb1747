// Memory for the sums of a device's native product before they are added to C.
#pragma once

#include <cstddef>

#include "planner/plan.hpp"

namespace kintsugi::core {

// How a native product under a contract is computed.
enum class NativeWay {
  vendor_sums,  // the vendor's sums are looked at: in C, or in the workspace before they are added to C
  own_kernel    // which tests every sum
};
NativeWay native_way(const Plan& plan, bool adds);

// Bytes for sums of all of C, or of as many items or columns as fit into 64 MiB; 0 where nobody looks at
// them.
std::size_t most_native_sum_bytes(const Plan& plan);

}  // namespace kintsugi::core
