// The engine of a plan.
#pragma once

#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Returns the engine of that name or, for an empty name, the first that works where the matrices are. Fails
// with bad_setting, engine_unavailable or not_supported. Adds a warning for every engine before the first
// that cannot run here.
const Engine& select_engine(const Problem& problem, const std::string& name,
                            std::vector<std::string>& warnings);

// Fails with engine_unavailable if the engine cannot run here.
void check_runs(const Engine& engine);

}  // namespace kintsugi::core
