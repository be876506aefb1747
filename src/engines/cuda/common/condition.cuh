// Early exits of kernels whose candidate is not selected.
#pragma once

#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// True if the condition has no selection, or if batch item `item` of the step has selected the condition's
// candidate. The load bypasses L1: unless the thread has waited for the kernels before this one, L1 may have
// lines of an earlier call.
__device__ inline bool holds(const DeviceCondition& condition, std::int64_t item = 0) {
  return condition.selection == nullptr ||
         __ldcg(&condition.selection[item].candidate) == condition.candidate;
}

// Returns the number of moduli of the selected candidate; 0 if the kernel must exit because no candidate of
// its own is selected. The load bypasses L1, too.
__device__ inline int selected_moduli(const SelectedModuli& moduli) {
  return moduli.moduli_of(__ldcg(&moduli.selection->candidate));
}

// Start of recombination kernels that may overlap the kernels before them (programmatic dependent launch).
// Waits for these kernels and returns true; returns false if the kernel must exit because its candidate is
// not selected. A selection that was made earlier is read before the wait, so that the kernels of an
// unselected candidate exit without waiting for each other. Every thread must call it before its first access
// to device memory. The kernel after this one begins when thread blocks of this one end: earlier it would
// take their place on the SMs.
__device__ inline bool begin_recombination(const DeviceCondition& condition) {
  if (condition.selected_earlier && !holds(condition)) {
    exit_in_stream_order();
    return false;
  }
  grid_dependency_wait();
  return true;
}

}  // namespace kintsugi::core::cuda
