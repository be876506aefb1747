// Choice between host and devices for matrices in the host's memory.
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the plan of a call on devices if the settings and expected times choose them, with the given plan
// of the host in it; else the given plan, with the reason. `plan` is for matrices in any memory.
Plan offloaded_if_chosen(Plan plan);

// Returns the plan of the same call by the devices' current context over `inner` inner indices.
Plan plan_of_inner_indices(const Plan& plan, std::int64_t inner);

// Returns the plan of a product of `problem`, which is smaller than the plan's, by the plan's candidates. Its
// workspace is at most `workspace_limit`, unless that is 0. Fails with workspace_too_small.
Plan plan_of_step(const Plan& plan, const Problem& problem, std::size_t workspace_limit);

// True if sums over parts of k, each rounded to C, keep the accuracy that the plan promises.
bool may_cut_k(const Plan& plan);

}  // namespace kintsugi::core
