// What leaves an engine: one m x n matrix of sums for each group of a schedule.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// Sum of group g for entry (i, j): element g * group_stride() + i + j * rows. float for floating
// slice formats, std::int64_t for integer ones: what their int32 accumulators give, block of k by block of k.
struct Accumulators {
  std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int groups = 0;
  bool floating = true;

  std::size_t element_bytes() const { return floating ? sizeof(float) : sizeof(std::int64_t); }
  std::int64_t group_stride() const { return rows * columns; }
  std::size_t bytes() const { return array_bytes(groups * rows, columns, element_bytes()); }

  template <class T>
  T* group(int g) const {
    return reinterpret_cast<T*>(data) + g * group_stride();
  }
};

inline Accumulators make_accumulators(const Format& format, std::int64_t rows, std::int64_t columns,
                                      int groups) {
  return {nullptr, rows, columns, groups, format.floating};
}

}  // namespace kintsugi::core
