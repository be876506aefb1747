// The engine of a plan.
#pragma once

#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Returns the engine of that name. For an empty name, returns the first engine that can run here and
// multiplies in the memory of the matrices, and adds a warning for each earlier engine that cannot run here.
// Fails with bad_setting, engine_unavailable or not_supported.
const Engine& select_engine(const Problem& problem, const std::string& name,
                            std::vector<std::string>& warnings);

// Fails with engine_unavailable if the engine cannot run here.
void check_runs(const Engine& engine);

}  // namespace kintsugi::core
