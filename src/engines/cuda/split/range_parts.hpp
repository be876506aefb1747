// Ranges and norms of long vectors. Many thread blocks or warps read a part of a vector each, and add their
// results to the vector's range or norm by atomic operations on integers. The order of such additions does
// not matter. So the bits are those of the kernels that read whole vectors (select/ranges.cu).
#pragma once

#include <cstdint>
#include <span>

#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Vectors first ... first + count - 1 of all batch items of a side.
struct VectorsOfSide {
  DeviceSide side;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool finds_depth = false;  // for FP32 vectors; depths of FP64 vectors are found if the side has norms
  const SplitRule* rule = nullptr;  // rule whose proof a vector's norm may rule out
};

// True if ranges and norms of these operands are found by parts. That is so if vectors have more than 2^16
// elements, or more than 4096 and are so few that thread blocks with whole vectors would not fill the device.
bool reads_by_parts(const DeviceSide& a, const DeviceSide& b);

// Finds ranges of one or two sides of equally many batch items. For a side that has norms, also finds depths.
void find_ranges_by_parts(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha);

// Finds norms. find_ranges_by_parts() must have found ranges. `findings` has the flag that is set if a vector
// rules the proof out; it may be empty.
void find_norms_by_parts(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha,
                         const NormFindings& findings);

// Vectors of one operand. Pointers to data of batch items point to the launch's first item. The grid's second
// extent counts the items.
struct PartsTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;  // starts with vector `first`
  VectorNorm* norms = nullptr;    // starts with vector `first`; nullptr: no step needs norms
  std::int64_t item_vectors = 0;  // number of ranges, and of norms, per item
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  std::int64_t parts_per_vector = 0;
  std::int64_t part_length = 0;    // elements; a multiple of 512
  std::int64_t part_blocks = 0;    // thread blocks that read parts
  std::int64_t vector_blocks = 0;  // thread blocks with a thread for each vector
  bool sums_exponents = false;     // true if depths are wanted
  bool finds_depth = false;
  std::int32_t top_exponent = 0;  // top_exponent and sum_bits of the rule whose proof a vector's norm may
  std::int32_t sum_bits = 0;      // rule out
};

struct PartsTasks {
  PartsTask task[2];
  Alpha alpha;
  NormFindings found_norms;
};

inline constexpr std::int64_t parts_threads = 256;
// Elements of a vector in a part. Along k a warp reads a part of one vector. Across k a thread block reads a
// part of a strip, which has as many adjacent vectors as 128 bytes hold elements.
inline constexpr std::int64_t part_along_k = 4096;
inline constexpr std::int64_t part_across = 1024;
inline constexpr std::int64_t parts_strip_bytes = 128;

}  // namespace kintsugi::core::cuda
