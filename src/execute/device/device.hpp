// Execution of a call whose matrices are in a device's memory: ranges, selection, split, multiply, recombine
// as steps in a queue.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns without waiting for the device, except with a queue of kind host. Findings of the device are
// written to operands.device_report.
void execute_on_device(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
