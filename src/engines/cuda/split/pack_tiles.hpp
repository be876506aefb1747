// Splits into int8 segments with exponents per tile (SplitKind::tiles), and the count of such tiles.
#pragma once

#include <cstdint>
#include <span>

#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// split() (steps.hpp) for rules of SplitKind::tiles. Reads each operand once, and finds its ranges
// unless they are known.
void pack_tiles(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition);

// A DeviceSplit for kernels, without pointers to the host. Pointers to data of batch items point to the
// launch's first item. The grid's second extent counts the items.
struct PackTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;  // begin with vector `first`
  std::int64_t item_ranges = 0;   // number of ranges per item
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  std::int64_t vector_groups = 0;  // groups of pack_vectors vectors, padding included
  std::int64_t parts = 0;          // parts of a vector, of pack_length inner indices
  std::int64_t length = 0;
  std::int64_t vector_stride = 0;
  std::int64_t slice_stride = 0;
  std::int8_t* slices = nullptr;
  std::int64_t item_bytes = 0;       // bytes of slices per item
  std::int32_t* weights = nullptr;   // bits of Slices::tile_weights
  std::int32_t* failures = nullptr;  // Slices::tile_failures, zeros at first
  std::int64_t panels = 0;
  std::int64_t tiles = 0;  // number of tiles per vector
  std::int32_t segments = 0;
  std::int32_t tile_vectors = 0;
  std::int32_t tile_depth = 0;        // inner indices of a tile
  std::int32_t mean_depth_limit = 0;  // SplitRule::mean_depth_limit
  bool ranges_known = false;          // otherwise all bytes of the ranges are zero at first
  DeviceCondition condition;
  std::int64_t served_items = 1;  // SplitTasks::served_items
};

// Vectors and inner indices that a thread block splits.
inline constexpr int pack_vectors = 32;
inline constexpr int pack_length = deepest_tile;
inline constexpr int pack_threads = 256;

// Tiles of one operand that a launch adds to a report.
struct CountedPanels {
  // Number of failing tiles of each panel, from the first item on; nullptr if the operand was counted before.
  const std::int32_t* failures = nullptr;
  std::int64_t item_panels = 0;  // panels per item; 0: one item serves all
  std::int64_t panels = 0;       // panels that have vectors
  std::int64_t tiles = 0;        // tiles per panel
};

struct CountTask {
  CountedPanels a;
  CountedPanels b;
  DeviceCondition condition;
  DeviceReport* report = nullptr;
};

inline constexpr int count_threads = 256;

}  // namespace kintsugi::core::cuda
