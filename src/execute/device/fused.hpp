// Calls whose emulations a device computes from slices to C in one step.
#pragma once

#include "engines/device.hpp"
#include "execute/device/prepare.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

struct FusedOperands {
  DeviceMatrix a;
  DeviceMatrix b;
  DeviceMatrix c;
  DeviceScalars scalars;
  const DevicePrepared* prepared_a = nullptr;
  const DevicePrepared* prepared_b = nullptr;
  DeviceReport* report = nullptr;
};

// All entries of the batch, as many at once as the workspace holds. Where there is one candidate, it always
// runs; else the first one's slices are made while ranges are found, and the others' only for entries that
// are not within its window.
void multiply_fused(const Plan& plan, const FusedOperands& operands, const Queue& queue,
                    const Blocking& blocking, Workspace workspace);

}  // namespace kintsugi::core
