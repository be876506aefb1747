// Ranges and norms of long vectors. Many thread blocks or warps read a part of a vector each, and add their
// results to the vector's range or norm by atomic operations on integers. The order of such additions does
// not matter. So the bits are those of the kernels that read whole vectors (select/ranges.cu,
// select/norms.cu).
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

// Finds ranges of one or two sides of equally many batch items, and depths for a side that has norms.
void find_ranges_by_parts(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha);

// Finds norms, once find_ranges_by_parts() has found ranges. `findings` has the flag that is set if a vector
// rules the proof out; it may be empty.
void find_norms_by_parts(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha,
                         const NormFindings& findings);

}  // namespace kintsugi::core::cuda
