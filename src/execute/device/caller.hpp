// Checks that plan, stream and prepared operands of a call belong to the calling thread's current context.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Both functions fail with invalid_argument before anything is put into the queue.
void check_caller(const Plan& plan, const Queue& queue);
void check_caller(const Plan& plan, const Operands& operands, const Queue& queue);

}  // namespace kintsugi::core
