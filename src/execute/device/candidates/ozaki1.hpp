// Ozaki scheme I on matrices in device memory: the steps of execute/host/ozaki1.hpp in a queue.
#pragma once

#include "base/memory.hpp"
#include "engines/device_engine.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// A batch item whose ranges are known and whose candidate is selected, but which the report does not count
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

// Computes C if the first candidate is selected. If the data need more slices than there are, the selection
// becomes DeviceSelection::none.
void multiply_by_ozaki1(const DeviceOzaki1Task& task, Workspace workspace);

}  // namespace kintsugi::core
