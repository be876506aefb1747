// The way of a call whose matrices lie in a device's memory: ranges, selection, split, multiply, recombine as
// steps in a queue.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Nothing waits, but for a queue of kind host; what the device finds out goes to operands.device_report.
void execute_on_device(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
