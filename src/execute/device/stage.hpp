// Multiplies host matrices on an engine with its own memory.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Copies each item densely to the device, multiplies there, copies C back. Programs are fitted to the
// ranges as on the host, which can find them here. Returns when C is complete; nothing of C is written before
// the product succeeded.
void stage(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
