// Expected times of native products on a device, by the library's kernels and by cuBLAS.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Operations of the vendor library's kernels for the type, in a microsecond.
double vendor_rate(const NativeCosts& costs, bool is_aligned);

NativeTimes native_times(const NativeShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
