// The candidates of a plan as the selection on a device reads them.
#pragma once

#include "engines/device.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the candidates that a device selects among: in a checked plan those that multiply slices, else all.
DeviceCandidates candidates_on_device(const Plan& plan);

}  // namespace kintsugi::core
