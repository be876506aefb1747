// A batch item while its steps are put into the queue.
#pragma once

#include <optional>

#include "engines/device.hpp"
#include "execute/device/candidates/checked.hpp"
#include "execute/device/candidates/shared.hpp"
#include "execute/device/candidates/tile_steps.hpp"
#include "execute/device/item_side.hpp"
#include "planner/workspace/device.hpp"

namespace kintsugi::core {

// One batch item, and a candidate that may multiply it.
struct Item {
  ItemSide a;
  ItemSide b;
  DeviceSelection* selection = nullptr;
  bool selected_ahead = false;  // true: ranges are found and the selection is made before the first split
  bool split_ahead = false;  // true: the step that finds the ranges also makes the first candidate's slices
  int candidate = 0;
  DeviceBlockMemory block;               // memory of the candidate's products
  std::optional<DeviceChecked> checked;  // additional steps of a checked candidate
  std::optional<SharedSteps> shared;  // steps of candidates that share kernels; `candidate` is their last one
  std::optional<UnfinishedTile>* unfinished = nullptr;  // keeps the candidate's last tile, if not nullptr
};

}  // namespace kintsugi::core
