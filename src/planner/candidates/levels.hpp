// MixPert's levels in the fallback chain of a device.
#pragma once

#include <optional>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the level that pays as the first candidate of a chain, before emulations that have no exponents per
// tile; nothing if none does, or if no level is proved to meet the contract. Of the levels and depths of a
// tile that are proved, the fastest is tested.
//
// A level accepts operands by the range of all their elements together, which is narrow in few of them. If it
// refuses them, its splits were in vain, and the chain goes on with `second` instead of `fastest`. A level
// pays if the time that it is expected to save is longer than the time that refusals are expected to cost.
// `fastest`: first candidate of the chain without a level; `second`: the candidate that follows a level. Both
// may be the same.
std::optional<Candidate> level_that_pays(const Plan& plan, const Candidate& fastest, const Candidate& second);

}  // namespace kintsugi::core
