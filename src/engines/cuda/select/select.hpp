// Ranges, norms and rounding-error bounds of operands on a device, and the selection of a candidate by them.
// engines/device_engine.hpp documents the functions that have no comment here.
#pragma once

#include "engines/cuda/select/alpha.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_rounding_bounds(const Queue& queue, const DeviceRoundingBounds& a, const DeviceRoundingBounds& b,
                          const DeviceCondition& condition);
void summarize(const Queue& queue, const DeviceSide& side, MergedSummary* summaries);
// Returns the parameters of select().
SelectionTask selection_task(const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
                             const DeviceCandidates& candidates, DeviceSelection* selection,
                             const DeviceReporting& reporting);
void select(const Queue& queue, const SelectionTask& task, std::int64_t items);

// Returns the parameter by which kernels see that alpha is 0 and exit without reading operands. A side whose
// ranges are known already is empty.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b);

}  // namespace kintsugi::core::cuda
