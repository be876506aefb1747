// Sums that an engine returns: one m x n matrix for each group of a schedule.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"

namespace kintsugi::core {

__extension__ using Integer128 = __int128;

// Type of the sums outside the engine.
enum class SumType : std::uint8_t {
  f32,      // sums of floating-point slices
  i64,      // exact sums over k-blocks
  i128,     // exact sums of products of 52-bit words
  residue,  // 0 ... m - 1 for a group with modulus m, from engines that reduce sums before storing them
};

// Accumulators of all groups. The sum of group g for element (i, j) has the index
// g * group_stride() + i + j * rows.
struct Accumulators {
  std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int groups = 0;
  SumType type = SumType::f32;

  std::size_t element_bytes() const {
    switch (type) {
      case SumType::f32: return sizeof(float);
      case SumType::i64: return sizeof(std::int64_t);
      case SumType::residue: return sizeof(std::uint8_t);
      case SumType::i128: break;
    }
    return sizeof(Integer128);
  }
  std::int64_t group_stride() const { return rows * columns; }
  std::size_t bytes() const { return array_bytes(groups * rows, columns, element_bytes()); }

  template <class T>
  T* group(int g) const {
    return reinterpret_cast<T*>(data) + g * group_stride();
  }
};

inline Accumulators make_accumulators(SumType type, std::int64_t rows, std::int64_t columns, int groups) {
  return {nullptr, rows, columns, groups, type};
}

}  // namespace kintsugi::core
