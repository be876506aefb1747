// Calls whose candidates a device computes in several steps, batch item by batch item: ranges, selection,
// split, multiply, recombine.
#pragma once

#include "execute/device/operands.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

void multiply_items(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace);

}  // namespace kintsugi::core
