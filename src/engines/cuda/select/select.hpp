// Functions of the selection that splits and native products call as well (steps.hpp has the others): ranges
// and norms of some vectors, tasks of the kernels that select a candidate, and the parameter for alpha.
#pragma once

#include <cstdint>
#include <span>

#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Returns the parameters of select().
SelectionTask selection_task(const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
                             const DeviceCandidates& candidates, DeviceSelection* selection,
                             const DeviceReporting& reporting);

// Returns the parameter that tells kernels whether alpha is 0, so that they need not read operands. A side
// whose ranges are known may be empty.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b);

// Vectors first ... first + count - 1 of all batch items of a side.
struct VectorsOfSide {
  DeviceSide side;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool finds_depth = false;  // for FP32 vectors; depths of FP64 vectors are found if the side has norms
  const SplitRule* rule = nullptr;  // rule whose proof a vector's norm may rule out
};

// Finds ranges of one or two sides of equally many batch items. For a side that has norms, also finds depths.
void find_ranges(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha);

// Finds norms of vectors whose ranges are known. `findings` has the flag that is set if a vector rules the
// proof out; it may be empty.
void find_norms(const Queue& queue, std::span<const VectorsOfSide> sides, const Alpha& alpha,
                const NormFindings& findings);

}  // namespace kintsugi::core::cuda
