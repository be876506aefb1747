// Fits costs to measurements.
#pragma once

#include <span>
#include <vector>

#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/profile.hpp"

namespace kintsugi::core::calibrate {

// Changes the costs so that expected times come close to measured times. Begins with the given costs. Costs
// on which no measurement depends stay unchanged. Returns, for each kind of measurement, the remaining
// deviation of expected times.
std::vector<cuda::ProfileFit> fit_costs(cuda::Costs& costs, std::span<const Measurement> measurements);

}  // namespace kintsugi::core::calibrate
