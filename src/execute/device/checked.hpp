// Steps of checked plans on a device, in addition to the steps of all plans (on the host:
// execute/host/checked.hpp):
//
//   choose                selects the first checked candidate to run, by a sample of elements
//   split_rows, ...       splits the operands' magnitudes, if the contract allows errors
//   find_rounding_errors  sums the rounding errors of a block's vectors, which were split before
//   multiply_magnitudes   multiplies magnitudes tile by tile, for a lower bound of |A||B|
//   recombine             writes the proved elements, and marks the others as open
//   advance               selects the next candidate to compute the block again, if that is worth its time
//   recompute             recomputes the elements that the last candidate left open: by exact sums or, if the
//                         contract allows it, in the operands' own arithmetic
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/steps.hpp"
#include "execute/blocks.hpp"
#include "planner/plan.hpp"
#include "planner/workspace/device.hpp"

namespace kintsugi::core {

// One batch item under a checked plan, and one of the plan's checked candidates. The objects for all
// candidates use the same memory.
class DeviceChecked {
 public:
  // `candidate`: index of the candidate in the plan. `selection`: selection of the batch item.
  DeviceChecked(const Plan& plan, int candidate, const Blocking& blocking, const Queue& queue,
                const DeviceSide& a, const DeviceSide& b, DeviceSelection* selection, Workspace& workspace);

  // Returns the condition of this candidate's kernels. They exit early unless this candidate must compute the
  // block.
  DeviceCondition condition() const { return {&memory_.open_elements.state->current, candidate_}; }

  // Chooses the candidate with which each block of the item begins. Called on one candidate's object only.
  void choose(DeviceReport* report) const;
  // Begins a block. Called on one candidate's object only, before the steps of all candidates.
  void begin() const;
  void find_rounding_errors(const ResultBlock& block) const;
  // Split the magnitudes of a block's rows of op(A) or columns of op(B). The vectors are real: two for each
  // complex column.
  void split_rows(std::int64_t first, std::int64_t vectors) const;
  void split_columns(std::int64_t first, std::int64_t vectors) const;
  // Multiplies the magnitudes of a tile. `row`, `column`: first vectors of the tile, counted from the first
  // vectors that were split last.
  void multiply_magnitudes(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                           std::byte* scratch);
  // Recombines and checks a tile of the block.
  void recombine(const Accumulators& sums, const DeviceTile& tile, const ResultBlock& block) const;
  // Decides which candidate computes the block next. Called after this candidate has recombined all tiles.
  void advance(const ResultBlock& block) const;
  // Ends a block. Called on one candidate's object only, after the steps of all candidates. `tile`: the whole
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
  Queue queue_;
  DeviceSide a_;
  DeviceSide b_;
  DeviceSelection* selection_;
  DeviceCheckedMemory memory_;
};

}  // namespace kintsugi::core
