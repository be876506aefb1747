// Parameter that tells kernels whether alpha is zero; operands need not be read then.
#pragma once

#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

struct Alpha {
  const void* device = nullptr;         // address of alpha in device memory; nullptr: alpha is on the host
  bool is_zero = false;                 // true if alpha is on the host and zero
  ElementType type = ElementType::f32;  // type of alpha in device memory
};

}  // namespace kintsugi::core::cuda
