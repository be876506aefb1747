// CUDA's copies between pageable memory of the host and devices.
#pragma once

#include "engines/device_context.hpp"

namespace kintsugi::core::cuda {

const DeviceTransfers& transfers();

}  // namespace kintsugi::core::cuda
