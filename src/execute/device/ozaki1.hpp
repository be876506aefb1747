// Steps of Ozaki scheme I on a device: those of execute/host/ozaki1.hpp.
#pragma once

#include "engines/cuda/steps.hpp"
#include "execute/blocks.hpp"
#include "execute/device/steps.hpp"
#include "planner/memory.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

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
