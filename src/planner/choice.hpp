// The choice of a plan's candidates: the one place that decides which programs a plan runs, on the host and
// on devices, for every accuracy and policy.
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// Sets the plan's candidates, and the one for operands that are prepared.
//
// Eligible are the programs that the engine offers and that are proved to meet the contract
// (planner/candidates.hpp, planner/residue_candidates.hpp), and the native product if its arithmetic meets
// it. The chain begins with the cheapest. Under the policy automatic it has emulations only if the first is
// expected to take less time than the native product (planner/expected_times.hpp), by a margin above the
// scatter of measurements. All limits are in planner/limits.hpp.
//
// Fails with contract_unreachable if nothing is eligible, and as named_candidate() and
// reproducible_candidates() do.
void choose_candidates(Plan& plan);

}  // namespace kintsugi::core
