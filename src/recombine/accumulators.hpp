// What leaves an engine: one m x n matrix of sums for each group of a schedule.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"

namespace kintsugi::core {

// Sum of group g for entry (i, j): element g * group_stride() + i + j * rows. float for floating
// slice formats, std::int32_t for integer ones.
struct Accumulators {
  std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int groups = 0;

  static constexpr std::size_t element_bytes = 4;

  std::int64_t group_stride() const { return rows * columns; }
  std::size_t bytes() const { return array_bytes(groups * rows, columns, element_bytes); }

  template <class T>
  T* group(int g) const {
    static_assert(sizeof(T) == element_bytes);
    return reinterpret_cast<T*>(data) + g * group_stride();
  }
};

}  // namespace kintsugi::core
