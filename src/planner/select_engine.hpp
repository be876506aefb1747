// The engine of a plan.
#pragma once

#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Returns the engine of that name or, for an empty name, the first that can run here and works where the
// matrices are. For an empty name, adds a warning for each engine that was passed over because it cannot run
// here. Fails with bad_setting, engine_unavailable or not_supported.
const Engine& select_engine(const Problem& problem, const std::string& name,
                            std::vector<std::string>& warnings);

// Fails with engine_unavailable if the engine cannot run here.
void check_runs(const Engine& engine);

}  // namespace kintsugi::core
