// Calls whose emulations a device computes from slices to C in one step.
#pragma once

#include <cstddef>

#include "engines/device.hpp"
#include "plan/device_prepare.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

// Whether all emulations of a plan are.
bool is_fused(const Plan& plan);

struct FusedOperands {
  DeviceMatrix a;
  DeviceMatrix b;
  DeviceMatrix c;
  DeviceScalars scalars;
  const DevicePrepared* prepared_a = nullptr;
  const DevicePrepared* prepared_b = nullptr;
  DeviceReport* report = nullptr;
};

std::size_t fused_workspace_bytes(const Plan& plan, const Blocking& blocking);

// All entries of the batch, as many at once as the workspace holds. Where there is one candidate, it always runs; else the first
// one's slices are made while ranges are found, and the others' only for entries that are not within its window.
void multiply_fused(const Plan& plan, const FusedOperands& operands, const Queue& queue,
                    const Blocking& blocking, Workspace workspace);

}  // namespace kintsugi::core
