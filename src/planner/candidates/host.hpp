// The fallback chain of an engine of the host under a policy.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Whether residues are expected to be quicker than the native double-double product. `chain`: the checked
// candidates.
bool beats_native_pairs(const Plan& plan, const std::vector<Candidate>& chain);

// Emulations that are proved to meet the contract, under the policy automatic those that are expected to be
// quicker than a native product that meets it; and that product behind them. Empty where nothing meets the
// contract.
std::vector<Candidate> host_candidates(const Plan& plan);

}  // namespace kintsugi::core
