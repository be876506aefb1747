// Memory of a matrix of a call.
#pragma once

#include <cstdint>
#include <vector>

#include "blas/call.hpp"

namespace kintsugi::blas {

// Lines of equal length at equal distances: the columns of a column-major matrix or the rows of a row-major
// one.
struct Region {
  const char* first = nullptr;  // nullptr: no memory
  std::int64_t lines = 0;
  std::int64_t line_bytes = 0;
  std::int64_t stride = 0;  // distance of two lines in bytes

  bool is_empty() const { return first == nullptr || lines <= 0 || line_bytes <= 0; }
};

// True if the regions have a byte in common. Also true for regions of different strides if the address ranges
// from first to last byte overlap, although the lines may lie between each other.
bool overlap(const Region& one, const Region& other);
// True if all bytes of `inner` are known to be in `outer`. Returns false for regions of different strides,
// unless `outer` is contiguous.
bool covers(const Region& outer, const Region& inner);

std::int64_t element_bytes(kintsugi_type type);

// Returns the matrices that a call with right arguments reads. A and B are read unless k = 0. C is read
// unless beta = 0; routines that work in place always read C. A routine without B has an empty region for B.
std::vector<Region> inputs_of(const Call& call);
Region output_of(const Call& call);

}  // namespace kintsugi::blas
