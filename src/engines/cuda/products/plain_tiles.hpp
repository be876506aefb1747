// The tiles of plain products.
#pragma once

#include "base/embedding.hpp"

namespace kintsugi::core::cuda {

inline constexpr int plain_side = 16;  // threads along a tile's rows and columns
inline constexpr int plain_threads = plain_side * plain_side;
inline constexpr int plain_depth = 16;  // inner indices of a step

// Rows and columns of C; complex entries need twice the registers each.
template <class T>
inline constexpr int plain_tile = is_complex<T> ? 64 : 128;

// Entries of 16 bytes.
template <class T>
inline constexpr int plain_together = 16 / static_cast<int>(sizeof(T));

}  // namespace kintsugi::core::cuda
