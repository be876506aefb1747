// Splits into int8 segments with exponents per tile (SplitKind::tiles), and the count of such tiles.
#pragma once

#include <span>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// DeviceEngine::split() for rules of SplitKind::tiles. Reads each operand once, and finds its ranges
// unless they are known.
void pack_tiles(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition);

// DeviceEngine::count_tiles().
void count_tiles(const Queue& queue, const DeviceTileCount& count, DeviceReport* report);

}  // namespace kintsugi::core::cuda
