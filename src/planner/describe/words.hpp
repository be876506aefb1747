// A plan in words.
#pragma once

#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// The problem, why the fallback chain is what it is, its candidates, and the workspace: a line each.
std::vector<std::string> plan_words(const Plan& plan);

}  // namespace kintsugi::core
