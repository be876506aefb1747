// Expected times of native products on a device, by the library's kernels and by cuBLAS.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Operations per microsecond of the vendor library's kernels for the type.
double vendor_rate(const NativeCosts& costs, bool is_aligned);

NativeTimes native_times(const NativeShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
