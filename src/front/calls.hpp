// Calls of the C ABI that plan or execute: settings in force, plans made or found, execution with report and
// log.
#pragma once

#include <memory>

#include "base/settings.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the settings in force for calls that set none.
Settings settings_in_force(kintsugi_handle handle);

// Returns a new plan for the caller to keep. Fails as make_plan() does, and for bad arguments.
std::shared_ptr<const Plan> plan_of_caller(kintsugi_handle handle, const kintsugi_problem* problem,
                                           const kintsugi_options* options);
std::shared_ptr<const Plan> plan_of_description(kintsugi_handle handle, const char* description,
                                                const kintsugi_options* options);

// Executes the plan; a handle gets the report.
void execute_for_caller(kintsugi_handle handle, const std::shared_ptr<const Plan>& plan,
                        const kintsugi_operands* operands);

// Executes the problem by the kept plan of an earlier call, or by a new one if there is none; a handle gets
// the report.
void multiply_for_caller(kintsugi_handle handle, const kintsugi_problem* problem,
                         const kintsugi_options* options, const kintsugi_operands* operands);

}  // namespace kintsugi::core
