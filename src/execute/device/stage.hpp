// Multiplies host matrices on an engine with its own memory.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Copies each batch item to the device without gaps, multiplies there, and copies C back. Before that the
// host finds the ranges and adapts the program, as it does for products on the host. Returns when C is
// complete. C of a batch item is written only after its product has succeeded.
void stage(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
