// Memory of a matrix in a call: equally long lines at equal distances.
#pragma once

#include <cstdint>
#include <vector>

#include "blas/call.hpp"

namespace kintsugi::blas {

// Columns of a column-major matrix, or rows of a row-major one.
struct Region {
  const char* first = nullptr;  // nullptr: no memory
  std::int64_t lines = 0;
  std::int64_t line_bytes = 0;
  std::int64_t stride = 0;  // bytes from line to line

  bool is_empty() const { return first == nullptr || lines <= 0 || line_bytes <= 0; }
};

// True if the two have a byte in common. Regions of different strides count as contiguous from their first
// byte to their last, so that for them the answer may be true where no byte is common.
bool overlap(const Region& one, const Region& other);
// True if all bytes of `inner` are in `outer`; false for regions of different strides, unless `outer` is
// contiguous.
bool covers(const Region& outer, const Region& inner);

std::int64_t element_bytes(kintsugi_type type);

// Matrices that a call of right arguments reads: A, B where it has one, and C where beta is not 0, or where
// the routine works in place. A and B are left out where k = 0.
std::vector<Region> inputs_of(const Call& call);
Region output_of(const Call& call);

}  // namespace kintsugi::blas
