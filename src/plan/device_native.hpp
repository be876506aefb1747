// Native products of a plan on a device: the vendor library's, whose sums are looked at before they count as results.
#pragma once

#include "engines/device.hpp"
#include "plan/device_matrix.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

struct DeviceNativeCall {
  const Plan& plan;
  const Queue& queue;
  const Blocking& blocking;
  DeviceMatrix a, b, c;
  OperandStorage storage_a, storage_b;
  DeviceScalars scalars;
};

// Bytes for sums of all of C, or of as many items or columns as fit into 64 MiB; 0 where nobody looks at them.
std::size_t most_native_sum_bytes(const Plan& plan);

// All items of the batch. Takes native_scratch_bytes and native_sum_bytes of the workspace.
void multiply_natively(const DeviceNativeCall& call, Workspace workspace);

}  // namespace kintsugi::core
