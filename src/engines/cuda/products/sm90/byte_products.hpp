// Products of int8 slices by kernels of our own for compute capability 9.0, all terms of a schedule in one launch.
#pragma once

#include "engines/cuda/products/sm90/byte_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

bool has_byte_products(const Schedule& schedule, FormatId format);

// multiply() of such a schedule, whatever k is: sums of integers or residues. Needs no scratch.
void multiply_byte_slices(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                          const Accumulators& sums, const DeviceCondition& condition);
// The same by one of the tiles.
void multiply_byte_slices(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                          const Accumulators& sums, const DeviceCondition& condition,
                          const ByteChoice& choice);

// Of residues of complex entries, as measured on an H200 (docs/results/LOG.md).
DeviceTimes expected_entry_times(const DeviceShape& shape);

ByteShape byte_shape(const Schedule& schedule, const Slices& a, const Accumulators& sums);

}  // namespace kintsugi::core::cuda
