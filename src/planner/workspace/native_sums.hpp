// Memory for the sums of a device's native product before they are added to C.
#pragma once

#include <cstddef>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Ways to compute a native product under a contract.
enum class NativeWay {
  vendor_sums,      // the vendor's sums are tested: in C, or in the workspace before they are added to C
  vendor_operands,  // the vendor's sums in C, which are tested unless the operands prove them
  own_kernel        // a kernel of ours, which tests every sum itself
};
NativeWay native_way(const Plan& plan, bool adds);

// Bytes for the sums of all of C, or of as many items or columns as fit into 64 MiB; 0 if the sums are not
// tested there.
std::size_t max_native_sum_bytes(const Plan& plan);

}  // namespace kintsugi::core
