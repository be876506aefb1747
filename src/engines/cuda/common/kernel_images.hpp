// The device code of the engine.
#pragma once

#include "base/cuda/kernel_image.hpp"

namespace kintsugi::core::cuda {

// Empty where the library was built without device code.
KernelImages engine_images();
DeviceBuild engine_build();

}  // namespace kintsugi::core::cuda
