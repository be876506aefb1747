// The candidate of a scheme that the caller named.
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the named scheme, which runs at any cost. Fails with bad_setting if no scheme has the name, and
// with not_supported if the scheme does not go with the operands or the engine.
Candidate named_candidate(const Plan& plan);

// Largest exponent of operands that a device can take with this scheme: a device fits residuals
// (Scheme::fitted_groups) but makes none of the other changes of a scheme's `adapt`. Fails if the program has
// to be fitted for every operand.
std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k);

}  // namespace kintsugi::core
