// The fallback chain of a device, under a policy, for contracts that need no check of elements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

struct DeviceFallbackChain {
  std::vector<Candidate> candidates;
  std::optional<Candidate> candidate_when_prepared;  // Plan::candidate_when_prepared
};

// Returns the emulations that the policy allows, followed by the native product for operands that none
// accepts. The policy automatic allows emulations only if they are expected to be faster than native by more
// than measurements scatter. Precondition: the native product meets the contract.
DeviceFallbackChain device_candidates(const Plan& plan);

}  // namespace kintsugi::core
