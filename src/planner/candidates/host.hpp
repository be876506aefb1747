// The fallback chain of an engine of the host under a policy.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// True if the checked candidates `chain` are expected to be faster than the native double-double product.
bool beats_native_double_double(const Plan& plan, const std::vector<Candidate>& chain);

// Returns the emulations that are proved to meet the contract, followed by the native product if it meets the
// contract. If it does, the policy automatic leaves out emulations that are not expected to be faster. Empty
// if nothing meets the contract.
std::vector<Candidate> host_candidates(const Plan& plan);

}  // namespace kintsugi::core
