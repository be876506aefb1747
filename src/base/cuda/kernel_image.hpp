// Device code embedded in a program: fat binaries, one per .cu file (cmake/DeviceCode.cmake).
#pragma once

#include <span>
#include <string_view>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

struct KernelImage {
  const char* name;  // stem of the .cu file's name
  const void* data;
};

using KernelImages = std::span<const KernelImage>;

// Architectures for which device code was built.
struct DeviceBuild {
  // Reason why there is no code, and the option that changes this; empty if there is code.
  std::string_view why_missing;
  // Compute capabilities with machine code (90 means 9.0). The first also has PTX.
  std::span<const int> architectures;

  // True if the code runs on this compute capability. Machine code runs on its own capability and later ones
  // of the same major number; PTX runs on all later capabilities.
  bool runs_on(int major, int minor) const;
};

bool has_image(KernelImages images, std::string_view name);

// Returns the image of that name, loaded into the driver at its first use. It belongs to no context.
Library loaded_image(KernelImages images, std::string_view name);

}  // namespace kintsugi::core::cuda
