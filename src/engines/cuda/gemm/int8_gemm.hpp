// Products of int8 slices by the library's kernels. One launch computes all terms of a schedule.
#pragma once

#include "engines/cuda/gemm/int8_tiles.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// True if the device has such kernels and they compute the schedule.
bool has_int8_gemm(const Schedule& schedule, FormatId format);

// multiply() (steps.hpp) for a schedule for which has_int8_gemm() is true; k may be any. Needs no scratch
// memory.
void int8_gemm(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
               const Accumulators& sums, const DeviceCondition& condition);

// Expected times of a call by residues, on a device with these costs.
DeviceTimes expected_residue_times(const DeviceShape& shape, const Costs& costs);

Int8Shape int8_shape(const Schedule& schedule, const Slices& a, const Accumulators& sums);

}  // namespace kintsugi::core::cuda
