// Multiplies host matrices on devices. The matrices may be larger than a device's memory.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Executes an offloaded plan. If devices fail, the host computes the elements of C that they have not
// computed, and the report has the reason. Returns when C is complete.
void offload(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
