// Multiplies host matrices on devices, of which they need not fit one.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Executes a plan that is offloaded. The host computes the elements of C that the devices did not, and the
// report says why. Returns when C is complete.
void offload(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
