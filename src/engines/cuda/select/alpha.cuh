// Test of alpha for zero.
#pragma once

#include "engines/cuda/select/alpha.hpp"

namespace kintsugi::core::cuda {

// True if the number at this address is zero. It has real type T, or is complex with parts of type T.
template <class T>
__device__ bool is_zero(const void* alpha, bool complex) {
  const T* parts = static_cast<const T*>(alpha);
  return parts[0] == T(0) && (!complex || parts[1] == T(0));
}

__device__ inline bool is_zero(const Alpha& alpha) {
  if (alpha.device == nullptr) return alpha.is_zero;
  const bool complex = alpha.type == ElementType::c32 || alpha.type == ElementType::c64;
  const bool is_fp64 = alpha.type == ElementType::f64 || alpha.type == ElementType::c64;
  return is_fp64 ? is_zero<double>(alpha.device, complex) : is_zero<float>(alpha.device, complex);
}

}  // namespace kintsugi::core::cuda
