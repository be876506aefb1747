// Choice between host and devices for matrices in the host's memory.
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns a plan for devices, which contains the given host plan, if settings and expected times choose
// devices. Otherwise returns the given plan, with the reason. A plan for device matrices is returned
// unchanged.
Plan offloaded_if_chosen(Plan plan);

// Returns the plan of the same call in the current context of a device, with `inner` inner indices.
Plan plan_of_inner_indices(const Plan& plan, std::int64_t inner);

// Returns the plan of one step: a smaller problem with the candidates of `plan`. Its workspace is at most
// `workspace_limit`, unless that is 0. Fails with workspace_too_small.
Plan plan_of_step(const Plan& plan, const Problem& problem, std::size_t workspace_limit);

// True if the plan keeps its accuracy when C is rounded after each of several parts of k.
bool may_cut_k(const Plan& plan);

}  // namespace kintsugi::core
