// Device code inside a program: fat binaries, one of each .cu file (cmake/DeviceCode.cmake).
#pragma once

#include <span>

namespace kintsugi::core::cuda {

struct KernelImage {
  const char* name;  // stem of the file
  const void* data;
};

using KernelImages = std::span<const KernelImage>;

}  // namespace kintsugi::core::cuda
