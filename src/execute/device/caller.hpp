// Check that a call comes from the context that its plan, its stream and its prepared operands belong to.
#pragma once

#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Fail with invalid_argument, naming the devices, before anything is put into the queue.
void check_caller(const Plan& plan, const Queue& queue);
void check_caller(const Plan& plan, const Operands& operands, const Queue& queue);

}  // namespace kintsugi::core
