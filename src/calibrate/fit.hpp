// Fits costs to measurements.
#pragma once

#include <span>
#include <vector>

#include "calibrate/measurement.hpp"
#include "engines/cuda/arch/profile.hpp"

namespace kintsugi::core::calibrate {

// Changes the costs, from the given values on, so that the expected times of all measurements come near the
// measured ones. Costs on which no measurement depends stay as they are. Returns, for each kind of
// measurement, how far the expected times still are from the measured ones.
std::vector<cuda::ProfileFit> fit_costs(cuda::Costs& costs, std::span<const Measurement> measurements);

}  // namespace kintsugi::core::calibrate
