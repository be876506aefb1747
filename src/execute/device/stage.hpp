// Multiplies host matrices on an engine with its own memory.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Copies each batch item densely to the device, multiplies there, copies C back. The host finds the ranges
// and adapts programs to them before, as it does for products on the host. Returns when C is complete; no
// item of C is written before its product succeeded.
void stage(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
