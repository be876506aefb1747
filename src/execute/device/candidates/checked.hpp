// Steps of a checked plan on a device in addition to those of any plan (on the host:
// execute/host/checked.hpp):
//
//   bounds      of the rounding errors of all vectors, once their ranges are known
//   magnitudes  split, and multiplied tile by tile, if the contract allows errors: a lower bound of |A||B|
//   recombine   writes the elements that are proved to meet the contract; lists the others
//   recompute   sums the listed elements exactly and rounds them once
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
  // Split magnitudes of a block's rows of op(A), or of its columns of op(B): real vectors, as in a
  // DeviceSplit.
  void split_rows(std::int64_t first, std::int64_t vectors) const;
  void split_columns(std::int64_t first, std::int64_t vectors) const;
  // Multiplies magnitudes of the tile whose vectors begin `row` and `column` vectors after the block's first
  // ones.
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
