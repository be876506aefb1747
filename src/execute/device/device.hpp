// Executes calls whose matrices are in device memory. Ranges, selection, split, multiply and recombine are
// steps in a queue.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Puts all steps of the call into the queue. Waits for the device only if the queue is of kind host. The
// device writes counts to operands.device_report.
void execute_on_device(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
