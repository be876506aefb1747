// Execution of a call whose matrices are in a device's memory: ranges, selection, split, multiply, recombine
// as steps in a queue.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Puts all steps of the call into the queue. Waits for the device only with a queue of kind host. The device
// writes what it finds to operands.device_report.
void execute_on_device(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
