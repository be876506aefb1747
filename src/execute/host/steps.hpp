// Runs the steps of a plan on the host (planner/steps.hpp).
#pragma once

#include "execute/execute.hpp"

namespace kintsugi::core {

// execute() for matrices in host memory and an engine of the host. Of each batch item, the steps of the
// selected candidate run. Precondition: no extent is 0, nor is alpha.
void execute_on_host(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
