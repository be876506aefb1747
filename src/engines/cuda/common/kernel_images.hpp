// Device code of the engine.
#pragma once

#include "base/cuda/kernel_image.hpp"

namespace kintsugi::core::cuda {

// Images of the engine's kernels; empty if the library was built without device code.
KernelImages engine_images();
DeviceBuild engine_build();

}  // namespace kintsugi::core::cuda
