// Address, shape, strides and type of an array of any library, without Python objects.
#pragma once

#include <cstdint>

namespace kintsugi_python {

inline constexpr int most_dimensions = 8;  // arrays of more are left to the Python code
inline constexpr int on_host = -1;

struct Array {
  char* data;
  int dimensions;
  int64_t shape[most_dimensions];
  int64_t strides[most_dimensions];  // in bytes
  int32_t type;                      // kintsugi_type
  int device;                        // number of the CUDA device, or on_host
  bool is_writeable;

  bool is_vector() const { return dimensions == 1; }
  int64_t rows() const { return shape[dimensions - 2]; }
  int64_t columns() const { return shape[dimensions - 1]; }
};

inline constexpr int64_t element_size(int32_t type) { return type == 0 ? 4 : type == 3 ? 16 : 8; }

}  // namespace kintsugi_python
