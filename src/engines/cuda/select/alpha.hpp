// alpha, which decides whether operands are read.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// alpha in the matrices' type: in device memory, or tested on the host.
struct Alpha {
  const void* device = nullptr;
  bool is_zero = false;  // of a host value
  ElementType type = ElementType::f32;
};

}  // namespace kintsugi::core::cuda
