// Device code of the engine.
#pragma once

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

// Images of the engine's kernels; empty if the library was built without device code.
KernelImages engine_images();
// Description of the build of the device code, or the reason why there is none.
DeviceBuild engine_build();

}  // namespace kintsugi::core::cuda
