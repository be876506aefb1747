// Kernels of candidates with different numbers of moduli (engines/device_moduli.hpp).
#pragma once

#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

// nullptr if the current device has none.
const DeviceSharedKernels* shared_kernels();

}  // namespace kintsugi::core::cuda
