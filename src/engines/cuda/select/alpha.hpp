// Parameter by which kernels see that alpha is zero and operands need not be read.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

struct Alpha {
  const void* device = nullptr;         // address of alpha in device memory; nullptr: alpha is the host's
  bool is_zero = false;                 // true if the host's alpha is zero
  ElementType type = ElementType::f32;  // of alpha in device memory
};

}  // namespace kintsugi::core::cuda
