// Sides and tiles without their first batch items, for steps that take several launches.
#pragma once

#include <cstdint>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Returns the side without its first `count` batch items. Ranges that all items share stay the same.
inline DeviceSide from_item(DeviceSide side, std::int64_t count) {
  side.item += count;
  if (side.ranges != nullptr && side.items > 1) side.ranges += count * side.matrix.vectors();
  return side;
}

// Returns the tile without its first `count` batch items, with the operands and selections of the others.
inline DeviceTile from_item(DeviceTile tile, std::int64_t count) {
  tile.item += count;
  tile.a = from_item(tile.a, count);
  tile.b = from_item(tile.b, count);
  if (tile.condition.selection != nullptr) tile.condition.selection += count;
  return tile;
}

}  // namespace kintsugi::core::cuda
