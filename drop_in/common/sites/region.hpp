// Memory of a matrix of a call.
#pragma once

#include <cstdint>

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

// Returns the memory of a column-major matrix whose elements have `bytes` bytes.
Region column_major(const void* data, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                    std::int64_t bytes);

// True if the regions have a byte in common. Also true for regions of different strides if the address ranges
// from first to last byte overlap, although the lines may lie between each other.
bool overlap(const Region& one, const Region& other);
// True if all bytes of `inner` are known to be in `outer`. Returns false for regions of different strides,
// unless `outer` is contiguous.
bool covers(const Region& outer, const Region& inner);

}  // namespace kintsugi::drop_in
