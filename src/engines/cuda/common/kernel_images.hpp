// Device code inside the library: fat binaries, one of each .cu file (cmake/DeviceCode.cmake).
#pragma once

#include <span>

namespace kintsugi::core::cuda {

struct KernelImage {
  const char* name;  // stem of the file
  const void* data;
};

using KernelImages = std::span<const KernelImage>;

// Empty where the library was built without a toolkit.
KernelImages engine_images();

}  // namespace kintsugi::core::cuda
