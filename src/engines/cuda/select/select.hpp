// Ranges, norms and rounding-error bounds of operands on a device, and the selection of a candidate.
// Functions without a comment are documented in engines/device_engine.hpp.
#pragma once

#include "engines/cuda/select/alpha.hpp"
#include "engines/cuda/select/ranges_task.hpp"
#include "engines/device.hpp"
#include "engines/device_checks.hpp"
#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_scaling_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                        const DeviceScalars& scalars);
void find_rounding_errors(const Queue& queue, const DeviceRoundingErrors& a, const DeviceRoundingErrors& b,
                          const DeviceCondition& condition);
void summarize(const Queue& queue, const DeviceSide& side, MergedSummary* summaries);
// Returns the parameters of select().
SelectionTask selection_task(const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
                             const DeviceCandidates& candidates, DeviceSelection* selection,
                             const DeviceReporting& reporting);
void select(const Queue& queue, const SelectionTask& task, std::int64_t items);
// The same for candidates that norms prove, which replace those of the task.
void select_by_norms(const Queue& queue, const SelectionTask& task, std::int64_t items,
                     const NormCandidates& candidates);

// Returns the parameter that tells kernels whether alpha is 0, so that they need not read operands. A side
// whose ranges are known may be empty.
Alpha alpha_of(const DeviceScalars& scalars, const DeviceSide& a, const DeviceSide& b);

}  // namespace kintsugi::core::cuda
