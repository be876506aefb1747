// Check that the current context of a call's thread is one to which plan, stream and prepared operands
// belong.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Fail with invalid_argument, naming the devices, before anything is put into the queue.
void check_caller(const Plan& plan, const Queue& queue);
void check_caller(const Plan& plan, const Operands& operands, const Queue& queue);

}  // namespace kintsugi::core
