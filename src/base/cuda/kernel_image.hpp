// Device code inside a program: fat binaries, one of each .cu file (cmake/DeviceCode.cmake).
#pragma once

#include <span>
#include <string_view>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

struct KernelImage {
  const char* name;  // stem of the file
  const void* data;
};

using KernelImages = std::span<const KernelImage>;

// The architectures that device code was built for.
struct DeviceBuild {
  std::string_view missing;  // why none was built, and the option that changes it; "": there is some
  std::span<const int>
      architectures;  // machine code of each, such as 90 for compute capability 9.0; PTX of the first

  // Machine code runs on later devices of its generation, PTX on all later ones.
  bool runs_on(int major, int minor) const;
};

bool has_image(KernelImages images, std::string_view name);

// The image of that name, handed to the driver when it is first wanted. Belongs to no context.
Library loaded_image(KernelImages images, std::string_view name);

}  // namespace kintsugi::core::cuda
