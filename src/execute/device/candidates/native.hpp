// Native products of a plan on a device: one call of the vendor library and nothing else. A kernel of
// Kintsugi multiplies where the library has no such product, or may not keep the plan's contract.
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

// Puts the products of all batch items into the queue. Takes native_scratch_bytes of the workspace.
void multiply_natively(const DeviceNativeCall& call, Workspace workspace);

}  // namespace kintsugi::core
