// Tasks of the kernels that select a candidate, and the parameter for alpha.
#pragma once

#include "engines/cuda/select/alpha.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Returns the parameters of select().
SelectionTask selection_task(const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
                             const DeviceCandidates& candidates, DeviceSelection* selection,
                             const DeviceReporting& reporting);

// Returns the parameter that tells kernels whether alpha is 0, so that they need not read operands. A side
// whose ranges are known may be empty.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b);

}  // namespace kintsugi::core::cuda
