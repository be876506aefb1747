// Properties of a plan that the selection of a candidate on a device needs.
#pragma once

#include "engines/device.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the candidates that a device selects among: in a checked plan those that multiply slices, else all.
DeviceCandidates candidates_on_device(const Plan& plan);

}  // namespace kintsugi::core
