// Fits costs to measurements.
#pragma once

#include <span>
#include <vector>

#include "calibrate/measurement.hpp"
#include "engines/cuda/arch/profile.hpp"

namespace kintsugi::core::calibrate {

// Changes the costs so that the expected times of all measurements come near to the measured ones, beginning
// with the given values; costs that no measurement depends on stay as they are. Returns how near they came.
std::vector<cuda::ProfileFit> fit_costs(cuda::Costs& costs, std::span<const Measurement> measurements);

}  // namespace kintsugi::core::calibrate
