// Steps of a checked plan on a device in addition to those of any plan (on the host:
// execute/host/checked.hpp):
//
//   choose      the checked candidate that begins, by a sample of elements, if there are several
//   bounds      of the rounding errors of a block's vectors, once their ranges are known
//   magnitudes  split, and multiplied tile by tile, if the contract allows errors: a lower bound of |A||B|
//   recombine   writes the elements that are proved to meet the contract; marks the others
//   advance     to the next candidate, which computes the block again if that is expected to be worth it
//   recompute   sums the elements that the last candidate left open, exactly or, where the contract allows it,
//               in their own arithmetic, and rounds them once
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/device_engine.hpp"
#include "execute/blocks.hpp"
#include "planner/plan.hpp"
#include "planner/workspace/device_checked.hpp"

namespace kintsugi::core {

// One batch item under a checked plan, and one of its checked candidates. All candidates have the same memory.
class DeviceChecked {
 public:
  // candidate: number of the candidate in the plan. selection: of the batch item.
  DeviceChecked(const Plan& plan, int candidate, const Blocking& blocking, const Queue& queue,
                const DeviceSide& a, const DeviceSide& b, DeviceSelection* selection, Workspace& workspace);

  // Condition of the kernels of this candidate: they exit early unless it computes the current block.
  DeviceCondition condition() const { return {&memory_.open.state->current, candidate_}; }

  // Chooses the candidate that begins the item's blocks; called once for the first checked candidate.
  void choose(DeviceReport* report) const;
  // Begins a block, before the steps of its first candidate.
  void begin() const;
  void find_rounding_bounds(const ResultBlock& block) const;
  // Split magnitudes of a block's rows of op(A), or of its columns of op(B): real vectors, as in a
  // DeviceSplit.
  void split_rows(std::int64_t first, std::int64_t vectors) const;
  void split_columns(std::int64_t first, std::int64_t vectors) const;
  // Multiplies magnitudes of the tile whose vectors begin `row` and `column` vectors after the block's first
  // ones.
  void multiply_magnitudes(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                           std::byte* scratch);
  // Recombines a tile of the block.
  void recombine(const Accumulators& sums, const DeviceTile& tile, const ResultBlock& block) const;
  // Ends the candidate's turn in a block, of which it has recombined all tiles.
  void advance(const ResultBlock& block) const;
  // Ends a block, after the steps of all candidates. `tile` is the whole block.
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
