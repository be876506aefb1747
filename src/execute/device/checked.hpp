// Steps of checked candidates on a device, in addition to the steps of all candidates (on the host:
// execute/host/checked.hpp):
//
//   choose                selects the first checked candidate to run, by a sample of elements
//   begin                 begins a block of C
//   split_magnitudes      splits the operands' magnitudes, if the contract allows errors
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
#include "planner/memory.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// One batch item, and one of the plan's checked candidates. All candidates use the same memory.
class CheckedSteps {
 public:
  // `candidate`: index in the plan. a, b: with the candidate's scales.
  CheckedSteps(const Plan& plan, int candidate, const DeviceMemory& memory, const Queue& queue,
               const DeviceSide& a, const DeviceSide& b, DeviceReport* report)
      : plan_(plan), candidate_(candidate), memory_(memory.checked), selection_(memory.selections),
        queue_(queue), a_(a), b_(b), report_(report) {}

  void choose() const;
  void begin() const;
  void split_magnitudes(const ResultBlock& block) const;
  void find_rounding_errors(const ResultBlock& block) const;
  // `tile` lies in `block`, whose magnitudes were split.
  void multiply_magnitudes(const ResultBlock& block, const ResultBlock& tile, std::byte* scratch) const;
  // `block`: the block whose open elements are recomputed together; it contains the tile.
  void recombine(const Accumulators& sums, const DeviceTile& tile, const ResultBlock& block) const;
  void advance(const ResultBlock& block) const;
  // `tile`: the whole block.
  void recompute(const DeviceTile& tile, const ResultBlock& block) const;

 private:
  const Program& program() const { return plan_.candidates[static_cast<std::size_t>(candidate_)].program; }
  // Condition of this candidate's kernels. They exit early unless it must compute the block.
  DeviceCondition condition() const { return {&memory_.open_elements.state->current, candidate_}; }
  DeviceCheckedChain chain() const;
  DeviceOpenElements open_elements(const ResultBlock& block) const;
  void split(const DeviceSide& side, VectorRange* ranges, const SplitRule& rule, Slices slices,
             const Interval& vectors) const;
  DeviceCheck check() const;

  const Plan& plan_;
  int candidate_;
  const DeviceCheckedMemory& memory_;
  DeviceSelection* selection_;
  Queue queue_;
  DeviceSide a_;
  DeviceSide b_;
  DeviceReport* report_;
};

}  // namespace kintsugi::core
