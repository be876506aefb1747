// Calls whose emulations a device computes from slices to C in one kernel.
#pragma once

#include "execute/device/operands.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Multiplies all batch items, as many at once as the workspace holds. A single candidate always runs. Of
// several candidates, the first one's slices are made while ranges are found, and another's only for items
// that select it.
void multiply_fused(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace);

}  // namespace kintsugi::core
