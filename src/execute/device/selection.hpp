// What the selection of a candidate on a device needs to know of a plan.
#pragma once

#include "engines/device.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// The candidates that a device selects among: of a checked plan those that multiply slices, else all of them.
DeviceCandidates candidates_on_device(const Plan& plan);

}  // namespace kintsugi::core
