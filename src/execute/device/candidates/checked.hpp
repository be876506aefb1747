// What a checked plan does on a device beside the steps of any other (execute/host/checked.hpp has the host's
// way):
//
//   bounds      of rounding errors of all vectors, once their ranges are there
//   magnitudes  split, and multiplied tile by tile, where the contract leaves room: a lower bound of |A||B|
//   recombine   the elements that show what is asked for; the others go to a list
//   recompute   the list's elements, summed exactly and rounded once
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/device_engine.hpp"
#include "planner/plan.hpp"
#include "planner/workspace/device_checked.hpp"

namespace kintsugi::core {

// One batch item under a checked plan.
class DeviceChecked {
 public:
  // Kernels exit early unless the condition holds.
  DeviceChecked(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile, const Queue& queue,
                const DeviceSide& a, const DeviceSide& b, const DeviceCondition& condition,
                Workspace& workspace);

  void find_rounding_bounds() const;
  // Of a block's rows of op(A), or of its columns of op(B): real vectors, as in a DeviceSplit.
  void split_rows(std::int64_t first, std::int64_t vectors) const;
  void split_columns(std::int64_t first, std::int64_t vectors) const;
  // Of the tile whose vectors begin so far behind the block's.
  void multiply_magnitudes(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                           std::byte* scratch);
  void recombine(const Accumulators& sums, const DeviceTile& tile, DeviceReport* report) const;

 private:
  void split(const DeviceSide& side, VectorRange* ranges, const SplitRule& rule, Slices slices,
             std::int64_t first, std::int64_t vectors) const;
  DeviceCheck check() const;

  const Plan& plan_;
  const DeviceEngine& engine_;
  Queue queue_;
  DeviceSide a_;
  DeviceSide b_;
  DeviceCondition condition_;
  DeviceCheckedMemory memory_;
};

}  // namespace kintsugi::core
