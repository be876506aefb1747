// Memory for the sums of a device's native product before they are added to C.
#pragma once

#include <cstddef>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Ways to compute a native product under a contract.
enum class NativeWay {
  vendor_sums,  // the vendor library multiplies; sums are tested in C, or in the workspace if beta is not 0
  vendor_operands,  // the vendor library writes sums to C; they are tested unless ranges prove them
  own_kernel        // a kernel of Kintsugi multiplies, and tests every sum itself
};
// Returns the way that is expected to be fastest. `adds_c`: beta is not 0.
NativeWay native_way(const Plan& plan, bool adds_c);

// Returns the bytes for the sums of all elements of C, or of as many batch items or columns as fit into 64
// MiB. Returns 0 if no sums are tested in the workspace.
std::size_t max_native_sum_bytes(const Plan& plan);

}  // namespace kintsugi::core
