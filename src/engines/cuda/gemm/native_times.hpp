// Expected times of native products on a device, by the library's kernels and by cuBLAS.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Microseconds of a product by the vendor library, which is not tested.
double vendor_time(const NativeShape& shape, const Costs& costs);

NativeTimes native_times(const NativeShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
