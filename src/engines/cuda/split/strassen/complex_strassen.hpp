// Tiles of the kernel that splits complex operands for one step of Strassen's algorithm.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda::strassen {

// A thread block has complex_tile_pairs pairs of vectors, each with complex_tile_groups groups of eight inner
// indices, and a thread for each of these groups.
inline constexpr int complex_tile_pairs = 4;
inline constexpr int complex_tile_groups = 64;
inline constexpr int complex_tile_threads = complex_tile_pairs * complex_tile_groups;

// Lanes of a warp that read neighboring groups of a pair, if elements of a vector are contiguous and if
// vectors are.
inline constexpr int lanes_along_k = 32;
inline constexpr int lanes_across = 16;

}  // namespace kintsugi::core::cuda::strassen
