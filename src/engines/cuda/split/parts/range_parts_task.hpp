// Parameters of the kernels that find ranges and norms of long vectors by parts.
#pragma once

#include <cstdint>

#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Vectors of one operand. The grid's second extent counts batch items; pointers to their data are those of
// the launch's first item.
struct PartsTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;  // starts with vector `first`
  VectorNorm* norms = nullptr;    // starts with vector `first`; nullptr: no step needs typical exponents
  std::int64_t item_vectors = 0;  // ranges and norms from item to item
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  std::int64_t parts = 0;          // parts per vector
  std::int64_t part_length = 0;    // elements; a multiple of 512
  std::int64_t part_blocks = 0;    // thread blocks that read parts
  std::int64_t vector_blocks = 0;  // thread blocks with a thread for each vector
  bool sums_exponents = false;     // true if depths or typical exponents are wanted
  bool finds_depth = false;
  std::int32_t top_exponent = 0;  // of the rule whose proof a vector's norm may rule out
  std::int32_t sum_bits = 0;      // of the same rule
};

struct PartsTasks {
  PartsTask task[2];
  Alpha alpha;
  NormFindings found_norms;
};

inline constexpr std::int64_t parts_threads = 256;
// Elements of a vector in a part. Along k a warp reads a part of one vector; across k a thread block reads a
// part of a panel, of as many adjacent vectors as 128 bytes hold elements.
inline constexpr std::int64_t part_along_k = 4096;
inline constexpr std::int64_t part_across = 1024;
inline constexpr std::int64_t parts_panel_bytes = 128;

}  // namespace kintsugi::core::cuda
