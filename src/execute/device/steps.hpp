// Steps of a plan on a device (planner/steps.hpp): their interpreter, and steps in files of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/blocks.hpp"
#include "planner/memory.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

struct DevicePrepared;  // execute/device/prepare.hpp

// Operands and result of a call.
struct DeviceOperands {
  DeviceMatrix a;
  DeviceMatrix b;
  DeviceMatrix c;
  DeviceScalars scalars;
  const DevicePrepared* prepared_a = nullptr;
  const DevicePrepared* prepared_b = nullptr;
  DeviceReport* report = nullptr;
};

// Puts the steps of a plan that emulates into the queue, for all batch items. The steps of all candidates are
// put there, since the device selects; the kernels of a candidate that is not selected return at once.
// `steps` were made for `blocking`; the workspace has workspace_bytes() bytes.
void run_in_queue(const Plan& plan, std::span<const Step> steps, const Blocking& blocking,
                  const DeviceOperands& operands, const Queue& queue, Workspace workspace);

// ---------------------------------------------------------------- checked candidates

// Steps of checked candidates, in addition to the steps of all candidates (on the host:
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

// ---------------------------------------------------------------- Ozaki scheme I

// One batch item whose ranges are known and whose candidate is selected. The kernels exit early unless the
// candidate is selected. The report counts the item at its end: if the operands need more slices than are
// made, the selection becomes DeviceSelection::none.
class Ozaki1Steps {
 public:
  Ozaki1Steps(const Plan& plan, const Blocking& blocking, const DeviceOzaki1Memory& memory,
              const Queue& queue, const DeviceOperands& operands, const DeviceSide& a, const DeviceSide& b,
              DeviceSelection* selection)
      : plan_(plan), program_(plan.candidates.front().program), blocking_(blocking), memory_(memory),
        queue_(queue), operands_(operands), a_(a), b_(b), selection_(selection), condition_{selection, 0} {}

  // Algorithm 3, for all blocks of C that have their own number of slices. Splits A, and does nothing else if
  // the number of slices is given.
  void count_slices();
  // Algorithm 1 for the vectors of a block that were not vectors of the preceding block.
  void split(const ResultBlock& block);
  // Algorithm 2 for a tile of the block that was split.
  void multiply(const ResultBlock& block, const ResultBlock& tile) const;
  void finish_item() const;

 private:
  using Complete = DeviceSuccessiveSplit::Complete;

  void split(const DeviceSide& side, const Interval& vectors, Slices& slices,
             const DeviceSliceExponents& exponents, Complete complete) const;
  void split_rows(const Interval& rows);
  void multiply(const DeviceProductSums& sums, const Slices& a, const Slices& b, int q,
                Accumulators& products) const;
  template <class Multiply>
  void add_slices(const DeviceProductSums& sums, int first, int end, int q, Accumulators& products,
                  const Multiply& multiply) const;
  void multiply(const Slices& a, int p, const Slices& b, int q, const Accumulators& products) const;
  bool is_fast() const { return program_.ozaki1.fast && !is_exact_ozaki1(plan_); }

  const Plan& plan_;
  const Program& program_;
  const Blocking& blocking_;
  DeviceOzaki1Memory memory_;
  Queue queue_;
  const DeviceOperands& operands_;
  DeviceSide a_;
  DeviceSide b_;
  DeviceSelection* selection_;
  DeviceCondition condition_;
  SplitVectors rows_;
  SplitVectors columns_;
};

}  // namespace kintsugi::core
