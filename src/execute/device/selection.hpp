// Candidates of a plan, in the form that the selection on a device reads.
#pragma once

#include "engines/device.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the candidates among which a device selects: in a checked plan the candidates that multiply slices,
// else all candidates.
DeviceCandidates candidates_on_device(const Plan& plan);

}  // namespace kintsugi::core
