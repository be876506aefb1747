// Number of moduli with which a kernel of several candidates computes.
#pragma once

#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

// Returns the number of moduli of the selected candidate; 0 if the kernel must exit because no candidate of
// its own is selected. The load bypasses L1 for the reason that holds() of recombine/tile.cuh gives.
__device__ inline int selected_moduli(const SelectedModuli& moduli) {
  return moduli.moduli_of(__ldcg(&moduli.selection->candidate));
}

}  // namespace kintsugi::core::cuda
