// The device code of the engine.
#pragma once

#include "base/kernel_image.hpp"

namespace kintsugi::core::cuda {

// Empty where the library was built without a toolkit.
KernelImages engine_images();

}  // namespace kintsugi::core::cuda
