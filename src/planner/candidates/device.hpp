// The fallback chain of a device for FP32 and complex FP32 matrices under a policy.
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

// Emulations that the policy takes, and behind them the engine's own native product for operands that none
// accepts. Under the policy automatic there are emulations only where the device is expected to be quicker
// with them, by more than measurements differ. Needs a contract that the native product meets.
DeviceFallbackChain device_candidates(const Plan& plan);

}  // namespace kintsugi::core
