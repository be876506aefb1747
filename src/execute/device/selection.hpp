// Candidates of a plan, in the form that the selection on a device reads.
#pragma once

#include "engines/device.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the coefficient of |A||B| that norms must prove for every element of C.
double proved_coefficient(const Plan& plan);

// Returns the candidates among which a device selects: in a checked plan the candidates that multiply slices,
// else all candidates. There must be at most DeviceReport::max_candidates.
DeviceCandidates candidates_on_device(const Plan& plan);

}  // namespace kintsugi::core
