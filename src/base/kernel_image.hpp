// Device code inside a program: fat binaries, one of each .cu file (cmake/DeviceCode.cmake).
#pragma once

#include <span>
#include <string_view>

#include "base/cuda_driver.hpp"

namespace kintsugi::core::cuda {

struct KernelImage {
  const char* name;  // stem of the file
  const void* data;
};

using KernelImages = std::span<const KernelImage>;

// The image of that name, handed to the driver when it is first wanted. Belongs to no context.
Library loaded_image(KernelImages images, std::string_view name);

}  // namespace kintsugi::core::cuda
