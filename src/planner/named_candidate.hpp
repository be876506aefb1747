// The candidate of a scheme that the caller named.
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the named scheme as a candidate that accepts all operands. Fails with bad_setting if no scheme has
// the name, and with not_supported if the operands or the engine do not allow the scheme.
Candidate named_candidate(const Plan& plan);

// Returns the largest exponent of operands for which a device can run the scheme. A device cannot change the
// program to fit the operands' ranges, so the scheme's `adapt` must leave the program unchanged for operands
// up to this exponent. (The one change that a device makes is to fit residuals, Scheme::fitted_groups.) Fails
// with not_supported if `adapt` changes the program for all operands.
std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k);

}  // namespace kintsugi::core
