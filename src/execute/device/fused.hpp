// Fused calls: a device computes each emulation from slices to C in one kernel.
#pragma once

#include "execute/device/operands.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Puts the steps of all batch items into the queue. One launch multiplies as many items as the workspace
// holds. A single candidate always runs. With several candidates, the first one is split while ranges are
// found, if the call allows it. Kernels of a candidate exit early for items that did not select it.
void multiply_fused(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace);

}  // namespace kintsugi::core
