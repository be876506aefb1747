// Calls whose candidates a device computes in several steps, one batch item after the other: ranges,
// selection, split, multiply, recombine.
#pragma once

#include "execute/device/operands.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

void multiply_items(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace);

}  // namespace kintsugi::core
