// Calls that a device computes in separate steps (ranges, selection, split, multiply, recombine), one batch
// item after the other.
#pragma once

#include "execute/device/operands.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Puts the steps of all batch items into the queue.
void multiply_items(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                    const Blocking& blocking, const Workspace& workspace);

}  // namespace kintsugi::core
