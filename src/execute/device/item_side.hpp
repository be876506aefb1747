// Operands of a batch item, which may be prepared.
#pragma once

#include "engines/device_operands.hpp"
#include "execute/device/prepare.hpp"

namespace kintsugi::core {

// One side of a batch item.
struct ItemSide {
  DeviceSide side;
  VectorRange* ranges = nullptr;  // this call's memory for ranges, not the prepared operand's
  const DevicePrepared::Item* prepared = nullptr;  // prepared operand whose slices this side uses
};

// Returns the prepared operand of a batch item if it was prepared by the rule; else nullptr.
inline const DevicePrepared::Item* usable(const DevicePrepared* prepared, const SplitRule& rule,
                                          std::int64_t index) {
  if (prepared == nullptr || prepared->items.empty() || !(prepared->rule == rule)) return nullptr;
  return &prepared->items[prepared->items.size() == 1 ? 0 : static_cast<std::size_t>(index)];
}

// `found` has this call's memory for what is found of an operand that is not prepared.
inline ItemSide item_side(const DeviceMatrix& matrix, std::int64_t index,
                          const DevicePrepared::Item* prepared, const DeviceSide& found) {
  if (prepared == nullptr) {
    DeviceSide side = found;
    side.matrix = matrix;
    side.item = index;
    return {.side = side, .ranges = found.ranges, .prepared = nullptr};
  }
  return {.side = {.matrix = matrix,
                   .item = index,
                   .ranges = prepared->ranges,
                   .norms = prepared->norms,
                   .summaries = prepared->summary},
          .ranges = found.ranges,
          .prepared = prepared};
}

// Returns the side if its ranges must be found; an empty side if a prepared operand has them.
inline DeviceSide side_without_ranges(const ItemSide& side) {
  return side.prepared == nullptr ? side.side : DeviceSide{};
}

}  // namespace kintsugi::core
