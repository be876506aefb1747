// Calls whose emulations a device computes from slices to C in one kernel.
#pragma once

#include "execute/device/operands.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Puts the steps of all batch items into the queue; one launch multiplies as many items as the workspace
// holds. A single candidate always runs. Of several candidates the first gets its slices while ranges are
// found, if the call allows it; kernels of the others exit early for items that did not select them.
void multiply_fused(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace);

}  // namespace kintsugi::core
