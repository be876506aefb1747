// The fallback chain of an engine of the host under a policy.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// True if residues are expected to be faster than the native double-double product. `chain`: the checked
// candidates.
bool beats_native_double_double(const Plan& plan, const std::vector<Candidate>& chain);

// Returns the emulations that are proved to meet the contract (under the policy automatic only those expected
// to be faster than a native product that meets it), followed by the native product if it meets the contract.
// Empty if nothing meets it.
std::vector<Candidate> host_candidates(const Plan& plan);

}  // namespace kintsugi::core
