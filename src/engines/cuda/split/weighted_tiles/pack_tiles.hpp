// Splits into int8 segments with exponents per tile (SplitKind::tiles), and the count of such tiles.
#pragma once

#include <span>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Does what DeviceEngine::split() does, for rules of SplitKind::tiles: finds ranges that are not known, then
// reads each operand once.
void pack_tiles(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition);

// Does what DeviceEngine::count_tiles() does.
void count_tiles(const Queue& queue, const DeviceTileCount& count, DeviceReport* report);

}  // namespace kintsugi::core::cuda
