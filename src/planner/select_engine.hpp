// The engine of a plan.
#pragma once

#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// The engine of that name, or with an empty name the first that works where the matrices are. Fails with
// bad_setting, engine_unavailable or not_supported. An engine that would come before and cannot run here is a
// warning.
const Engine& select_engine(const Problem& problem, const std::string& name,
                            std::vector<std::string>& warnings);

// Fails with engine_unavailable.
void check_runs(const Engine& engine);

}  // namespace kintsugi::core
