// Native products of a plan on a device: the vendor library's, whose sums are tested before they count as
// results.
#pragma once

#include "engines/device.hpp"
#include "execute/device/matrix.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

struct DeviceNativeCall {
  const Plan& plan;
  const Queue& queue;
  const Blocking& blocking;
  DeviceMatrix a, b, c;
  OperandStorage storage_a, storage_b;
  DeviceScalars scalars;
};

// Multiplies all items of the batch. Takes native_scratch_bytes and native_sum_bytes of the workspace.
void multiply_natively(const DeviceNativeCall& call, Workspace workspace);

}  // namespace kintsugi::core
