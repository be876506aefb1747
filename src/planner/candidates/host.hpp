// The fallback chain of an engine of the host under a policy.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// True if the checked candidates `chain` are expected to be faster than the native double-double product.
bool beats_native_double_double(const Plan& plan, const std::vector<Candidate>& chain);

// Returns the emulations that are proved to meet the contract, followed by native if native meets the
// contract. If native follows, the policy automatic leaves out emulations that are not expected to be faster.
// Returns an empty chain if nothing meets the contract.
std::vector<Candidate> host_candidates(const Plan& plan);

}  // namespace kintsugi::core
