// Tiles of C in which native sums are looked at.
#pragma once

namespace kintsugi::core::cuda {

inline constexpr int native_tile_side = 64;
inline constexpr int native_threads = 256;

// What all tiles of a launch share.
struct NativeLimits {
  double least_sum;            // that stands by its size
  double least_product;        // that does not underflow, before alpha
  unsigned int tiles_of_rows;  // tiles along a column of C
};

}  // namespace kintsugi::core::cuda
