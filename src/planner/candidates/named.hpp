// The candidate of a scheme that was asked for by name.
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// It runs whatever it costs, or the call fails: with bad_setting for a name that no scheme has, with
// not_supported where operands or engine do not go with it.
Candidate named_candidate(const Plan& plan);

// The largest exponent of operands that a device takes: it fits residuals (Scheme::fitted_groups), but does
// nothing else that a scheme's `adapt` would. Fails where a program is nothing until it is fitted.
std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k);

}  // namespace kintsugi::core
