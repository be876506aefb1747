// Tiles of C in which native sums are tested.
#pragma once

namespace kintsugi::core::cuda {

inline constexpr int native_tile_side = 64;
inline constexpr int native_threads = 256;

// Limits that all tiles of a launch share.
struct NativeLimits {
  double min_sum;              // least sum that is right by its size alone
  double min_product;          // least product that does not underflow, before alpha
  unsigned int tiles_of_rows;  // tiles along a column of C
};

}  // namespace kintsugi::core::cuda
