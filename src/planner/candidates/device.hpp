// The fallback chain of a device for contracts that need no check of elements.
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

// Returns the emulations that the policy allows, followed by the native product. The policy automatic allows
// emulations only if they are expected to be faster than native by a margin above the scatter of
// measurements. Precondition: the native product meets the contract.
DeviceFallbackChain device_candidates(const Plan& plan);

}  // namespace kintsugi::core
