// Steps of candidates that share kernels (engines/device_shared_kernels.hpp).
#pragma once

#include <span>
#include <vector>

#include "engines/device_shared_kernels.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Selects a candidate of a plan for which has_long_chain() is true.
void select_from_long_chain(const Plan& plan, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                            const DeviceScalars& scalars, DeviceSelection* selection,
                            const DeviceReporting& reporting);

// Steps of the plan's shared_candidates() for one batch item. Memory, splits and schedule are those of the
// last of these candidates, which has the most moduli.
class SharedSteps {
 public:
  SharedSteps(const Plan& plan, const Queue& queue, const DeviceSelection* selection);

  void split(std::span<const DeviceSplit> splits) const;
  void multiply(const Schedule& schedule, const Slices& a, const Slices& b, const Accumulators& sums) const;
  void recombine(const Accumulators& sums, const DeviceTile& tile) const;

 private:
  const DeviceSharedKernels* kernels_;
  const Queue* queue_;
  SelectedModuli selected_;
  std::vector<SplitRule> rules_;
};

}  // namespace kintsugi::core
