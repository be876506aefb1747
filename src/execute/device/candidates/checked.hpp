// Steps of a checked plan on a device in addition to those of any plan (on the host:
// execute/host/checked.hpp):
//
//   choose                if there are several checked candidates: the first to run, by a sample of elements
//   find_rounding_bounds  bounds of the rounding errors of a block's vectors, whose ranges are known
//   split_rows, ...       splits the operands' magnitudes, if the contract allows errors
//   multiply_magnitudes   multiplies them tile by tile: a lower bound of |A||B|
//   recombine             writes the elements that are proved to meet the contract; marks the others as open
//   advance               goes on to the next candidate that is worth its time, to compute the block again
//   recompute             sums the elements that the last candidate left open, exactly or, if the contract
//                         allows it, in their own arithmetic, and rounds them once
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/device_engine.hpp"
#include "execute/blocks.hpp"
#include "planner/plan.hpp"
#include "planner/workspace/device_checked.hpp"

namespace kintsugi::core {

// One batch item under a checked plan, and one of the plan's checked candidates. All of them use the same
// memory.
class DeviceChecked {
 public:
  // `candidate`: index of the candidate in the plan. `selection`: selection of the batch item.
  DeviceChecked(const Plan& plan, int candidate, const Blocking& blocking, const Queue& queue,
                const DeviceSide& a, const DeviceSide& b, DeviceSelection* selection, Workspace& workspace);

  // Returns the condition of this candidate's kernels: they exit early unless the candidate computes the
  // current block.
  DeviceCondition condition() const { return {&memory_.open_elements.state->current, candidate_}; }

  // Chooses the candidate with which each block of the item begins. Called for one of the candidates.
  void choose(DeviceReport* report) const;
  // Begins a block. Called for one of the candidates, before the steps of all of them.
  void begin() const;
  void find_rounding_bounds(const ResultBlock& block) const;
  // Split the magnitudes of a block's rows of op(A), or of its columns of op(B). These are real vectors, two
  // for a complex column.
  void split_rows(std::int64_t first, std::int64_t vectors) const;
  void split_columns(std::int64_t first, std::int64_t vectors) const;
  // Multiplies the magnitudes of a tile, whose first vectors are vectors `row` of the rows and `column` of
  // the columns that were split last.
  void multiply_magnitudes(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                           std::byte* scratch);
  // Recombines and checks a tile of the block.
  void recombine(const Accumulators& sums, const DeviceTile& tile, const ResultBlock& block) const;
  // Decides which candidate computes the block next. Called when this one has recombined all tiles of it.
  void advance(const ResultBlock& block) const;
  // Ends a block. Called for one of the candidates, after the steps of all of them. `tile` is the whole
  // block.
  void recompute(const DeviceTile& tile, const ResultBlock& block, DeviceReport* report) const;

 private:
  const Program& program() const { return plan_.candidates[static_cast<std::size_t>(candidate_)].program; }
  DeviceCheckedChain chain() const;
  DeviceOpenElements open_elements(const ResultBlock& block) const;
  void split(const DeviceSide& side, VectorRange* ranges, const SplitRule& rule, Slices slices,
             std::int64_t first, std::int64_t vectors) const;
  DeviceCheck check() const;

  const Plan& plan_;
  int candidate_;
  const DeviceEngine& engine_;
  Queue queue_;
  DeviceSide a_;
  DeviceSide b_;
  DeviceSelection* selection_;
  DeviceCheckedMemory memory_;
};

}  // namespace kintsugi::core
