// Tiles of products of integers that no matrix unit multiplies.
#pragma once

namespace kintsugi::core::cuda {

inline constexpr int integer_side = 16;  // threads along a tile's rows, and along its columns
inline constexpr int integer_threads = integer_side * integer_side;
inline constexpr int integer_tile = 64;   // rows of a tile, and its columns
inline constexpr int integer_depth = 16;  // inner indices per step; divides the slices' padded length

}  // namespace kintsugi::core::cuda
