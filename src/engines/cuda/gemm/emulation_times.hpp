// Expected times of emulated products on a device.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Returns the expected times of a call whose schedule one of the library's kernels computes: multi-term,
// residues or exponents per tile.
DeviceTimes expected_emulation_times(const DeviceShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
