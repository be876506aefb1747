// Memory of native products on a device.
#pragma once

#include <cstddef>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Whether sums are checked before they are added to C. They go through memory once more, 16 bytes an FP64 element written
// and read again: some 12 % of a product with k = 2048 on an H200, and a launch where C lies in the L2 cache. Shorter
// products that update a larger C are cuBLAS's alone, as are arrays of pointers, of which there are none to the sums.
bool checks_native_sums(const Plan& plan);

// Bytes for sums of all of C, or of as many items or columns as fit into 64 MiB; 0 where they are not checked.
std::size_t most_native_sum_bytes(const Plan& plan);

}  // namespace kintsugi::core
