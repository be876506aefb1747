// Address, shape, strides and type of an array of any library, without Python objects.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>

namespace kintsugi_python {

inline constexpr int max_dimensions = 64;  // numpy's limit
inline constexpr int on_host = -1;

struct Array {
  char* data;
  int dimensions;
  int64_t shape[max_dimensions];
  int64_t strides[max_dimensions];  // in bytes
  int32_t type;                     // kintsugi_type
  int device;                       // number of the CUDA device, or on_host
  bool is_writeable;

  bool is_vector() const { return dimensions == 1; }
  // Sizes of the last two dimensions; not for vectors.
  int64_t rows() const { return shape[dimensions - 2]; }
  int64_t columns() const { return shape[dimensions - 1]; }
};

// Returns the bytes of an element of FP32, FP64, C32 or C64.
inline constexpr int64_t element_size(int32_t type) {
  return type == KINTSUGI_F32 ? 4 : type == KINTSUGI_C64 ? 16 : 8;
}

}  // namespace kintsugi_python
