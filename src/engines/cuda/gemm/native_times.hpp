// Expected times of native products on a device, by cuBLAS and by the library's kernels, in microseconds.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

double vendor_time(const NativeShape& shape, const Costs& costs);

// Time of multiply_unsliced().
double own_native_time(const NativeShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
