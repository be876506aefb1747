// Ranges, norms and rounding-error bounds of operands on a device, and the selection of a candidate by them.
// What the functions do stands in engines/device_engine.hpp.
#pragma once

#include "engines/cuda/select/alpha.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_rounding_bounds(const Queue& queue, const DeviceRoundingBounds& a, const DeviceRoundingBounds& b,
                          const DeviceCondition& condition);
void summarize(const Queue& queue, const DeviceSide& side, RangeSummary* summaries);
void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
            const DeviceCandidates& candidates, DeviceSelection* selection, const DeviceReporting& reporting);

// The scalar that lets a call skip its operands where it is 0; of an operand whose ranges are known the side
// is empty.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b);

}  // namespace kintsugi::core::cuda
