// Products of int8 slices by kernels of our own for compute capability 9.0, all terms of a schedule in one
// launch.
#pragma once

#include "engines/cuda/gemm/int8/int8_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

bool has_int8_gemm(const Schedule& schedule, FormatId format);

// multiply() of such a schedule, whatever k is: sums of integers or residues. Needs no scratch.
void int8_gemm(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
               const Accumulators& sums, const DeviceCondition& condition);
// The same by one of the tiles.
void int8_gemm(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
               const Accumulators& sums, const DeviceCondition& condition, const Int8Choice& choice);

// Expected times of products of residues of complex elements, as measured on an H200 (docs/results/log).
DeviceTimes expected_residue_times(const DeviceShape& shape);

Int8Shape int8_shape(const Schedule& schedule, const Slices& a, const Accumulators& sums);

}  // namespace kintsugi::core::cuda
