// Parameters of the kernels that split into int8 segments with exponents per tile, and that count tiles.
#pragma once

#include <cstdint>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// A DeviceSplit without pointers to the host. Pointers to data of batch items are those of the launch's first
// item; the grid's second extent counts items.
struct PackTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;  // starts with vector `first`
  std::int64_t item_ranges = 0;   // ranges from item to item
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  std::int64_t vector_groups = 0;  // of pack_vectors, padding included
  std::int64_t length = 0;
  std::int64_t vector_stride = 0;
  std::int64_t slice_stride = 0;
  std::int8_t* slices = nullptr;
  std::int64_t item_bytes = 0;  // bytes of slices from item to item
  float* weights = nullptr;     // as in Slices
  std::int32_t* failures = nullptr;
  std::int64_t panels = 0;
  std::int64_t tiles = 0;  // of a vector
  std::int32_t segments = 0;
  std::int32_t tile_vectors = 0;
  std::int32_t depth = 0;
  std::int32_t mean_depth_limit = 0;
  DeviceCondition condition;
  std::int64_t served_items = 1;  // batch items whose selections decide if the launch's only item is split
};

// Vectors and inner indices that a thread block splits.
inline constexpr int pack_vectors = 32;
inline constexpr int pack_length = deepest_tile;
inline constexpr int pack_threads = 256;

// Tiles of one operand that a launch adds to a report.
struct CountedPanels {
  const std::int32_t* failures = nullptr;  // of the first item; nullptr: counted before
  std::int64_t item_panels = 0;            // panels from item to item; 0: one item serves all
  std::int64_t panels = 0;                 // panels that have vectors
  std::int64_t tiles = 0;                  // of a panel
};

struct CountTask {
  CountedPanels a;
  CountedPanels b;
  DeviceCondition condition;
  DeviceReport* report = nullptr;
};

inline constexpr int count_threads = 256;

}  // namespace kintsugi::core::cuda
