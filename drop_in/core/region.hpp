// Memory of the matrices of a call.
#pragma once

#include <cstdint>
#include <vector>

#include "call.hpp"

namespace kintsugi::drop_in {

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

// Return the matrices that a call with right arguments reads and writes: A and B unless k = 0, and C if
// `reads_c`. A routine without B has an empty region for B. The matrices of a strided batch are one region:
// all columns if these have equal distances (stride = ld * columns), else the range from the first to the
// last byte. Batches by pointers have none, since the pointers are in device memory.
std::vector<Region> inputs_of(const Call& call, bool reads_c);
Region output_of(const Call& call);

// True if a call with scalars in host memory reads C: beta is not 0, or the routine works in place.
bool reads_c(const Call& call);

// Return a copy of a region's lines without gaps, and copy it back.
std::vector<char> packed(const Region& region);
void unpack(const std::vector<char>& lines, const Region& region);

}  // namespace kintsugi::drop_in
