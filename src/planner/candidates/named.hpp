// The candidate of a scheme that the caller named.
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the named scheme as a candidate for all operands, whatever it costs. Fails with bad_setting if no
// scheme has the name, and with not_supported if the operands or the engine do not allow the scheme.
Candidate named_candidate(const Plan& plan);

// Returns the largest exponent of operands for which a device can run the scheme. A device fits residuals
// (Scheme::fitted_groups) but makes no other change of a scheme's `adapt`, so that `adapt` may not change the
// program for these operands. Fails with not_supported if it changes the program for all operands.
std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k);

}  // namespace kintsugi::core
