// Ozaki scheme I on matrices in device memory, with the steps of execute/host/ozaki1.hpp.
#pragma once

#include "base/memory.hpp"
#include "engines/cuda/steps.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// A batch item whose ranges are known and whose candidate is selected. The report has not counted the item
// yet.
struct DeviceOzaki1Task {
  const Plan& plan;
  const Blocking& blocking;
  Queue queue;
  DeviceSide a;
  DeviceSide b;
  DeviceMatrix c;
  DeviceScalars scalars;
  DeviceSelection* selection;
  DeviceReport* report;
};

// Puts the steps that compute C into the queue. Their kernels exit early unless the first candidate is
// selected. If the operands need more slices than are made, the selection becomes DeviceSelection::none.
void multiply_by_ozaki1(const DeviceOzaki1Task& task, Workspace workspace);

}  // namespace kintsugi::core
