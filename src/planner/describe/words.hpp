// Description of a plan in words.
#pragma once

#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns one line each for the problem, the reason of the fallback chain, every candidate, and the
// workspace.
std::vector<std::string> plan_words(const Plan& plan);

}  // namespace kintsugi::core
