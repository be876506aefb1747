// Native products of a plan on a device. The vendor library or a kernel of Kintsugi multiplies. Under a
// contract the sums of the vendor library are tested.
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

// Puts the products of all batch items into the queue. Takes native_scratch_bytes and native_sum_bytes of the
// workspace.
void multiply_natively(const DeviceNativeCall& call, Workspace workspace);

}  // namespace kintsugi::core
