// Ranges, norms, margins, choice and splits on a device. What the functions do stands in engines/device_engine.hpp.
#pragma once

#include <span>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
void find_margins(const Queue& queue, const DeviceMargins& a, const DeviceMargins& b,
                  const DeviceCondition& condition);
void summarize(const Queue& queue, const DeviceSide& side, RangeSummary* summaries);
void choose(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
            const DeviceCandidates& candidates, DeviceChoice* choice, const DeviceReporting& reporting);
bool finds_norms(const DeviceSplit& split);
void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceScalars& scalars,
                    double coefficient, DeviceChoice* choice);
bool splits_entries(const SplitRule& rule);
void split(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition);

}  // namespace kintsugi::core::cuda
