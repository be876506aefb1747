// Tiles of C in which native sums are looked at.
#pragma once

namespace kintsugi::core::cuda {

inline constexpr int native_tile_side = 64;
inline constexpr int native_threads = 256;

}  // namespace kintsugi::core::cuda
