// alpha, where it decides whether operands are read.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// On the host, or where it lies; of the matrices' type.
struct Alpha {
  const void* device = nullptr;
  bool is_zero = false;  // on the host
  ElementType type = ElementType::f32;
};

}  // namespace kintsugi::core::cuda
