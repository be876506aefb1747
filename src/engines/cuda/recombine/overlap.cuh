// Start of recombination kernels that may overlap the kernels before them (programmatic dependent launch).
#pragma once

#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Waits for the kernels before this one and returns true; returns false if the kernel must exit because its
// candidate is not selected. A selection that was made earlier is read before the wait, so that the kernels
// of an unselected candidate exit without waiting for each other. Every thread must call it before its first
// access to device memory. The kernel after this one begins when thread blocks of this one end: earlier it
// would take their place on the SMs.
__device__ inline bool begin_recombination(const DeviceCondition& condition) {
  if (condition.selected_earlier && !holds(condition)) {
    exit_in_stream_order();
    return false;
  }
  grid_dependency_wait();
  return true;
}

}  // namespace kintsugi::core::cuda
