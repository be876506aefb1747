// Host matrices on an engine with a memory of its own.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Item by item: dense copies to the device, the product there, C back. The ranges are known then, so that
// programs are fitted to them as on the host. Returns when C is there; nothing of C is written before the
// product succeeded.
void stage(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
